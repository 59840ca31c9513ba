#!/usr/bin/env bash
# `make torture [MINUTES=30]`: injects faults into the running service with the long form of tests/fault: two thirds of the time on the
# plain build, the rest under ASan+UBSan. GPUREST_TORTURE_SEED=n chooses other faults. Ends with a line for each campaign.
. "$(dirname "$0")/lib.sh"

minutes=${MINUTES:-30}
scripts/setup.sh
export_nvrtc
export GPUREST_TORTURE=full
export ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1:handle_segv=0:use_sigaltstack=0
code=0
if [ -x .venv/bin/python3 ] && ! python3 -c 'import pytest' 2>/dev/null; then PATH=$ROOT/.venv/bin:$PATH; fi
for preset in release asan; do
    scripts/build.sh "$preset"
    if [ "$preset" = asan ]; then share=20 workers=300; else share=40 workers=2000; fi
    say "torture ($preset)"
    GPUREST_HOSTILE_WORKERS=$workers "build/$preset/tests/unit/pool/unit_pool" --filter 'hostile/*' || code=1
    GPUREST_TORTURE_S=$((minutes * share)) GPURESTD=$ROOT/build/$preset/service/gpurestd \
        timeout $((minutes * share * 2 + 300)) python3 -m pytest -q -p no:cacheprovider tests/fault || code=1
done
exit "$code"
