#!/usr/bin/env bash
# Builds a fuzz target and runs it: tests/fuzz/run.sh [TARGET [SECONDS]]. Needs clang. Findings are left in build/fuzz-findings/.
# The committed seeds and, for ptx, the PTX of the corpus are only read; what the fuzzer finds interesting stays in build/.
# FUZZ_BUILD names another build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=${1:-ptx} seconds=${2:-600} build=${FUZZ_BUILD:-build/fuzz}

cmake --preset fuzz -B "$build" >/dev/null
cmake --build "$build" --target "fuzz_$target"
work=$build/corpus/$target findings=$build-findings
mkdir -p "$work" "$findings"
inputs=("$work")
if [ -d "tests/fuzz/seeds/$target" ]; then inputs+=("tests/fuzz/seeds/$target"); fi
options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$findings/$target-" -print_final_stats=1)
if [ "$target" = ptx ]; then
    inputs+=(tests/unit/device/cpu/ptx)
    # The words of the language, from the tables that the parser itself is made of.
    sed -nE 's/^[A-Z_]+\([A-Z0-9_]+, "([^"]+)".*/"\1"/p' service/device/cpu/{opcodes,modifiers,specials,types}.def | sort -u >"$build/ptx.dict"
    options+=(-dict="$build/ptx.dict" -max_len=16384)
fi
exec "$build/tests/fuzz/fuzz_$target" "${options[@]}" "${inputs[@]}"
