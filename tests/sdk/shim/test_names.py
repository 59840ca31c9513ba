"""The names of the library: all of the driver's and no others, by version, and what is refused."""
import ctypes
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT

SHIM = ROOT / "sdk" / "shim"
ROWS = re.findall(r"^(SUPPORTED|REFUSED|SAME)\((\w+), (\w+), (\d+), (\w+)", (SHIM / "src" / "driver.def").read_text(), re.M)
RUNTIME_ROWS = re.findall(r"^(SUPPORTED|FORWARD|OWN|REFUSED|SAME)\((\w+), ", (SHIM / "runtime" / "runtime.def").read_text(), re.M)
# What is not in the headers' lists: the calls of nvcc's output, and three that return no error.
RUNTIME_MORE = {*("__cuda" + name for name in (
    "GetKernel", "GetProcAddress", "InitModule", "LaunchKernel", "LaunchKernel_ptsz", "PopCallConfiguration", "PushCallConfiguration", "RegisterFatBinary", "RegisterFatBinaryEnd",
    "RegisterFunction", "RegisterHostVar", "RegisterManagedVar", "RegisterUnifiedTable", "RegisterVar", "UnregisterFatBinary")), "cudaCreateChannelDesc", "cudaGetErrorName",
    "cudaGetErrorString"}
SUCCESS, INVALID_VALUE, NOT_INITIALIZED, NOT_FOUND, NOT_SUPPORTED = 0, 1, 3, 500, 801
FOUND, NAME_UNKNOWN, TOO_OLD = 0, 1, 2


def resolve(driver, name, version, flags=0):
    """(result, address, status)"""
    address, status = ctypes.c_void_p(), ctypes.c_int(-1)
    result = driver.cuGetProcAddress_v2(name.encode(), ctypes.byref(address), version, ctypes.c_uint64(flags), ctypes.byref(status))
    return result, address.value, status.value


def address_of(driver, symbol):
    return ctypes.cast(getattr(driver, symbol), ctypes.c_void_p).value


def test_only_names_of_the_driver_are_visible(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    visible = {line.split()[-1] for line in listed.splitlines()}
    assert visible == {symbol for _, symbol, *_ in ROWS} and len(visible) >= 637


def test_the_library_needs_the_c_library_alone(library):
    needed = re.findall(r"NEEDED.*\[(.*?)\]", subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout)
    assert {name.split(".")[0] for name in needed} <= {"libc", "ld-linux-x86-64", "ld-linux-aarch64", "libasan", "libubsan", "libtsan", "libm"}


def test_the_runtimes_names_are_visible_with_their_version(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library.with_name("libcudart.so.13")], capture_output=True, text=True, check=True).stdout
    visible = {line.split()[-1] for line in listed.splitlines()} - {"libcudart.so.13"}
    assert visible == {f"{symbol}@@libcudart.so.13" for symbol in {symbol for _, symbol in RUNTIME_ROWS} | RUNTIME_MORE} and len(visible) == 422


@pytest.mark.skipif(not pathlib.Path("/usr/local/cuda/lib64/libcudart.so.13").exists(), reason="no CUDA toolkit is installed")
def test_the_runtime_has_the_names_of_nvidias(library):
    names = [subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout for path in
             ("/usr/local/cuda/lib64/libcudart.so.13", library.with_name("libcudart.so.13"))]
    theirs, ours = ({line.split()[-1] for line in listed.splitlines()} for listed in names)
    assert theirs == ours


def test_the_runtime_needs_the_driver_alone(library):
    listed = subprocess.run(["readelf", "-d", library.with_name("libcudart.so.13")], capture_output=True, text=True, check=True).stdout
    needed = {name.split(".")[0] for name in re.findall(r"NEEDED.*\[(.*?)\]", listed)}
    assert "Library soname: [libcudart.so.13]" in listed
    assert "libcuda" in needed and needed <= {"libcuda", "libc", "ld-linux-x86-64", "ld-linux-aarch64", "libasan", "libubsan", "libtsan", "libm"}


@pytest.mark.parametrize("name,version,symbol", [
    ("cuMemPrefetchAsync", 8000, "cuMemPrefetchAsync"), ("cuMemPrefetchAsync", 12010, "cuMemPrefetchAsync"), ("cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v2"),
    ("cuStreamGetCtx", 9020, "cuStreamGetCtx"), ("cuStreamGetCtx", 12050, "cuStreamGetCtx_v2"), ("cuCtxCreate", 2000, "cuCtxCreate"),
    ("cuCtxCreate", 3020, "cuCtxCreate_v2"), ("cuCtxCreate", 11040, "cuCtxCreate_v3"), ("cuCtxCreate", 13000, "cuCtxCreate_v4"),
    ("cuCtxSynchronize", 12090, "cuCtxSynchronize"), ("cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"), ("cuMemAlloc", 13000, "cuMemAlloc_v2"),
    ("cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"), ("cuStreamGetCaptureInfo", 13000, "cuStreamGetCaptureInfo_v3")])
