#!/usr/bin/env bash
# `make coverage`: runs the Python SDK's tests and prints the lines that they do not reach; fails below the share that
# sdk/python/pyproject.toml demands. Not a part of `make test`: measuring makes these tests half as long again.
. "$(dirname "$0")/lib.sh"

scripts/setup.sh
scripts/build.sh release gpurestd
export_nvrtc
if [ -x .venv/bin/python3 ]; then PATH=$ROOT/.venv/bin:$PATH; fi
python3 -c 'import pytest_cov' 2>/dev/null || die "pytest-cov is missing: pip install -r tests/requirements.txt"
GPURESTD=$ROOT/build/release/service/gpurestd COVERAGE_FILE=$ROOT/build/coverage exec python3 -m pytest -q -p no:cacheprovider tests/sdk/python \
    --cov --cov-config=sdk/python/pyproject.toml
