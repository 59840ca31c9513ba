#!/usr/bin/env bash
# `make test`: set up, build, and run everything: unit and contract tests under ASan+UBSan, (threaded parts) under TSan and (what ASan does not
# show) plain, then the service tests against the real processes, under ASan+UBSan and, what a sanitizer hides, plain. Ends with a summary, the seconds of
# each part, and what failed by name; exit 1 if anything failed.
# TEST_PRESETS="release"  runs only these of "release asan tsan"
# TEST_PART=short         of the release preset only the service tests that a sanitizer hides or that use the machine's tools (make fresh-test PART=short)
# TEST_IMAGES=            leaves out the container images, which are otherwise made and tested meanwhile (make image-test)
. "$(dirname "$0")/lib.sh"

scripts/setup.sh --tests
export_nvrtc
# The images then take the objects of build/release.
if [ -z "${CMAKE_C_COMPILER_LAUNCHER+set}" ] && command -v ccache >/dev/null && mkdir -p "$(ccache -k cache_dir)"; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1
fi
export_test_python

export ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1:handle_segv=0:use_sigaltstack=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
noted=$(mktemp -d) # the processor times of parts
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$noted"' EXIT
passed=0 failed=0 skipped=0 began=0
summary=() failures=()

# The folder of code that services compiled for tests that are not about compiling. As ccache keeps objects, it stays from run to run, while all is as it was that
# makes code of a source: the compiler's libraries are in the names of its entries, ours in its own. `make clean` removes it.
kept_code() {
    local key
    key=$(find service/{compile,ipc,pool/compile,session/code,worker/compile,worker/jail} -type f -print0 | sort -z | xargs -0 cat | sha256sum | cut -c 1-16)
    mkdir -p "build/compiled/$key"
    find build/compiled -mindepth 1 -maxdepth 1 ! -name "$key" -exec rm -rf {} +
    echo "$ROOT/build/compiled/$key"
}
compiled=$(kept_code)

# measured NAME COMMAND...: runs it in a shell of its own, so that the times of all that it ran are those of the row NAME.
measured() {
    (
        code=0
        "${@:2}" || code=$?
        times >"$noted/times of $1"
        exit $code
    )
}

# The processor time of a measured NAME, once: unlike seconds, it is the same on a busy machine.
processors() {
    local file="$noted/times of $1"
    if [ -e "$file" ]; then awk -F'[ms ]+' 'NR == 2 { printf "%6.0f s of processors", 60 * ($1 + $3) + $2 + $4 }' "$file"; fi
    rm -f "$file"
}

# count NAME PASSED FAILED SKIPPED [SECONDS]: adds a row; the default of SECONDS is the time since the previous row.
count() {
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    summary+=("$(printf '%-28s %5d passed %3d failed %3d skipped %5d s' "$1" "$2" "$3" "$4" "${5:-$((SECONDS - began))}")$(processors "$1")")
    began=$SECONDS
}

# name_failures NAME LOG: keeps the lines that name what failed, for the end: a long log hides them.
name_failures() {
    local line
    while IFS= read -r line; do failures+=("$1: ${line:0:400}"); done < <(grep -aE '^(FAILED|ERROR) |\*\*\*(Failed|Timeout|Exception|Not Run)|^.{0,40}: error: ' "$2" | head -n 40)
}

# took NAME: a row for a step that is not a test.
took() {
    summary+=("$(printf '%-28s %44d s' "$1" $((SECONDS - began)))$(processors "$1")")
    began=$SECONDS
}

# Each C program counts as one test of ctest; its own output has its cases.
programs() { # PRESET [LABEL]
    measured "C programs, $1" ctest --test-dir "build/$1" -j "$beside_count" --output-on-failure --timeout 600 ${2:+-L "$2"} 2>&1
}

count_programs() { # PRESET LOG CODE [SECONDS]
    local bad='\*\*\*(Failed|Timeout|Exception|Not Run)'
    count "C programs, $1" "$(grep -c ' Passed ' "$2" || true)" "$(grep -cE "$bad" "$2" || true)" "$(grep -cE '\*\*\*Skipped' "$2" || true)" ${4:+"$4"}
    name_failures "C programs, $1" "$2"
    if [ "$3" != 0 ] && ! grep -qE "$bad" "$2"; then count "ctest itself, $1" 0 1 0; fi
    # Cases that are skipped within a program that passes.
    grep -hE '^\[.*SKIP.*\]' "build/$1/Testing/Temporary/LastTest.log" || true
}

names() { # PRESET [LABEL]
    ctest --test-dir "build/$1" -N ${2:+-L "$2"} | sed -n 's/^ *Test *#[0-9]*: //p'
}

# A program that the build with ASan leaves out runs in the plain build only if it is labelled.
check_that_all_run() {
    local nowhere
    nowhere=$(names release | grep -vxFf <(names asan; names release plain)) || return 0
    count "C programs without a run" 0 "$(wc -l <<<"$nowhere")" 0
    failures+=("C programs that no build runs: $nowhere; label them by gpurest_plain()")
}

