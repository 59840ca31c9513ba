#!/usr/bin/env bash
# `make schemathesis`: all checks and all phases of schemathesis with many examples (EXAMPLES, 100) against a service on the cpu device.
# Takes minutes; `make test` does the same with a few examples.
. "$(dirname "$0")/lib.sh"

scripts/setup.sh
export_nvrtc
export_test_python
scripts/build.sh release gpurestd
say "schemathesis, ${EXAMPLES:=100} examples an operation"
GPURESTD=$ROOT/build/release/service/gpurestd SCHEMATHESIS_EXAMPLES=$EXAMPLES \
    python3 -m pytest -q -p no:cacheprovider tests/service/test_openapi.py -k schemathesis
