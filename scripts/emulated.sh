#!/usr/bin/env bash
# `make emulated [FORM=long]`: builds the service for arm64 and runs programs of the `cpu` device there in qemu's emulation, to see that their results are
# right; how long anything takes says nothing. Everything lies in build/arm64. Short: a few minutes, a part of the compiled kernels. Long: all of them,
# and the tests that compare them with the interpreter.
. "$(dirname "$0")/lib.sh"

form=${FORM:-short}
home=$ROOT/build/arm64
export GPUREST_ARM64_ROOT=$home/root QEMU_LD_PREFIX=$home/root
packages=(libc6-dev libllvm14 libcriterion-dev libcjson-dev libmicrohttpd-dev nettle-dev libgnutls28-dev libseccomp-dev)
# Some of each kind: strips and bands, shared memory, warps, atomics, halves, and what conversions and divisions may do differently.
compiled=vadd,saxpy,heat2d,matmul_naive,mandel,daxpy,dconv,k_div,k_minmax,k_rounding,i64mix,i8i16,h2f,atom_all,cvt.,div.

skip() { echo "emulated: skipped: $*"; exit 0; }
case $form in short | long) ;; *) die "FORM is short or long, not $form" ;; esac
command -v qemu-aarch64-static >/dev/null || skip "qemu-aarch64-static is missing (Debian: qemu-user-static)"
command -v aarch64-linux-gnu-gcc >/dev/null || skip "aarch64-linux-gnu-gcc is missing (Debian: gcc-aarch64-linux-gnu)"
for tool in apt-get dpkg cmake ninja unshare; do command -v "$tool" >/dev/null || skip "$tool is missing"; done

# arm64's libraries, by an apt whose architecture and folders are its own: the machine's packages stay as they are.
fetch_root() {
    local at=$home/apt package
    mkdir -p "$at"/{state,lists/partial,cache/archives/partial} "$home/root"
    touch "$at/status"
    cat >"$at/apt.conf" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::State "$at/state";
Dir::State::status "$at/status";
Dir::State::lists "$at/lists";
Dir::Cache "$at/cache";
EOF
    (
        export APT_CONFIG=$at/apt.conf
        apt-get update -q && apt-get install -yq --no-install-recommends --download-only "${packages[@]}"
    ) >"$home/apt.log" 2>&1 || skip "arm64's libraries cannot be had: build/arm64/apt.log"
    for package in "$at"/cache/archives/*.deb; do dpkg -x "$package" "$home/root"; done
    echo "${packages[*]}" >"$home/root/complete"
}

# Runs arm64's executables, and those that they start, as if they were the machine's: where it does not do so by itself, in a namespace that does.
in_arm64() {
    local elf='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    # qemu keeps a record of each page that a program reserves. The device reserves as much as it gets, and needs little here.
    ulimit -v $((16 << 20))
    if "$home/tree/service/gpurestd" --version >/dev/null 2>&1; then
        "$@"
        return
    fi
    unshare --user --map-root-user --mount sh -c '
        mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && printf %s "$1" >/proc/sys/fs/binfmt_misc/register || exit 77
        shift
        exec "$@"' sh ":arm64:M::$elf:$mask:$(command -v qemu-aarch64-static):F" "$@"
}

failed=()
check() { # NAME COMMAND...
    local name=$1 from=$SECONDS
    shift
    say "$name"
    (in_arm64 "$@") >"$home/last.log" 2>&1 && echo "passed" || { failed+=("$name"); cat "$home/last.log"; }
    tail -n 1 "$home/last.log"
    echo "$((SECONDS - from)) seconds"
}

if [ "$(cat "$home/root/complete" 2>/dev/null)" != "${packages[*]}" ]; then fetch_root; fi
say "building (arm64)"
{
    cmake -G Ninja -B "$home/tree" -DCMAKE_TOOLCHAIN_FILE="$ROOT/scripts/cmake/arm64.cmake" -DCMAKE_BUILD_TYPE=Release -DGPUREST_SDK=OFF &&
        cmake --build "$home/tree" --target gpurestd contract_device corpus_goldens unit_device_cpu_jit
} >"$home/build.log" 2>&1 || { tail -n 40 "$home/build.log"; die "the arm64 build failed"; }
(in_arm64 "$home/tree/service/gpurestd" --version) || skip "this kernel runs no arm64 executables (binfmt_misc in a namespace: Linux 6.7)"

corpus=("$home/tree/tests/bench/corpus_goldens" --backend cpu --ptx tests/unit/device/cpu/fixtures --check tests/bench/results/corpus_goldens_h200.txt)
check "device contract" "$home/tree/tests/contract/contract_device" --backend cpu
check "corpus, interpreted" "${corpus[@]}"
if [ "$form" = short ]; then
    check "corpus, a part, compiled" "${corpus[@]}" --cpu-jit now --only "$compiled"
else
    check "corpus, compiled" "${corpus[@]}" --cpu-jit now
    check "compiled as interpreted" env GPUREST_COMPILED_PROGRAMS=1 "$home/tree/tests/unit/device/cpu/unit_device_cpu_jit" --jobs 1
fi
say "arm64, emulated: ${#failed[@]} failed"
if [ "${#failed[@]}" != 0 ]; then printf '%s\n' "${failed[@]}"; exit 1; fi
