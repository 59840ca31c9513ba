#!/usr/bin/env bash
# `make test`: set up, build, and run everything: unit and contract tests plain, under ASan+UBSan and (threaded parts) under TSan,
# then the service tests against the real processes, plain and under ASan+UBSan. Ends with a summary; exit 1 if anything failed.
# TEST_PRESETS="release"  runs only these of "release asan tsan"
# TEST_PART=short         of the release preset the C programs and the service tests, and nothing else
# TEST_IMAGES=            leaves out the container images, which are otherwise made and tested meanwhile (make image-test)
# TEST_FRESH=1            runs the README's commands, the tests in short, on a fresh Debian 12 meanwhile, too (make fresh-test PART=short)
. "$(dirname "$0")/lib.sh"

scripts/setup.sh --tests
export_nvrtc
export_test_python

export ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1:handle_segv=0:use_sigaltstack=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
passed=0 failed=0 skipped=0
summary=()

# count NAME PASSED FAILED SKIPPED
count() {
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    summary+=("$(printf '%-28s %5d passed %3d failed %3d skipped' "$1" "$2" "$3" "$4")")
}

# ctest runs the programs; each counts as one test there, its cases stand in its own output.
run_ctest() {
    local log code=0 ok
    log=$(mktemp)
    say "C tests ($1)"
    ctest --test-dir "build/$1" -j 2 --output-on-failure --timeout 300 ${2:+-L "$2"} 2>&1 | tee "$log" || code=1
    ok=$(grep -c ' Passed ' "$log") || true
    count "C programs, $1" "$ok" "$(grep -cE '\*\*\*(Failed|Timeout|Exception|Not Run)' "$log" || true)" "$(grep -cE '\*\*\*Skipped' "$log" || true)"
    if [ "$code" != 0 ] && ! grep -qE '\*\*\*(Failed|Timeout|Exception|Not Run)' "$log"; then count "ctest itself, $1" 0 1 0; fi
    # A case that is skipped within a program that passes.
    grep -hE '^\[.*SKIP.*\]' "build/$1/Testing/Temporary/LastTest.log" || true
    rm -f "$log"
}

# Files beside each other, where that can be done: one more than there are processors for two, because tests wait a good deal.
beside=()
if python3 -c 'import xdist' 2>/dev/null; then beside=(-n 3 --dist loadfile); fi
# By itself it begins with the files that have the most tests; ours come in the order of time (tests/service/conftest.py).
if python3 -c 'import importlib.metadata as m, sys; sys.exit([*map(int, m.version("pytest-xdist").split(".")[:2])] < [3, 8])' 2>/dev/null; then
    beside+=(--no-loadscope-reorder)
fi

# Which lines of the Python SDK run, and that they are enough; see `make coverage`.
covered=()
if python3 -c 'import pytest_cov' 2>/dev/null; then covered=(--cov --cov-config=sdk/python/pyproject.toml); fi
export COVERAGE_FILE=$ROOT/build/coverage

run_pytest() { # NAME GPURESTD PATHS...
    local log name=$1 daemon=$2 last code=0
    shift 2
    log=$(mktemp)
    say "service tests ($name)"
    GPURESTD=$daemon python3 -m pytest -q -rs -p no:cacheprovider "${beside[@]}" "$@" 2>&1 | tee "$log" || code=1
    last=$(tail -n 1 "$log")
    number() { grep -oE "[0-9]+ $1" <<<"$last" | grep -oE '[0-9]+' || echo 0; }
    count "pytest, $name" "$(number passed)" "$(($(number failed) + $(number 'errors?')))" "$(number skipped)"
    if [ "$code" != 0 ] && ! grep -qE 'failed|error' <<<"$last"; then count "pytest itself, $name" 0 1 0; fi
    rm -f "$log"
}

