#!/usr/bin/env bash
# `make fuzz [SECONDS=120] [TARGET=name]`: every fuzzer of tests/fuzz for that long, or the one named. Needs clang.
. "$(dirname "$0")/lib.sh"

code=0
for target in ${TARGET:-$(sed -nE 's/^ *gpurest_fuzz\((\w+).*/\1/p' tests/fuzz/CMakeLists.txt)}; do
    say "fuzzing $target for ${SECONDS_EACH:-120} s"
    tests/fuzz/run.sh "$target" "${SECONDS_EACH:-120}" || code=1
done
exit "$code"
