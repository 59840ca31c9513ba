#!/usr/bin/env bash
# Builds a fuzz target and runs it: tests/fuzz/run.sh [TARGET [SECONDS]]. Needs clang. Findings are left in build/fuzz-findings/. The
# committed seeds and, for ptx, the PTX of the corpus are only read; the fuzzer's own inputs stay in build/. FUZZ_BUILD names another build
# folder. FUZZ_PROGRAMS names a folder with the programs of `cmake --build build/fuzz --target fuzzers`, wherever they were copied to: then
# nothing is built, and findings stay in that folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=${1:-ptx} seconds=${2:-600}

if [ -n "${FUZZ_PROGRAMS:-}" ]; then
    programs=$FUZZ_PROGRAMS work=$FUZZ_PROGRAMS/corpus/$target findings=$FUZZ_PROGRAMS/findings
else
    build=${FUZZ_BUILD:-build/fuzz}
    programs=$build/tests/fuzz work=$build/corpus/$target findings=$build-findings
    cmake --preset fuzz -B "$build" >/dev/null
    cmake --build "$build" --target "fuzz_$target"
fi
mkdir -p "$work" "$findings"
inputs=("$work")
if [ -d "tests/fuzz/seeds/$target" ]; then inputs+=("tests/fuzz/seeds/$target"); fi
options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$findings/$target-" -print_final_stats=1)
if [ "$target" = ptx ]; then
    inputs+=(tests/unit/device/cpu/fixtures)
    # The words of the language, from the tables that the parser itself is made of.
    sed -nE 's/^[A-Z_]+\([A-Z0-9_]+, "([^"]+)".*/"\1"/p' service/device/cpu/ptx/tables/{opcodes,modifiers,specials,types}.def | sort -u >"$work.dict"
    options+=(-dict="$work.dict" -max_len=16384)
fi
exec "$programs/fuzz_$target" "${options[@]}" "${inputs[@]}"
