#!/usr/bin/env bash
# `make gpu-test`: all that needs a real GPU, one step after the other on cuda:0, into one text file. A failed or slow step does not stop
# the others; exit 1 if there was one. Skipped, with a message, where there is no driver.
#   STEPS="contract kernels"  only these; STEPS=list prints them all with their limits in seconds
#   OUT=file                  the report (build/gpu/report.txt); each step's whole output is beside it
#   BUILD=folder              an executable build made elsewhere, which is left unchanged; else the release build, made now
#   LIBS=folder               shared libraries that those executables need and this machine lacks
#   LIBCUDA=file              the driver library, if it is in no usual place
. "$(dirname "$0")/lib.sh"

# Each step, a run of this script for it alone, and its limit in seconds. The service's tests are in four parts, each with every fourth
# file.
LIMITS=(contract=300 local_launch=60 upload-memory=200 latency=120 storm=300 service-1=400 service-2=400 service-3=400 service-4=400
    kernels=500 sdk=400 cli=200 shim=300 faults=500 bench=500 bench-kernels=500)

if [ "${STEPS:-}" = list ]; then printf '%s\n' "${LIMITS[@]}"; exit; fi
for step in ${STEPS:-}; do [[ " ${LIMITS[*]} " == *" $step="* ]] || die "there is no step $step; STEPS=list names them"; done

for driver in /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib64; do
    if [ -z "${LIBCUDA:-}" ] && [ -e "$driver/libcuda.so.1" ]; then LIBCUDA=$driver/libcuda.so.1; fi
done
if [ -z "${LIBCUDA:-}" ]; then say "gpu-test: skipped: no driver library (libcuda.so.1) on this machine"; exit 0; fi

if [ -z "${BUILD:-}" ]; then
    scripts/setup.sh
    scripts/build.sh release
    BUILD=$ROOT/build/release
fi
export_nvrtc
# Once only: the steps, each a run of this script, inherit the result. A GPU node often has no package registry, and then this takes long.
if [ "${1:-}" != --step ]; then export_test_python; fi
OUT=${OUT:-$ROOT/build/gpu/report.txt}
logs=$(dirname "$OUT")
mkdir -p "$logs"
work=$(mktemp -d)
service= passed=() failed=()
tell() { printf '%s\n' "$*" | tee -a "$OUT"; }

# The bundled libraries are for our executables only: python, curl and the driver keep the machine's. Tests start the service with another
# environment, so the executable is replaced by a script.
ours() { # NAME: prints the path of such a script
    local name=$1 at
    for at in "$BUILD/$name" "$BUILD/service/$name" "$BUILD/sdk/cli/$name"; do
        if [ -x "$at" ] && [ -f "$at" ]; then break; fi
    done
    mkdir -p "$work/$(dirname "$name")"
    printf '#!/bin/bash\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "${LIBS:+$LIBS:}${LD_LIBRARY_PATH:-}" "$at" >"$work/$name"
    chmod +x "$work/$name"
    echo "$work/$name"
}

GPURESTD=$(ours gpurestd) GPUREST_CLI=$(ours gpurest) GPUREST_TEST_BACKENDS=cuda GPUREST_LIBCUDA=$LIBCUDA
export GPURESTD GPUREST_CLI GPUREST_TEST_BACKENDS GPUREST_LIBCUDA

start_service() {
    "$GPURESTD" --listen 127.0.0.1:0 --port-file "$work/port" --backends cuda --libcuda "$LIBCUDA" --cache "$work/cache" --crash-budget 0 \
        --drain-timeout 3 ${GPUREST_NVRTC:+--nvrtc "$GPUREST_NVRTC"} >"$logs/service.log" 2>&1 </dev/null &
    service=$!
    for _ in $(seq 600); do
        if [ -s "$work/port" ] || ! kill -0 "$service" 2>/dev/null; then break; fi
        sleep 0.1
    done
    address=$(head -n 1 "$work/port") || die "the service did not start: $(tail -n 5 "$logs/service.log")"
}

stop_service() {
    if [ -z "$service" ]; then return; fi
    kill -TERM "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
    service=
}
trap 'stop_service; rm -rf "$work"' EXIT

tests() { python3 -m pytest -q -rfE -p no:cacheprovider "$@"; }

every_fourth() { # FROM, 1 to 4
    local files=(tests/service/test_*.py) i
    for ((i = $1 - 1; i < ${#files[@]}; i += 4)); do echo "${files[i]}"; done
}

with_service() { # COMMAND... gets the address as its last argument
    start_service
    "$@" "$address"
    kill -0 "$service" || die "the service has ended"
}

run_step() {
    case $1 in
    contract) "$(ours tests/contract/contract_device)" --backend cuda --libcuda "$LIBCUDA" ;;
    local_launch) "$(ours tests/bench/local_launch)" --libcuda "$LIBCUDA" ;;
    upload-memory) "$(ours tests/bench/upload_memory)" --libcuda "$LIBCUDA" ;;
    latency) with_service "$(ours tests/bench/launch_latency)" ;;
    storm) with_service python3 tests/bench/fault_storm.py ;;
    service-?) mapfile -t files < <(every_fourth "${1#service-}") && tests "${files[@]}" ;;
    kernels) tests tests/kernels ;;
    sdk) tests tests/sdk/python ;;
    cli) tests tests/sdk/cli ;;
    shim) tests tests/sdk/shim ;;
    faults) python3 tests/fault/gpu_full.py --service "$GPURESTD" --backend cuda --device cuda:0 --libcuda "$LIBCUDA" --seconds 450 ;;
    bench) python3 tests/bench/run.py --build "$BUILD" --gpurestd "$GPURESTD" --backends cuda --json "$logs/bench.json" ;;
    bench-kernels) python3 tests/bench/kernels.py --seconds 440 --gpurestd "$GPURESTD" --json "$logs/kernels.json" ;;
    esac
}

if [ "${1:-}" = --step ]; then run_step "$2"; exit; fi

: >"$OUT"
tell "gpurest $(git describe --always --dirty 2>/dev/null), $(uname -srm), $(date -u +%Y-%m-%dT%H:%M:%SZ)"
tell "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo "no nvidia-smi here")"
for step in "${LIMITS[@]}"; do
    name=${step%=*} began=$SECONDS code=0
    if [ -n "${STEPS:-}" ] && [[ " $STEPS " != *" $name "* ]]; then continue; fi
    BUILD=$BUILD LIBS=${LIBS:-} LIBCUDA=$LIBCUDA OUT=$OUT timeout --kill-after=10 "${step#*=}" "$0" --step "$name" >"$logs/$name.log" 2>&1 </dev/null ||
        code=$?
    tell ""
    tell "== $name: exit $code after $((SECONDS - began)) s"
    tail -n 60 "$logs/$name.log" | tee -a "$OUT"
    if [ "$code" = 0 ]; then passed+=("$name"); else failed+=("$name"); fi
done
tell ""
tell "passed: ${passed[*]:-none}"
tell "failed: ${failed[*]:-none}"
[ ${#failed[@]} = 0 ]
