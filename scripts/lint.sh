#!/usr/bin/env bash
# `make lint`: clang-tidy over the C code of service/ and sdk/, with the checks of .clang-tidy; under a minute. Skipped, with a message, for
# other versions than Debian 12's, which find other things.
. "$(dirname "$0")/lib.sh"

VERSION=14
skip() { say "lint: skipped: $*"; exit 0; }

command -v clang-tidy >/dev/null || skip "clang-tidy is not installed"
clang-tidy --version | grep -q "version $VERSION\." || skip "clang-tidy $VERSION is wanted, and this is another"
# Lists the files and their flags, and needs the generated headers.
[ -e build/release/compile_commands.json ] || scripts/build.sh release

say "clang-tidy"
# Compiler warnings are left to gcc, which the pragmas and attributes are for.
mapfile -t files < <(git ls-files 'service/*.c' 'sdk/*.c' ':!*_windows.c') # those need Windows' headers
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 8 clang-tidy -p build/release --quiet --extra-arg=-Wno-everything >"$log" 2>/dev/null || code=1
grep -E '^[^ ]+:[0-9]+:[0-9]+: (warning|error):' "$log" | sort -u || true
[ "$code" = 0 ] || die "clang-tidy finds something; .clang-tidy says which checks there are, and why others are not"
echo "1 passed in ${SECONDS}s, ${#files[@]} files"
