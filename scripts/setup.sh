#!/usr/bin/env bash
# Installs what is missing: Debian packages (as root or with sudo), and NVRTC where no CUDA toolkit is installed.
. "$(dirname "$0")/lib.sh"

PACKAGES=(gcc libc6-dev cmake ninja-build pkg-config git curl openssl python3 python3-pip python3-venv python3-pytest python3-yaml
    libmicrohttpd-dev libcjson-dev libcurl4-gnutls-dev libcriterion-dev libseccomp-dev nettle-dev libgnutls28-dev)

# libcurl's headers come in three flavours of TLS; any one will do.
installed() {
    case $1 in
    libcurl4-gnutls-dev) dpkg-query -W -f '${Status}\n' libcurl4-gnutls-dev libcurl4-openssl-dev libcurl4-nss-dev 2>/dev/null | grep -q 'ok installed' ;;
    cmake) command -v cmake >/dev/null ;;
    python3) command -v python3 >/dev/null ;;
    python3-pytest) python3 -c 'import pytest' 2>/dev/null ;;
    python3-yaml) python3 -c 'import yaml' 2>/dev/null || /usr/bin/python3 -c 'import yaml' 2>/dev/null ;;
    python3-venv) python3 -c 'import venv, ensurepip' 2>/dev/null ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 ;;
    *) dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' ;;
    esac
}

missing=()
for package in "${PACKAGES[@]}"; do
    installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || die "these packages are missing and there is no apt-get here; install them by hand: ${missing[*]}"
    as_root=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "not root and no sudo; ask an administrator to run: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    "${as_root[@]}" apt-get update -q || die "apt-get update failed; is there a network?"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "${missing[@]}" ||
        die "apt-get could not install: ${missing[*]}"
fi

if [ -z "$(find_nvrtc)" ]; then
    say "no NVRTC found: fetching NVIDIA's redistributable package into .nvrtc/ (NVIDIA's own licence applies to it)"
    scripts/fetch-nvrtc.sh .nvrtc || die "NVRTC could not be fetched; install the CUDA toolkit, or set GPUREST_NVRTC=/path/to/libnvrtc.so"
fi
