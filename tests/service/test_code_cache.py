"""Code is recompiled when its compiler or headers have changed, and a caller's code never evicts another's."""
import os
import pathlib
import shutil
import struct

import pytest

from kernels import launch
from test_tenants import as_caller, token_file

S = "/v1/sessions/s"
SOURCE = '#include "answer.h"\nextern "C" __global__ void answer(int *p) { *p = ANSWER; }'
BUILD_ID_NOTE = struct.pack("<3I", 4, 20, 3) + b"GNU\0"  # head and name; a SHA-1 follows
MIB = 1 << 20
NS_PER_S = 1000000000
PATH_MAX = 4096
LONG_NAME = 250 * "d"


@pytest.fixture
def answer_of(start, tmp_path):
    """answer_of(*arguments): a kernel's result in a new service, and whether its code was in the cache that all of these services share."""
    def answer(*arguments):
        service = start("--cache", str(tmp_path / "cache"), *arguments)
        client = service.client()
        assert client.put(S).status == 201 and client.put(S + "/buffers/x", {"size": 4}).status == 201
        made = client.put_cuda(S + "/modules/m", SOURCE).expect(201)
        assert client.post(S + "/launches", launch("answer", {"buf": "x"}, module="m")).status == 200
        number, = struct.unpack("<i", client.get(S + "/buffers/x/data").body)
        client.close()
        service.stop()
        return number, made.json()["cached"]

    return answer


def write_header(path, text, changed_ns=NS_PER_S):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, ns=(changed_ns, changed_ns))


def header_folder(folder, number):
    """All headers have the same name, size and time."""
    write_header(folder / "answer.h", f"#define ANSWER {number}\n")
    return str(folder)


# ---- headers ----

def test_each_folder_of_headers_has_code_of_its_own(answer_of, tmp_path):
    one, other = (header_folder(tmp_path / name, number) for name, number in (("one", 1), ("other", 2)))
    answers = [answer_of("--cuda-include", folder) for folder in (one, other, one, other)]
    assert answers == [(1, False), (2, False), (1, True), (2, True)]


@pytest.mark.parametrize("number,changed_ns", [(2, 2 * NS_PER_S), (2, NS_PER_S + 1), (22, NS_PER_S)], ids=["second", "nanosecond", "size"])
def test_a_header_that_has_changed(answer_of, tmp_path, number, changed_ns):
    folder = tmp_path / "include"
    write_header(folder / "answer.h", '#include "far/below/answer.h"\n')
    write_header(folder / "far/below/answer.h", "#define ANSWER 1\n")
    assert [answer_of("--cuda-include", str(folder)) for _ in range(2)] == [(1, False), (1, True)]
    write_header(folder / "far/below/answer.h", f"#define ANSWER {number}\n", changed_ns)
    assert answer_of("--cuda-include", str(folder)) == (number, False)


@pytest.fixture
def headers_too_deep(tmp_path):
    """A deep folder of headers with a path longer than the system allows; deleted at the end."""
    folder = tmp_path / "deep"
    path = header_folder(folder, 1)
    below = os.open(folder, os.O_RDONLY)
    for _ in range(PATH_MAX // len(LONG_NAME) + 1):
        os.mkdir(LONG_NAME, dir_fd=below)
        above, below = below, os.open(LONG_NAME, os.O_RDONLY, dir_fd=below)
        os.close(above)
    os.close(below)
    yield path
    shutil.rmtree(folder)


def test_headers_that_cannot_all_be_looked_at_make_no_hit(answer_of, headers_too_deep):
    assert [answer_of("--cuda-include", headers_too_deep) for _ in range(2)] == [(1, False), (1, False)]


# ---- libraries ----

def found_beside_nvrtc(pattern):
    nvrtc = os.environ.get("GPUREST_NVRTC")
    if not nvrtc:
        pytest.skip("GPUREST_NVRTC does not say where NVRTC is")
    return sorted(pathlib.Path(nvrtc).resolve().parent.glob(pattern))


@pytest.fixture
def library_folder(tmp_path):
    """Copies of NVRTC and its dependencies; deleted at the end, because they are large."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    shutil.copy(os.environ.get("GPUREST_NVRTC") or found_beside_nvrtc("*")[0], folder)
    for path in found_beside_nvrtc("libnvrtc-builtins.so.*"):
        shutil.copy(path, folder)
    yield folder
    shutil.rmtree(folder)


def make_another_build_of(path):
    """Changes the library's build id, or its time if it has none, but nothing of its behaviour."""
    content = path.read_bytes()
    at = content.find(BUILD_ID_NOTE)
    if at >= 0:
        with open(path, "r+b") as library:
            library.seek(at + len(BUILD_ID_NOTE))
            library.write(bytes(20))
    os.utime(path, (1, 1))


@pytest.mark.parametrize("pattern", ["libnvrtc.so.*", "libnvrtc-builtins.so.*", "libnvJitLink.so.*"])
def test_another_build_of_a_library(answer_of, library_folder, tmp_path, pattern):
    if not list(library_folder.glob(pattern)):
        found = found_beside_nvrtc(pattern)
        if not found:
            pytest.skip("scripts/fetch-nvrtc.sh --tests fetches nvJitLink; it is not beside NVRTC")
        shutil.copy(found[0], library_folder)
    nvrtc, = library_folder.glob("libnvrtc.so.*")
    arguments = "--nvrtc", str(nvrtc), "--cuda-include", header_folder(tmp_path / "include", 1)
    assert [answer_of(*arguments) for _ in range(2)] == [(1, False), (1, True)]
    for path in library_folder.glob(pattern):
        make_another_build_of(path)
    assert [answer_of(*arguments) for _ in range(2)] == [(1, False), (1, True)]


# ---- callers ----

def large_source(number):
    """A module with some hundred KiB of code."""
    words = ", ".join(str(number * 1000000 + i) for i in range(1, 15000))
    return f'__device__ int table[] = {{{words}}};\nextern "C" __global__ void first(int *p) {{ *p = table[*p]; }}'


def test_one_callers_code_costs_another_none(start, tmp_path):
    folder = tmp_path / "cache"
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}, bob={}), "--cache", str(folder), "--cache-mib", "1")
    alice, bob = as_caller(service, "alice"), as_caller(service, "bob")

    def is_cached(client, source):
        assert client.put(S).status == 201
        made = client.put_cuda(S + "/modules/m", source)
        assert made.status == 201 and client.delete(S).status == 204
        return made.json()["cached"]

    small = 'extern "C" __global__ void nothing() {}'
    assert not is_cached(bob, small), "the oldest of all"
    assert not any(is_cached(alice, large_source(i)) for i in range(10))
    held = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert MIB / 2 < held <= MIB, "it was filled"
    assert is_cached(bob, small)
    assert not is_cached(alice, large_source(0)), "her own oldest one has made room"