run_ctest() { # PRESET [LABEL]
    local log code=0
    log=$(mktemp)
    say "C tests ($1)"
    programs "$@" | tee "$log" || code=1
    count_programs "$1" "$log" "$code"
    rm -f "$log"
}

set_beside

# last_line LOG: pytest's last line; a script that runs pytest may print more after it. last_number WORD LOG: the number before the word
# there.
last_line() { grep -E '[a-z] in [0-9.]+s' "$1" | tail -n 1; }
last_number() { last_line "$2" | grep -oE "[0-9]+ $1" | grep -oE '[0-9]+' || echo 0; }

run_pytest() { # NAME GPURESTD PATHS...
    local log name=$1 daemon=$2 code=0
    shift 2
    log=$(mktemp)
    say "service tests ($name)"
    GPURESTD=$daemon measured "pytest, $name" python3 -m pytest -q -rsfE -p no:cacheprovider "${beside[@]}" "$@" 2>&1 | tee "$log" || code=1
    count "pytest, $name" "$(last_number passed "$log")" "$(($(last_number failed "$log") + $(last_number 'errors?' "$log")))" "$(last_number skipped "$log")"
    name_failures "$name" "$log"
    if [ "$code" != 0 ] && ! last_line "$log" | grep -qE 'failed|error'; then count "pytest itself, $name" 0 1 0; fi
    rm -f "$log"
}

# Tests often wait, so the next preset is built meanwhile, one after the other; tests have priority.
declare -A builds
build_ahead() { # PRESET [PROCESS-TO-WAIT-FOR]
    mkdir -p build
    {
        if [ -n "${2:-}" ]; then tail --pid="$2" -f /dev/null; fi
        measured "waiting for the build, $1" nice -n 19 scripts/build.sh "$1" $([ "$1" != tsan ] || echo threaded_tests)
    } >"build/$1.log" 2>&1 &
    builds[$1]=$!
}

await_build() { # PRESET
    local code=0
    if [ -z "${builds[$1]}" ]; then return; fi
    wait "${builds[$1]}" || code=1
    cat "build/$1.log"
    took "waiting for the build, $1"
    builds[$1]=
    return $code
}

# beside_tests NAME COMMAND...: runs it in parallel, at the lowest priority unless `niceness` says otherwise; its output is shown at the
# end.
declare -A others
beside_tests() {
    mkdir -p build
    { code=0 from=$SECONDS; measured "$1" nice -n "${niceness:-19}" "${@:2}" || code=1; echo "$((SECONDS - from)) seconds"; exit $code; } >"build/$1.log" 2>&1 &
    others[$1]=$!
}

# A script that was skipped as a whole prints "NAME: skipped: why"; others end with pytest's "N passed".
await_beside() { # NAME SCRIPT'S-NAME
    local code=0 seconds
    wait "${others[$1]}" || code=1
    cat "build/$1.log"
    seconds=$(tail -n 1 "build/$1.log" | grep -oE '^[0-9]+') || seconds=0
    took "waiting for $1"
    if [ "$code" != 0 ]; then name_failures "$1" "build/$1.log"; fi
    if [ "$code" != 0 ]; then count "$1" 0 1 0 "$seconds"
    elif grep -q "$2: skipped" "build/$1.log"; then count "$1" 0 0 1 "$seconds"
    else count "$1" "$(last_number passed "build/$1.log")" 0 "$(last_number skipped "build/$1.log")" "$seconds"; fi
}

# Once is enough for tests of the document, the pages, the manual, the corpus and code for newer architectures: a sanitizer finds nothing more for
# the time it takes.
OUTSIDE=(tests/service/test_{openapi,openapi_style,generated_client,web,corpus,architectures,docs,curl}.py
    tests/service/test_vulkan.py) # whose compiler is no library of a sanitized process
# Takes a minute with one process. Names of tests begin at the folder of pytest.ini, so --deselect has none of it.
SCHEMATHESIS=tests/service/test_openapi.py::test_schemathesis_finds_nothing
# Tests of things that a sanitizer hides: its library needs system calls and memory that no worker may have, keeps freed memory, and reports
# crashes itself.
HIDDEN=(tests/service/test_{jail,memory_returned,batch_large,spinning,crash}.py
    tests/service/test_service_manager.py::test_the_first_process_says_that_it_crashed_and_the_service_goes_on)

