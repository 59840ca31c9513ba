#!/bin/bash
# Runs everything that needs a real GPU and writes one text file.
#   scripts/device/h200.sh BUILD LIBS OUT
# BUILD: folder of a build (binaries may come from another machine); LIBS: folder of shared libraries that this machine may lack,
# "" for none; OUT: the text file. Logs of the steps are put beside it. Each step has a time limit and a failure stops nothing.
# Environment: STORM_COUNT (25), LAUNCHES (5000), STEPS (names to run; default all), NVRTC (path of libnvrtc),
# LIBCUDA (path of libcuda.so.1, default: where the driver usually is).
set -u

if [ $# -ne 3 ]; then
    sed -n '2,8p' "$0" >&2
    exit 2
fi
BUILD=$(cd "$1" && pwd) || exit 2
LIBS=${2:+$(cd "$2" && pwd)}
OUT=$3
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
WORK=$(mktemp -d)
LOGS=$(dirname "$OUT")
mkdir -p "$LOGS"
: >"$OUT"
# The GPU machine's own driver must win over anything carried along.
for driver in /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu /usr/lib64; do
    [ -z "${LIBCUDA:-}" ] && [ -e "$driver/libcuda.so.1" ] && LIBCUDA=$driver/libcuda.so.1
done
# Carried libraries are for our binaries alone: curl, python and bash keep the machine's.
LIBRARIES=${LIBS:+$LIBS:}${LD_LIBRARY_PATH:-}
LIBRARIES=${LIBRARIES%:}
ours() { LD_LIBRARY_PATH=$LIBRARIES "$@"; }
PASSED=() FAILED=() SERVICE=

say() { printf '%s\n' "$*" | tee -a "$OUT"; }

wanted() { [ -z "${STEPS:-}" ] || [[ " $STEPS " == *" $1 "* ]]; }

# step NAME SECONDS COMMAND...
step() {
    local name=$1 limit=$2 began=$SECONDS rc
    shift 2
    wanted "$name" || return 0
    say "" "== $name"
    timeout --kill-after=10 "$limit" "$BASH" -c "$(declare -f ours); $(declare -p LIBRARIES); \"\$@\"" step "$@" >"$WORK/$name.log" 2>&1 </dev/null
    rc=$?
    tail -n 120 "$WORK/$name.log" | tee -a "$OUT"
    if [ $rc -eq 0 ]; then PASSED+=("$name"); else FAILED+=("$name($rc)"); fi
    say "-- $name: rc=$rc, $((SECONDS - began)) s"
}

start_service() {
    local flags=(--listen 127.0.0.1:0 --port-file "$WORK/port" --backends cuda --cache "$WORK/cache" --drain-timeout 3)
    [ -n "${NVRTC:-}" ] && flags+=(--nvrtc "$NVRTC")
    [ -n "${LIBCUDA:-}" ] && flags+=(--libcuda "$LIBCUDA")
    rm -f "$WORK/port"
    LD_LIBRARY_PATH=$LIBRARIES "$BUILD/gpurestd" "${flags[@]}" >"$WORK/service.log" 2>&1 </dev/null &
    SERVICE=$!
    for _ in $(seq 600); do
        [ -s "$WORK/port" ] && break
        kill -0 "$SERVICE" 2>/dev/null || break
        sleep 0.1
    done
    ADDRESS=$(grep -om1 '[0-9.]*:[0-9]*' "$WORK/port" 2>/dev/null | head -1)
    if [ -z "$ADDRESS" ]; then
        say "the service did not start:"
        tail -n 40 "$WORK/service.log" | tee -a "$OUT"
        FAILED+=("service-start")
        return 1
    fi
    say "service: pid $SERVICE at $ADDRESS"
}

stop_service() {
    [ -n "$SERVICE" ] || return 0
    if ! kill -0 "$SERVICE" 2>/dev/null; then
        FAILED+=("service-died")
    fi
    kill -TERM "$SERVICE" 2>/dev/null
    for _ in $(seq 100); do
        kill -0 "$SERVICE" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$SERVICE" 2>/dev/null
    wait "$SERVICE" 2>/dev/null
    say "service ended with $?"
    SERVICE=
}
trap 'stop_service; rm -rf "$WORK"' EXIT

# The curl session of the REST contract, compared bit by bit with numpy.
cat >"$WORK/curl.sh" <<'CURL'
set -eu
cd "$1"
B=http://$2/v1/sessions/demo
C="curl -sS --fail-with-body --max-time 60"
python3 -c "
import numpy as np
g = np.random.default_rng(7)
for name in 'ab': (g.standard_normal(1024) * 10.0 ** g.integers(-20, 20, 1024)).astype('<f4').tofile(name + '.f32')"
cat >vadd.cu <<'CU'
extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
CU
$C http://$2/v1/devices; echo
$C -X PUT $B; echo
$C -X PUT $B/buffers/a -H 'Content-Type: application/octet-stream' --data-binary @a.f32; echo
$C -X PUT $B/buffers/b -H 'Content-Type: application/octet-stream' --data-binary @b.f32; echo
$C -X PUT $B/buffers/c -H 'Content-Type: application/json' -d '{"size":4096}'; echo
$C -X PUT $B/modules/m -H 'Content-Type: text/x-cuda' --data-binary @vadd.cu; echo
$C -X POST $B/launches -H 'Content-Type: application/json' -d '{"module":"m","kernel":"vadd","grid":[4],"block":[256],
     "args":[{"buf":"a"},{"buf":"b"},{"buf":"c"},{"i32":1024}]}'; echo
