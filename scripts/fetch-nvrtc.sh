#!/bin/sh
# The release is pinned: PTX of a newer one would not load under the drivers that the service is tested with.
set -eu

RELEASE='13.0.*'
# The compiler; vector types, cuda_fp16.h, cooperative_groups.h, mma.h; their includes from crt/; cub, thrust, libcu++.
WHEELS='nvidia-cuda-nvrtc nvidia-cuda-runtime'
MORE_WHEELS='nvidia-cuda-crt nvidia-cuda-cccl'
TEST_WHEELS='nvidia-nvjitlink nvidia-nvvm'
HEADER_WHEELS='nvidia-cublas==13.0.* nvidia-cufft==12.0.*'

fail() {
    echo "fetch-nvrtc: $*" >&2
    exit 1
}

# found LIBRARY INCLUDE: prints them and exits.
found() {
    printf 'nvrtc=%s\ninclude=%s\n' "$1" "$2"
    exit 0
}

installed() {
    for root in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda; do
        for lib in "$root"/lib64/libnvrtc.so.13 "$root"/lib64/libnvrtc.so.12; do
            if [ -e "$lib" ] && [ -e "$root/include/cuda_fp16.h" ]; then
                found "$lib" "$root/include"
            fi
        done
    done
}

fetched() {
    lib="$1/nvidia/cu13/lib/libnvrtc.so.13"
    include="$1/nvidia/cu13/include"
    [ -e "$lib" ] && [ -e "$include/cuda_fp16.h" ] || return 0
    if [ $tests = yes ] && ! { [ -e "$include/cublasLt.h" ] && [ -e "$include/cufft.h" ]; }; then return 0; fi
    if [ $least = yes ] || { [ -e "$include/crt/mma.h" ] && [ -d "$include/cccl" ]; }; then
        found "$lib" "$include"
    fi
}

always=no least=no tests=no
while :; do
    case ${1:-} in
    --always) always=yes ;;
    --least) least=yes ;;
    --tests) tests=yes ;;
    *) break ;;
    esac
    shift
done
[ $# -le 1 ] || fail "usage: $0 [--always] [--least] [DIR]"
dir=${1:-.nvrtc}

[ $always = yes ] || installed
mkdir -p "$dir" || fail "cannot make the folder $dir"
dir=$(cd "$dir" && pwd)
fetched "$dir"

command -v python3 >/dev/null 2>&1 || fail "no python3, which is needed to fetch wheels"
python3 -m pip --version >/dev/null 2>&1 || fail "no pip, which is needed to fetch wheels (Debian: python3-pip)"
requirements=
[ $least = yes ] || WHEELS="$WHEELS $MORE_WHEELS"
[ $tests = no ] || WHEELS="$WHEELS $TEST_WHEELS"
for wheel in $WHEELS; do
    requirements="$requirements $wheel==$RELEASE"
done
# No dependencies or byte code: these wheels are only folders of files. --upgrade repairs an incomplete DIR.
# shellcheck disable=SC2086
python3 -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-compile --only-binary=:all: --upgrade \
    --root-user-action=ignore --target "$dir" $requirements >"$dir/fetch.log" 2>&1 ||
    fail "pip could not fetch the wheels: $(grep -i error "$dir/fetch.log" | tail -n 1)"
if [ $tests = yes ]; then
    # shellcheck disable=SC2086
    python3 -m pip download --quiet --disable-pip-version-check --no-input --no-deps --only-binary=:all: -d "$dir/wheels" $HEADER_WHEELS \
        >>"$dir/fetch.log" 2>&1 || fail "pip could not fetch the wheels: $(grep -i error "$dir/fetch.log" | tail -n 1)"
    python3 -c 'import sys, zipfile
for wheel in sys.argv[2:]:
    with zipfile.ZipFile(wheel) as z: z.extractall(sys.argv[1], [n for n in z.namelist() if "/include/" in n])' "$dir" "$dir"/wheels/*.whl
    rm -rf "$dir/wheels"
fi
fetched "$dir"
fail "the wheels do not hold what is expected: no libnvrtc.so.13 or no headers"
