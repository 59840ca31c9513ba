#!/usr/bin/env bash
# `make fuzz [SECONDS=120] [TARGET=name]`: runs every fuzzer of tests/fuzz, or the named one, for that long. Needs clang.
. "$(dirname "$0")/lib.sh"

code=0
for target in ${TARGET:-$(sed -nE 's/^ *gpurest_fuzz\((\w+).*/\1/p' tests/fuzz/CMakeLists.txt)}; do
    say "fuzzing $target for ${SECONDS_EACH:-120} s"
    tests/fuzz/run.sh "$target" "${SECONDS_EACH:-120}" || code=1
done
exit "$code"
