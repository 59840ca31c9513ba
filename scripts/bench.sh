#!/usr/bin/env bash
# `make bench`: builds, measures what this machine can measure and prints the figures beside their limits and peers, as tables and, under
# build/bench/, as JSON. Needs nothing that `make test` does not; peers that are not installed (nginx, NumPy, PoCL, CuPy, aiohttp) are named
# and skipped. BACKENDS (default: cuda where there is a GPU, else cpu), MIB (1024) and ONLY (rows of tests/bench/run.py) choose.
. "$(dirname "$0")/lib.sh"

scripts/setup.sh
scripts/build.sh release
export_nvrtc
if [ -z "${BACKENDS:-}" ]; then BACKENDS=$([ -e /dev/nvidia0 ] && echo cuda || echo cpu); fi
mkdir -p build/bench

say "the service"
python3 tests/bench/run.py --build build/release --backends "$BACKENDS" --mib "${MIB:-1024}" --json build/bench/service.json \
    ${ONLY:+--only "$ONLY"}
if [ -z "${ONLY:-}" ]; then
    say "more clients"
    python3 tests/bench/scaling.py --build build/release --backends "$BACKENDS" --json build/bench/scaling.json
    say "the cpu device"
    python3 tests/bench/cpu_device.py --kernels build/release/tests/bench/cpu_kernels --json build/bench/cpu_device.json
fi