def test_a_version_gets_what_was_the_newest_then(driver, name, version, symbol):
    assert resolve(driver, name, version) == (SUCCESS, address_of(driver, symbol), FOUND)


def test_per_thread_streams_get_forms_of_their_own(driver):
    assert resolve(driver, "cuLaunchKernel", 13000, 2)[1] == address_of(driver, "cuLaunchKernel_ptsz")
    assert resolve(driver, "cuMemcpyHtoD", 13000, 2)[1] == address_of(driver, "cuMemcpyHtoD_v2_ptds")
    assert resolve(driver, "cuMemcpyHtoD", 13000, 1)[1] == address_of(driver, "cuMemcpyHtoD_v2")


@pytest.mark.parametrize("name,version,flags,expected", [
    ("cuNoSuchThing", 13000, 0, (NOT_FOUND, None, NAME_UNKNOWN)), ("", 13000, 0, (NOT_FOUND, None, NAME_UNKNOWN)),
    ("cuLaunchKernelEx", 11000, 0, (NOT_FOUND, None, TOO_OLD)), ("cuInit", 13010, 0, (INVALID_VALUE, None, -1)), ("cuInit", 13000, 8, (INVALID_VALUE, None, -1))])
def test_names_that_are_not_there(driver, name, version, flags, expected):
    assert resolve(driver, name, version, flags) == expected


def test_every_name_resolves_in_its_version(driver):
    missing = [symbol for _, symbol, name, version, _ in ROWS if resolve(driver, name, int(version), 2 if symbol.endswith(("_ptds", "_ptsz")) else 0)[0] != SUCCESS]
    assert not missing


def test_what_is_refused_says_so_once(library):
    code = f"import ctypes; d = ctypes.CDLL({str(library)!r}); print([d.cuTexRefCreate(None), d.cuTexRefCreate(None), d.cuIpcGetMemHandle(None, 0)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == str([NOT_SUPPORTED] * 3)
    assert done.stderr.count("cuTexRefCreate") == 1 and done.stderr.count("cuIpcGetMemHandle") == 1


def test_nothing_works_before_init(driver):
    count = ctypes.c_int()
    assert driver.cuDeviceGetCount(ctypes.byref(count)) == NOT_INITIALIZED
    assert driver.cuMemFree_v2(ctypes.c_uint64(0)) == NOT_INITIALIZED
    assert driver.cuDriverGetVersion(ctypes.byref(count)) == SUCCESS and count.value == 13000
    text = ctypes.c_char_p()
    assert driver.cuGetErrorName(700, ctypes.byref(text)) == SUCCESS and text.value == b"CUDA_ERROR_ILLEGAL_ADDRESS"
    assert driver.cuGetErrorString(700, ctypes.byref(text)) == SUCCESS and b"illegal" in text.value
    assert driver.cuGetErrorName(12345, ctypes.byref(text)) == INVALID_VALUE and text.value is None


def test_attributes_have_the_services_names():
    ours = dict(re.findall(r"ATTRIBUTE\((\w+), (\d+),", (SHIM / "src" / "attributes.def").read_text()))
    theirs = dict(re.findall(r"ATTRIBUTE\(\w+, (\w+), (\d+)\)", (ROOT / "service" / "device" / "attributes.def").read_text()))
    assert ours == theirs and len(ours) > 100


@pytest.mark.skipif(not pathlib.Path("/usr/local/cuda/include/cudaEGLTypedefs.h").exists() or not shutil.which("gcc"), reason="no CUDA toolkit is installed")
@pytest.mark.parametrize("script", ["read_headers.py", "read_runtime.py"])
def test_the_table_is_what_the_headers_say(script):
    version = re.search(r"#define CUDA_VERSION (\d+)", pathlib.Path("/usr/local/cuda/include/cuda.h").read_text())[1]
    if version != "13000":
        pytest.skip(f"the table is of CUDA 13.0, the toolkit's version is {version}")
    done = subprocess.run([sys.executable, SHIM / "table" / script, "--check"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_pages_are_what_the_tables_say():
    done = subprocess.run([sys.executable, SHIM / "table" / "write_docs.py", "--check"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
