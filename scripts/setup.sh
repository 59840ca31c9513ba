#!/usr/bin/env bash
# setup.sh [--tests]: installs missing Debian packages (as root or with sudo), and NVRTC where no CUDA toolkit is installed. --tests also
# installs what only tests use; all of it is optional: a test without its tool is skipped and names it.
. "$(dirname "$0")/lib.sh"

PACKAGES=(gcc libc6-dev cmake ninja-build pkg-config git curl openssl python3 python3-pip python3-venv python3-pytest python3-yaml
    libmicrohttpd-dev libcjson-dev libcurl4-gnutls-dev libcriterion-dev libseccomp-dev nettle-dev libgnutls28-dev)

# Tools that only tests use; the fourth row is for sdk/python's type checkers, C++ programs, sdk/rust and clients for Windows, the last has libraries
# that the service opens where they are there.
TEST_PACKAGES=(ccache prometheus chromium valgrind libc6-dbg clang-format clang-tidy groff systemd strace shellcheck man-db iproute2 nginx-light haproxy
    slurm-wlm slurm-wlm-basic-plugins munge
    binutils g++ nodejs rustc cargo rustfmt rust-clippy dpkg-dev wine
    libopenblas0-pthread libfftw3-double3 libfftw3-single3
    libvulkan-dev mesa-vulkan-drivers glslang-tools spirv-tools libshaderc-dev glslang-dev)

# libcurl's headers exist for three TLS libraries; any of them will do.
installed() {
    case $1 in
    libcurl4-gnutls-dev) dpkg-query -W -f '${Status}\n' libcurl4-gnutls-dev libcurl4-openssl-dev libcurl4-nss-dev 2>/dev/null | grep -q 'ok installed' ;;
    ccache | cmake | chromium | valgrind | clang-format | clang-tidy | groff | strace | shellcheck | haproxy | g++ | rustc | cargo | rustfmt | wine) command -v "$1" >/dev/null ;;
    nginx-light) command -v nginx >/dev/null ;;
    nodejs) command -v node >/dev/null ;;
    rust-clippy) command -v cargo-clippy >/dev/null ;;
    dpkg-dev) command -v dpkg-source >/dev/null ;;
    prometheus) command -v promtool >/dev/null ;;
    systemd) command -v systemd-analyze >/dev/null ;;
    python3) command -v python3 >/dev/null ;;
    python3-pytest) python3 -c 'import pytest' 2>/dev/null ;;
    python3-yaml) python3 -c 'import yaml' 2>/dev/null || /usr/bin/python3 -c 'import yaml' 2>/dev/null ;;
    python3-venv) python3 -c 'import venv, ensurepip' 2>/dev/null ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 ;;
    *) dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' ;;
    esac
}

missing_of() { # PACKAGE...
    local package
    for package in "$@"; do installed "$package" || echo "$package"; done
}

# Prevents packages that are installed for tests from starting servers, by Debian's policy file, unless the machine has one.
POLICY=/usr/sbin/policy-rc.d
forbid_servers() { [ -e $POLICY ] || printf '#!/bin/sh\nexit 101 # made by gpurest: make test\n' | "$@" install -m 755 /dev/stdin $POLICY; }
allow_servers() { if grep -qs 'made by gpurest' $POLICY; then "$@" rm -f $POLICY; fi; }

# install_packages PACKAGE...: on failure prints the reason and returns 1.
install_packages() {
    local as_root=() code=0
    command -v apt-get >/dev/null || { echo "there is no apt-get here; install them by hand"; return 1; }
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || { echo "not root and no sudo; ask an administrator to run: apt-get install $*"; return 1; }
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -q >&2 || { echo "apt-get update failed; is there a network?"; return 1; }
    forbid_servers "${as_root[@]}"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "$@" >&2 || code=$?
    allow_servers "${as_root[@]}"
    [ "$code" = 0 ] || { echo "apt-get failed"; return 1; }
}

mapfile -t missing < <(missing_of "${PACKAGES[@]}")
if [ ${#missing[@]} -gt 0 ]; then
    say "installing ${missing[*]}"
    why=$(install_packages "${missing[@]}") || die "these packages are missing: ${missing[*]}; $why"
fi

if [ -z "$(find_nvrtc)" ]; then
    say "no NVRTC found: fetching NVIDIA's redistributable package into .nvrtc/ (NVIDIA's own licence applies to it)"
    scripts/fetch-nvrtc.sh .nvrtc || die "NVRTC could not be fetched; install the CUDA toolkit, or set GPUREST_NVRTC=/path/to/libnvrtc.so"
fi

if [ "${1:-}" = --tests ]; then
    mapfile -t missing < <(missing_of "${TEST_PACKAGES[@]}")
    if [ ${#missing[@]} -gt 0 ]; then
        say "installing what only tests use: ${missing[*]}"
        why=$(install_packages "${missing[@]}") || say "tests that need one of these packages are skipped: ${missing[*]}; $why"
    fi
    if [ ! -e /usr/local/cuda/include/cuda.h ]; then
        say "fetching NVIDIA's headers and nvJitLink for tests"
        scripts/fetch-nvrtc.sh --always --tests .nvrtc || say "tests that compare with NVIDIA's headers are skipped: they could not be fetched"
    fi
fi