# Tests wait a good deal, so what comes later is built while they run, one preset after the other; tests go first.
declare -A builds
build_ahead() { # PRESET [PROCESS-TO-WAIT-FOR]
    mkdir -p build
    {
        if [ -n "${2:-}" ]; then tail --pid="$2" -f /dev/null; fi
        nice -n 19 scripts/build.sh "$1" $([ "$1" != tsan ] || echo threaded_tests)
    } >"build/$1.log" 2>&1 &
    builds[$1]=$!
}

await_build() { # PRESET
    local code=0
    wait "${builds[$1]}" || code=1
    cat "build/$1.log"
    return $code
}

# beside_tests NAME SCRIPT: runs it meanwhile, at the lowest priority; its output is shown at the end.
declare -A others
beside_tests() {
    mkdir -p build
    nice -n 19 "$2" >"build/$1.log" 2>&1 &
    others[$1]=$!
}

# One that was skipped says so at the start of a line, "== NAME: skipped: why"; another ends with "N passed".
await_beside() { # NAME SCRIPT'S-NAME
    local code=0
    wait "${others[$1]}" || code=1
    cat "build/$1.log"
    if [ "$code" != 0 ]; then count "$1" 0 1 0
    elif grep -q "$2: skipped" "build/$1.log"; then count "$1" 0 0 1
    else count "$1" "$(grep -oE '[0-9]+ passed' "build/$1.log" | tail -n 1 | grep -oE '[0-9]+')" 0 0; fi
}

run_release() {
    local daemon=$ROOT/build/release/service/gpurestd
    run_ctest release
    run_pytest release "$daemon" tests/service tests/layout
    if [ "$PART" = short ]; then return; fi
    GPUREST_CLI=$ROOT/build/release/sdk/cli/gpurest run_pytest "command line, release" "$daemon" tests/sdk/cli
    # Its short form; make torture is the long one.
    run_pytest "faults" "$daemon" tests/fault
    run_pytest "built-in kernels" "$daemon" tests/kernels
    # The SDK is a client: once, against the plain service, is enough. Too few of its lines run: a failure.
    run_pytest "Python SDK" "$daemon" tests/sdk/python "${covered[@]}"
    scripts/build.sh release bundle || count "bundle" 0 1 0
    GPUREST_BUNDLE=$ROOT/build/release/gpurest-bundle.tar.gz run_pytest "packaging" "$daemon" tests/packaging \
        --ignore=tests/packaging/test_image.py --ignore=tests/packaging/test_compose.py
}

run_asan() {
    local daemon=$ROOT/build/asan/service/gpurestd
    run_ctest asan
    # What looks at the document, the pages and the corpus from outside is told nothing new by a sanitizer in the time that it takes.
    run_pytest asan "$daemon" tests/service tests/layout --ignore=tests/service/test_{openapi,openapi_style,generated_client,web,corpus}.py
    GPUREST_CLI=$ROOT/build/asan/sdk/cli/gpurest run_pytest "command line, asan" "$daemon" tests/sdk/cli
    # Those that lead through the paths of errors; the rest takes minutes under a sanitizer, and is a part of make torture.
    run_pytest "faults, asan" "$daemon" tests/fault/test_{system_calls,storage}.py
}

run_tsan() { run_ctest tsan threads; }

PART=${TEST_PART:-all} presets=(${TEST_PRESETS:-release asan tsan})
if [ "$PART" = short ]; then presets=(release) TEST_IMAGES=; fi
if [ -n "${TEST_IMAGES-1}" ]; then beside_tests "container images" scripts/image-test.sh; fi
if [ -n "${TEST_FRESH:-}" ]; then PART=short beside_tests "fresh machine" scripts/fresh-test.sh; fi
last=
for preset in "${presets[@]}"; do
    build_ahead "$preset" "$last"
    last=${builds[$preset]}
done
for preset in "${presets[@]}"; do
    await_build "$preset"
    "run_$preset"
done

if [ -n "${others["container images"]:-}" ]; then await_beside "container images" image-test; fi
if [ -n "${others["fresh machine"]:-}" ]; then await_beside "fresh machine" fresh-test; fi
say "summary"
printf '%s\n' "${summary[@]}"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
