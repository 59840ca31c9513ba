#!/usr/bin/env bash
# `make check`: run it at every change. On a plain build: the rules of the tree and its format, clang-tidy, the C programs but those labelled
# `long`, and the quick test files with the widest reach of the service and its clients. At most three minutes on two processors after the build; `make test` runs
# everything. Runs every part even when one fails, and ends with the seconds of each.
. "$(dirname "$0")/lib.sh"

# One file for each thing that a client can do, without the tests of `make test` that wait for something or use many clients.
SERVICE=(tests/layout/test_{format,rules,sdk_paths}.py
    tests/service/test_{argument_kinds,batches,buffers,builtin,conditions,corpus,curl,drain,faults,framing,hostile_http,idempotency,integrity}.py
    tests/service/test_{large_parameters,launches,logging,memory_returned,metrics,modules,numbers,openapi,openapi_style,programs,docs,sessions,tenants}.py
    --deselect tests/service/test_openapi.py::test_schemathesis_finds_nothing)
COMMAND_LINE=(tests/sdk/cli/test_{cli,cli_builtins}.py)
PYTHON=(tests/sdk/python/test_sdk_{arguments,async,batches,builtins,docs,session,transport}.py tests/sdk/python/arrays/test_array_{parts,protocols,requests}.py)

export_nvrtc
export_test_python
set_beside
export GPURESTD=$ROOT/build/release/service/gpurestd GPUREST_CLI=$ROOT/build/release/sdk/cli/gpurest
failed=() times=()

part() { # NAME COMMAND...
    local name=$1 began=$SECONDS
    shift
    say "$name"
    "$@" || failed+=("$name")
    times+=("$(printf '%-24s %4d s' "$name" $((SECONDS - began)))")
}

# Fewer random programs than in `make test`, as under its sanitizers: LLVM takes half a second for each.
c_programs() { GPUREST_COMPILED_PROGRAMS=8 GPUREST_RANDOM_PROGRAMS=100 ctest --test-dir build/release -LE long -j "$beside_count" --output-on-failure --timeout 300 --progress; }
run_pytest() { python3 -m pytest -q -p no:cacheprovider "${beside[@]}" "$@"; }

part "build" scripts/build.sh release
part "C programs" c_programs
part "lint" scripts/lint.sh
part "layout and service" run_pytest "${SERVICE[@]}"
part "command line" run_pytest "${COMMAND_LINE[@]}"
part "Python SDK" run_pytest "${PYTHON[@]}"
say "summary"
printf '%s\n' "${times[@]}"
[ ${#failed[@]} = 0 ] || die "failed: ${failed[*]}"
