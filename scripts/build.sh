#!/usr/bin/env bash
# build.sh PRESET [TARGET...]: configures and builds one preset of CMakePresets.json. Quiet unless it fails.
. "$(dirname "$0")/lib.sh"

preset=${1:-release}
shift || true
log=$(mktemp)
trap 'rm -f "$log"' EXIT
say "building ($preset)"
if ! { cmake --preset "$preset" && cmake --build --preset "$preset" ${1:+--target "$@"}; } >"$log" 2>&1; then
    cat "$log" >&2
    die "the $preset build failed"
fi
tail -n 1 "$log"