run_release() {
    local daemon=$ROOT/build/release/service/gpurestd
    if [ "$PART" != short ]; then beside_tests "lint" scripts/lint.sh; fi
    if [ "$PART" != short ]; then
        GPURESTD=$daemon niceness=5 beside_tests "schemathesis" python3 -m pytest -q -rsfE -p no:cacheprovider $SCHEMATHESIS
        if comes asan; then run_ctest release plain; else run_ctest release; fi
    fi
    # At the lowest priority, Wine's own services do not start in the time that it gives them, and later programs hang.
    if [ "$PART" != short ]; then GPURESTD=$daemon niceness=5 beside_tests "clients elsewhere" python3 -m pytest -q -rsfE -p no:cacheprovider tests/sdk/cross; fi
    if comes asan || [ "$PART" = short ]; then
        run_pytest release "$daemon" "${OUTSIDE[@]}" "${HIDDEN[@]}" tests/layout --deselect ${SCHEMATHESIS#tests/}
    else
        run_pytest release "$daemon" tests/service tests/layout --deselect ${SCHEMATHESIS#tests/}
    fi
    if [ "$PART" = short ]; then return; fi
    if ! comes asan; then GPUREST_CLI=$ROOT/build/release/sdk/cli/gpurest run_pytest "command line, release" "$daemon" tests/sdk/cli; fi
    GPUREST_CLI=$ROOT/build/release/sdk/cli/gpurest run_pytest "programs for CUDA" "$daemon" tests/sdk/shim
    # The short form; make torture is the long one.
    run_pytest "faults" "$daemon" tests/fault
    GPUREST_CACHE=$compiled run_pytest "built-in kernels" "$daemon" tests/kernels
    # The SDK is a client: once, against the plain service, is enough. `make coverage` says which of its lines run; that takes half as long again.
    GPUREST_CACHE=$compiled run_pytest "Python SDK" "$daemon" tests/sdk/python
    run_pytest "Rust SDK" "$daemon" tests/sdk/rust
    scripts/build.sh release bundle || count "bundle" 0 1 0
    took "bundle"
    GPUREST_BUNDLE=$ROOT/build/release/gpurest-bundle.tar.gz run_pytest "packaging" "$daemon" tests/packaging \
        --ignore=tests/packaging/test_image.py --ignore=tests/packaging/test_compose.py
}

# Whether a preset is a part of this call. What runs under ASan, too, is left out of the plain build's part.
comes() { [[ " ${presets[*]} " == *" $1 "* ]]; }

run_asan() {
    local daemon=$ROOT/build/asan/service/gpurestd
    run_ctest asan
    if comes release; then check_that_all_run; fi
    if comes tsan; then start_tsan; fi
    run_pytest asan "$daemon" tests/service "${OUTSIDE[@]/#/--ignore=}"
    GPUREST_CLI=$ROOT/build/asan/sdk/cli/gpurest run_pytest "command line, asan" "$daemon" tests/sdk/cli
    # The other tests load the library into Python, which is built without the sanitizer.
    GPUREST_CLI=$ROOT/build/asan/sdk/cli/gpurest run_pytest "programs for CUDA, asan" "$daemon" tests/sdk/shim/test_{programs,json}.py
    # The tests of error paths; the others take minutes under a sanitizer, and are a part of make torture.
    run_pytest "faults, asan" "$daemon" tests/fault/test_{system_calls,storage}.py
}

# The longest of these programs takes as long as all others, and leaves a processor idle: so they run while pytest does.
tsan_programs=
start_tsan() {
    if [ -n "$tsan_programs" ]; then return; fi
    await_build tsan || { count "build, tsan" 0 1 0; tsan_programs=none; return; }
    { code=0 from=$SECONDS; programs tsan threads || code=1; echo "$((SECONDS - from))"; exit $code; } >build/tsan-programs.log &
    tsan_programs=$!
}

run_tsan() {
    local code=0
    start_tsan
    if [ "$tsan_programs" = none ]; then return; fi
    say "C tests (tsan)"
    wait "$tsan_programs" || code=1
    cat build/tsan-programs.log
    took "waiting for C programs, tsan"
    count_programs tsan build/tsan-programs.log "$code" "$(tail -n 1 build/tsan-programs.log)"
}

PART=${TEST_PART:-all} presets=(${TEST_PRESETS:-release asan tsan})
if [ "$PART" = short ]; then presets=(release) TEST_IMAGES=; fi
if [ -n "${TEST_IMAGES-1}" ]; then beside_tests "container images" scripts/image-test.sh; fi
last=
for preset in "${presets[@]}"; do
    build_ahead "$preset" "$last"
    last=${builds[$preset]}
done
for preset in "${presets[@]}"; do
    await_build "$preset"
    "run_$preset"
done

if [ -n "${others["lint"]:-}" ]; then await_beside "lint" lint; fi
if [ -n "${others["schemathesis"]:-}" ]; then await_beside "schemathesis" schemathesis; fi
if [ -n "${others["clients elsewhere"]:-}" ]; then await_beside "clients elsewhere" cross; fi
if [ -n "${others["container images"]:-}" ]; then await_beside "container images" image-test; fi
say "summary"
printf '%s\n' "${summary[@]}"
if [ "${#failures[@]}" != 0 ]; then printf '%s\n' "${failures[@]}"; fi
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
