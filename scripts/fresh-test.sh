#!/usr/bin/env bash
# `make fresh-test [PART=short]`: both commands of the README on a fresh Debian 12: a debootstrap root with ca-certificates, git and make,
# without a CUDA toolkit, and a clean clone of HEAD. First `make run ONCE=1`, then `make test`. PART=short runs only those
# tests of the service that use the machine's tools or that a sanitizer would hide. OUT=folder gets the logs (build/fresh). Skipped, with a message, where no such root can be made. Caches
# Debian's base system for a week, and downloaded packages, in .cache/fresh/.
. "$(dirname "$0")/lib.sh"
. docker/podman.sh

skip() { say "fresh-test: skipped: $*"; exit 0; }

PART=${PART:-all} OUT=${OUT:-$ROOT/build/fresh} CACHE=$ROOT/.cache/fresh
[ "$PART" = all ] || [ "$PART" = short ] || die "PART is all or short, not $PART"
[ "$(id -u)" = 0 ] || skip "making a root of another system takes root"
unshare --mount --pid --fork true 2>/dev/null || skip "this machine does not let mount and process name spaces be made"
if ! command -v debootstrap >/dev/null; then
    command -v apt-get >/dev/null || skip "no debootstrap, and no apt-get to install it"
    install_quietly debootstrap ||
        skip "debootstrap cannot be installed"
fi

say "a fresh Debian 12"
archive=$(debian_archive "$CACHE") || skip "Debian's base system cannot be fetched"
root=$(mktemp -d "$CACHE/root.XXXXXX")
trap 'rm -rf "$root"' EXIT
tar -C "$root" --numeric-owner -xf "$archive"
chmod 755 "$root" # it is "/" for the users that packages make, too; the archive has it for root alone
mkdir -p "$OUT" "$CACHE/packages" "$CACHE/wheels" "$root/var/cache/apt/archives" "$root/root/.cache/pip"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
git clone -q --no-hardlinks "$ROOT" "$root/root/gpurest"

# For machines behind a proxy or with their own certificate authorities, to reach the package registries.
settings=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb "TEST_PART=$PART")
for name in http_proxy https_proxy no_proxy PIP_INDEX_URL; do
    if [ -n "${!name:-}" ]; then settings+=("$name=${!name}"); fi
done
if [ -n "${PIP_CERT:-}" ]; then
    cp "$PIP_CERT" "$root/etc/authorities.pem"
    settings+=(PIP_CERT=/etc/authorities.pem)
fi

# inside NAME COMMAND: in new namespaces, so that everything it starts ends with it and no mount outlives it.
inside() {
    local name=$1 code=0
    shift
    say "fresh-test: $*"
    unshare --mount --pid --fork --kill-child bash -c '
        root=$1; shift
        mount --make-rprivate / && mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount -t sysfs -o ro sysfs "$root/sys" &&
            mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/dev/shm" -o mode=1777 &&
            mount --bind "$0/packages" "$root/var/cache/apt/archives" && mount --bind "$0/wheels" "$root/root/.cache/pip" || exit 99
        exec chroot "$root" "$@"
    ' "$CACHE" "$root" env -i "${settings[@]}" bash -c "cd /root/gpurest 2>/dev/null; $*" 2>&1 </dev/null | tee "$OUT/$name.log" || code=$?
    [ "$code" != 99 ] || skip "this machine does not let file systems be mounted"
    [ "$code" = 0 ] || die "on a fresh Debian 12 this failed (exit $code): $*; its output is in $OUT/$name.log"
}

inside packages 'rm -f /etc/apt/apt.conf.d/docker-clean; apt-get update -q && apt-get install -yq --no-install-recommends ca-certificates git make'
inside run 'make run ONCE=1 PORT=0'
inside test 'make test'