$C $B/buffers/c/data -o c.f32
$C -X DELETE $B
python3 -c "
import numpy as np, sys
a, b, c = (np.fromfile(n + '.f32', dtype='<f4') for n in 'abc')
same = c.tobytes() == (a + b).tobytes()
print('vadd of', c.size, 'floats:', 'bit-exact' if same else 'WRONG')
sys.exit(not same)"
CURL

say "gpurest on $(uname -srm), $(date -u +%Y-%m-%dT%H:%M:%SZ), driver library ${LIBCUDA:-default}"
say "$(nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv,noheader 2>&1)"

step contract 540 ours "$BUILD/tests/contract/contract_device" --backend cuda ${LIBCUDA:+--libcuda "$LIBCUDA"}
step local_launch 60 ours "$BUILD/tests/bench/local_launch" --count "${LAUNCHES:-5000}" ${LIBCUDA:+--libcuda "$LIBCUDA"}
LOCAL=$(sed -n 's/^local_launch_sync: p50_us=\([0-9.]*\).*/\1/p' "$WORK/local_launch.log" 2>/dev/null)

if wanted curl || wanted launch_latency || wanted fault_storm; then
    if start_service; then
        step curl 120 "$BASH" "$WORK/curl.sh" "$WORK" "$ADDRESS"
        step launch_latency 120 ours "$BUILD/tests/bench/launch_latency" "$ADDRESS" --count "${LAUNCHES:-5000}" ${LOCAL:+--local-p50 "$LOCAL"}
        step fault_storm 300 python3 "$ROOT/tests/bench/fault_storm.py" "$ADDRESS" --count "${STORM_COUNT:-25}" --json "$LOGS/fault_storm.json"
        step readiness 30 curl -sS --fail-with-body "http://$ADDRESS/readyz"
        stop_service
    fi
    cp "$WORK/service.log" "$LOGS/service.log" 2>/dev/null
fi

if python3 -c 'import pytest' 2>/dev/null; then
    # The tests start the service with an environment of their own.
    printf '#!/bin/bash\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$LIBRARIES" "$BUILD/gpurestd" >"$WORK/gpurestd"
    chmod +x "$WORK/gpurestd"
    step pytest 400 env GPURESTD="$WORK/gpurestd" GPUREST_TEST_BACKENDS=cuda ${LIBCUDA:+GPUREST_LIBCUDA="$LIBCUDA"} \
        ${NVRTC:+GPUREST_NVRTC="$NVRTC"} python3 -m pytest -q --maxfail=20 -p no:cacheprovider "$ROOT/tests/service"
else
    say "" "== pytest: not installed here, left out"
fi

if nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader >"$WORK/left" 2>/dev/null; then
    say "" "processes still on the GPU: $(wc -l <"$WORK/left")"
fi
say "" "== summary" "passed: ${PASSED[*]:-none}" "failed: ${FAILED[*]:-none}"
[ ${#FAILED[@]} -eq 0 ]
