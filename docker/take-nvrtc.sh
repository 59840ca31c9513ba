#!/bin/sh
# take-nvrtc.sh FETCHED TARGET [HEADERS]: copies the files that the service loads from FETCHED, filled by fetch-nvrtc.sh, to TARGET, with
# NVIDIA's licence and a list of the releases. HEADERS is `listed` (default: the headers that the licence lists as distributable, half precision)
# or `all` (every header that kernels can include, for images that are not distributed).
set -eu
fetched=$1 target=$2 headers=${3:-listed}
from=$fetched/nvidia/cu13

mkdir -p "$target/lib" "$target/include"
cp "$from/lib/libnvrtc.so.13" "$from"/lib/libnvrtc-builtins.so.13.* "$target/lib/"
rm -f "$target"/lib/*.alt.so*
case $headers in
listed) cp "$from/include/cuda_fp16.h" "$from/include/cuda_fp16.hpp" "$target/include/" ;;
all) cp -R "$from/include/." "$target/include/" ;;
*) echo "take-nvrtc: HEADERS must be listed or all, not $headers" >&2; exit 2 ;;
esac
packages='nvidia_cuda_nvrtc nvidia_cuda_runtime'
[ "$headers" = listed ] || packages="$packages nvidia_cuda_crt nvidia_cuda_cccl"
for package in $packages; do
    info=$(echo "$fetched/$package"-*.dist-info)
    [ -d "$info" ] || { echo "take-nvrtc: no $package in $fetched" >&2; exit 1; }
    sed -n -e 's/^Name: //p' -e 's/^Version: //p' "$info/METADATA" | paste -d ' ' - - >>"$target/RELEASES"
done
cp "$(find "$fetched"/nvidia_cuda_nvrtc-*.dist-info -name License.txt | head -n 1)" "$target/NVIDIA-EULA.txt"
