#!/usr/bin/env bash
# `make run`: set up, build, start the service on the best device present, run the main task with
# curl, keep serving.
# FILE=path  the file whose bytes are counted (default: the service's own executable)
# ONCE=1     exit after the task, with 0 when every answer was right
# PORT=n     default 8080; 0 = any free one
# GPURESTD=… an existing gpurestd (set by the tests); then nothing is installed or built
. "$(dirname "$0")/lib.sh"

PORT=${PORT:-8080}
if [ -z "${GPURESTD:-}" ]; then
    scripts/setup.sh
    scripts/build.sh release gpurestd
    GPURESTD=$ROOT/build/release/service/gpurestd
fi
FILE=${FILE:-$GPURESTD}
export_nvrtc
[ -r "$FILE" ] || die "FILE=$FILE cannot be read"
[ -s "$FILE" ] || die "FILE=$FILE is empty; name a file with at least one byte"

work=$(mktemp -d)
service=
finish() {
    [ -z "$service" ] || { kill "$service" 2>/dev/null; wait "$service" 2>/dev/null; } || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

say "starting gpurestd"
"$GPURESTD" --listen "127.0.0.1:$PORT" --port-file "$work/port" --drain-timeout 1 &
service=$!
for _ in $(seq 600); do
    [ -e "$work/port" ] && break
    kill -0 "$service" 2>/dev/null || die "the service did not start; its last line above says why (PORT=0 takes any free port)"
    sleep 0.1
done
[ -e "$work/port" ] || die "the service was not ready after 60 s"
base=http://$(head -n 1 "$work/port")

# Quotes an argument as a person would.
quoted() {
    if [[ $1 =~ ^[A-Za-z0-9_./:@%+,=-]+$ ]]; then printf ' %s' "$1"; else printf " '%s'" "${1//\'/\'\\\'\'}"; fi
}

# Shows a curl command, runs it, and stops with the service's error text when it fails.
run_curl() {
    local argument
    printf '\n$ curl'
    for argument in "$@"; do quoted "$argument"; done
    printf '\n'
    curl --silent --show-error --fail-with-body "$@" || die "that request failed"
    printf '\n'
}
json=(-H 'Content-Type: application/json')
octets=(-H 'Content-Type: application/octet-stream')

say "the device"
run_curl "$base/v1/devices?limit=1" | cut -c 1-600

say "vector add of a million floats"
python3 scripts/job/check.py make "$work" 1000000
s=$base/v1/sessions/demo
run_curl -X PUT "$s"
run_curl -X PUT "$s/buffers/a" "${octets[@]}" --data-binary "@$work/a.f32"
run_curl -X PUT "$s/buffers/b" "${octets[@]}" --data-binary "@$work/b.f32"
run_curl -X PUT "$s/buffers/c" "${json[@]}" -d '{"size":4000000}'
run_curl -X PUT "$s/modules/vadd" -H 'Content-Type: text/x-cuda' --data-binary @scripts/job/vadd.cu
run_curl -X POST "$s/launches" "${json[@]}" -d '{"module":"vadd","kernel":"vadd","grid":[3907],"block":[256],
    "args":[{"buf":"a"},{"buf":"b"},{"buf":"c"},{"i32":1000000}]}'
run_curl "$s/buffers/c/data" -o "$work/c.f32"
python3 scripts/job/check.py vadd "$work"

say "byte histogram of $FILE"
bytes=$(stat -Lc %s "$FILE")
run_curl -X PUT "$s/buffers/file" "${octets[@]}" -T "$FILE"
run_curl -X PUT "$s/buffers/counts" "${json[@]}" -d '{"size":1024}'
run_curl -X POST "$s/buffers/counts/fill" "${json[@]}" -d '{"pattern":{"u32":0}}'
run_curl -X PUT "$s/modules/histogram" -H 'Content-Type: text/x-cuda' --data-binary @scripts/job/histogram.cu
run_curl -X POST "$s/launches" "${json[@]}" -d '{"module":"histogram","kernel":"histogram","grid":[64],"block":[256],
    "args":[{"buf":"file"},{"buf":"counts"},{"u64":'"$bytes"'}]}'
run_curl "$s/buffers/counts/data" -o "$work/counts.u32"
python3 scripts/job/check.py histogram "$work" "$FILE"
run_curl -X DELETE "$s"

if [ "${ONCE:-}" = 1 ]; then
    say "done: every answer was right"
    exit 0
fi
say "serving on $base until Ctrl-C (try: curl $base/v1/devices)"
wait "$service"
