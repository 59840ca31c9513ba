"""Programs for the driver's interface against a service, unchanged: one for each family of calls. What they check is in their sources."""
import os
import pathlib
import re
import signal
import struct
import subprocess

import pytest

from fatbins import entry, fatbin, images
from service_under_test import Service, until

BACKEND = os.environ.get("GPUREST_TEST_BACKENDS", "cpu").split(",")[0]
FAILED = re.compile(r"^gpurest: \w+:0: .*$", re.M)  # what a device says once


def test_vector_add(run_program, url):
    assert run_program("vector_add", url=url)[0] == "Result = PASS\n"


@pytest.mark.parametrize("name", ["graphs", "memory", "runtime_textures", "streams", "textures", "threads"])
def test_program(run_program, url, name):
    assert run_program(name, url=url)[0] == "PASS\n"


def test_textures_that_are_refused_are_named_once(run_program, url):
    said = [line for line in run_program("textures", url=url)[1].splitlines() if line.endswith("not supported, CUDA_ERROR_NOT_SUPPORTED")]
    assert len(said) == len(set(said)) == 5 and "gpurest: textures: mip levels: not supported, CUDA_ERROR_NOT_SUPPORTED" in said, said
    assert "mip levels" in run_program("runtime_textures", url=url)[1]


def test_a_graph_as_text(run_program, url, tmp_path):
    run_program("graphs", url=url)
    text = (tmp_path / "graph.dot").read_text()
    assert text == 'digraph dot {\nn0 [label="allocation"];\nn1 [label="fill"];\nn0 -> n1;\n}\n'


def test_runtime(run_program, url):
    out, said = run_program("runtime", url=url)
    assert out == "PASS\n" and said.count("cudaMallocManaged is not supported") == 1 and "of_both" in said, said


def test_modules_of_every_form(run_program, url, tmp_path):
    for name, data in images().items():
        (tmp_path / name).write_bytes(data)
    assert run_program("modules", *images(), url=url)[0] == "PASS\n"


@pytest.fixture
def links(run_program, executable, tmp_path):  # noqa: F811
    """links(*arguments of the service, program=[its arguments]): what the program prints."""

    def run(*arguments, program):
        service = Service(executable, tmp_path, *arguments)
        try:
            return run_program("links", *program, url=f"http://127.0.0.1:{service.port}")[0]
        finally:
            service.stop()

    return run


def test_links(links, tmp_path):
    """The cpu device reads no library, and needs no setting for one: it has the functions of CUDA's device runtime in itself. A GPU takes them from there."""
    library = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64" / "libcudadevrt.a"
    if BACKEND == "cpu":
        library = tmp_path / "libcudadevrt.a"
        library.write_bytes(b"!<arch>\n" + bytes(60))
    settings = [] if BACKEND == "cpu" else ["--allow-binary-images"]
    assert links("--backends", BACKEND, *settings, program=["cooperative", library] if library.exists() else []) == "PASS\n"


def test_links_by_a_driver(links, build, tmp_path):
    """A library goes to the linker of a GPU's driver, where the service takes such. The GPU is not there: the driver is a fake."""
    fake = build / "tests" / "support" / "libcuda.so.1"
    if not fake.exists():
        pytest.skip("the fake driver is not built")
    library = tmp_path / "twice.a"
    library.write_bytes(b"!<arch>\n of twice")
    settings = ["--backends", "cuda", "--libcuda", str(fake), "--vendor-libraries", "off", "--allow-binary-images"]
    assert links(*settings, program=["library", library]) == "PASS\n"


@pytest.mark.skipif(BACKEND != "cpu", reason="these images are not for the cpu device")
@pytest.mark.parametrize("name,data,result", [
    ("cubin", b"\x7fELF\x02" + bytes(200), "CUDA_ERROR_NO_BINARY_FOR_GPU"), ("only_newer", fatbin(entry(b"x\0", architecture=120)), "CUDA_ERROR_NO_BINARY_FOR_GPU"),
    ("empty", b"", "CUDA_ERROR_INVALID_IMAGE"), ("cut", fatbin(struct.pack("<HHIQ", 1, 0x101, 64, 1 << 40) + bytes(48)), "CUDA_ERROR_INVALID_IMAGE"),
    ("not_packed", fatbin(entry(b"abcdefgh", flags=0x8011, unpacked=100)), "CUDA_ERROR_INVALID_IMAGE"), ("text", b"hello", "CUDA_ERROR_INVALID_IMAGE")])
def test_images_that_do_not_load(run_program, url, tmp_path, name, data, result):
    (tmp_path / name).write_bytes(data)
    _, said = run_program("modules", name, url=url, code=1)
    assert "cuModuleLoad(&m, argv[i])" in said and result in said
    if "NO_BINARY" in result:
        assert "PTX" in said


def test_faults_stick(run_program, url):
    out, said = run_program("faults", url=url)
    assert out == "PASS\n" and len(FAILED.findall(said)) == 2, said  # one for each fault


def test_launches_are_few_requests(run_program, url):
    _, said = run_program("streams", url=url, GPUREST_TRACE="1")
    requests = sum(int(n) for n in re.findall(r"us, (\d+) requests", said))
    assert said.count("cuLaunchKernel = CUDA_SUCCESS") == 2000 and requests < 60, requests


def test_what_kernels_print_comes_with_one_launch_and_with_several(run_program, url):
    assert run_program("streams", "print", url=url)[0] == 3 * "hello\n" + "PASS\n"


def test_a_pipeline_is_one_request_for_each_wait(run_program, url):
    """60 rounds of copy, launch and copy back, with three waits; copies to pinned memory come with the frame."""
    out, said = run_program("streams", "pipeline", url=url, GPUREST_TRACE="1")
    waits = re.findall(r"cuEventSynchronize = CUDA_SUCCESS, [\d.]+ us, (\d+) requests", said)
    copies = re.findall(r"cuMemcpyDtoHAsync_v2 = CUDA_SUCCESS, [\d.]+ us, (\d+) requests", said)
    assert out == "PASS\n" and waits == ["1", "1", "1"] and set(copies) == {"0"} and len(copies) == 61, said


def test_what_is_measured_runs(run_program, url):
    names = [line.split()[0] for line in run_program("speed", "20", url=url)[0].splitlines()]
    assert names == ["context", "module", "launch_of_many", "launch_and_wait", "there_and_back", "graph_of_20_and_wait"]


@pytest.mark.parametrize("name,rows", [("wrong_calls", 325), ("wrong_runtime_calls", 90)])
def test_wrong_calls(run_program, url, name, rows):
    """They return what NVIDIA's libraries did."""
    out, said = run_program(name, url=url)
    assert said.splitlines()[-1].endswith(" 0 wrong")
    assert len(out.splitlines()) >= rows


def test_without_a_service(run_program, tmp_path):
    out, said = run_program("vector_add", url=f"unix://{tmp_path}/nobody", code=1)
    assert "CUDA_ERROR_NO_DEVICE" in said and "cuDeviceGetCount" in said and said.count("no device: no connection") == 1 and out == ""


def test_the_runtime_without_a_service(run_program, tmp_path):
    """Kernels are registered, and the first call says that there is no device."""
    out, said = run_program("runtime", url=f"unix://{tmp_path}/nobody", code=1)
    assert "cudaErrorNoDevice" in said and said.count("no device: no connection") == 1 and out == ""


def test_only_the_device_that_is_asked_for(run_program, url):
    assert run_program("vector_add", url=url, GPUREST_DEVICE=f"{BACKEND}:0")[0] == "Result = PASS\n"
    assert "CUDA_ERROR_NO_DEVICE" in run_program("vector_add", url=url, code=1, GPUREST_DEVICE="cuda:77")[1]


def test_the_session_ends_with_the_program(run_program, service, url):
    run_program("vector_add", url=url)
    assert service.client().get("/v1/sessions").json()["items"] == []


def test_a_named_session_stays(run_program, service, url):
    run_program("vector_add", url=url, GPUREST_SESSION="of-the-shim")
    assert [item["id"] for item in service.client().get("/v1/sessions").json()["items"]] == ["of-the-shim"]
    assert service.client().delete("/v1/sessions/of-the-shim").status == 204


CHECKED = pytest.mark.skipif(BACKEND != "cpu", reason="the cpu device has the option")
HIT = '========= Program hit {} (error {}) due to "{}" {}.'
ILLEGAL = HIT.format("CUDA_ERROR_ILLEGAL_ADDRESS", 700, "an illegal memory access was encountered by a kernel", "on CUDA API call to cuCtxSynchronize")


def report(out):
    """The lines of memcheck, with addresses as their distance from the allocation's; and the program's own, in their places."""
    start = re.search(r"allocation at 0x([0-9a-f]+) ", out)
    base = int(start[1], 16) if start else 0
    return re.sub(r"0x[0-9a-f]{6,}", lambda m: f"P{int(m[0], 16) - base:+d}", out).splitlines()


def finding(what, at, who, *more):
    return [f"========= {what}", f"=========     at {at}", f"=========     by {who}", *(f"=========     {line}" for line in more), "========="]


@CHECKED
def test_memory_checks(run_program, url):
    """What is right passes, in the form that compute-sanitizer has; without memcheck a fault is one line on standard error."""
    out, said = run_program("vector_add", url=url, GPUREST_MEMCHECK="1")
    assert out.splitlines() == ["========= GPUREST MEMCHECK", "Result = PASS", "========= ERROR SUMMARY: 0 errors"] and not said, (out, said)
    out, said = run_program("faults", url=url, GPUREST_MEMCHECK="1")
    assert out.count("=========     at fault, PTX line 26\n") == 2 and "ERROR SUMMARY: 4 errors" in out and not FAILED.search(said), (out, said)
    for off in ({}, {"GPUREST_MEMCHECK": "0"}, {"GPUREST_MEMCHECK": ""}):
        out, said = run_program("memcheck", "store", str(1 << 38), "wait", url=url, **off)
        assert out == "store\nend\n" and len(FAILED.findall(said)) == 1, (out, said)


@CHECKED
@pytest.mark.parametrize("kernel,offset,how,found", [
    ("store", 1032, "wait", finding("Invalid __global__ write of size 4 bytes", "store, PTX line 9", "thread (0,0,0) in block (0,0,0)",
                                    "Address P+1032 is out of bounds", "and is 9 bytes after the nearest allocation at P+0 of size 1024 bytes")),
    ("load", -4, "wait", finding("Invalid __global__ read of size 4 bytes", "load, PTX line 16", "thread (0,0,0) in block (0,0,0)",
                                 "Address P-4 is out of bounds", "and is 4 bytes before the nearest allocation at P+0 of size 1024 bytes")),
    ("add", 1024, "wait", finding("Invalid __global__ atomic of size 4 bytes", "add, PTX line 23", "thread (0,0,0) in block (0,0,0)",
                                  "Address P+1024 is out of bounds", "and is 1 bytes after the nearest allocation at P+0 of size 1024 bytes")),
    ("vector", 1008 + 16, "threads", finding("Invalid __global__ write of size 16 bytes", "vector, PTX line 30", "thread (0,0,0) in block (0,0,0)",
                                             "Address P+1024 is out of bounds", "and is 1 bytes after the nearest allocation at P+0 of size 1024 bytes")),
    ("store", 16, "freed", finding("Invalid __global__ write of size 4 bytes", "store, PTX line 9", "thread (0,0,0) in block (0,0,0)",
                                   "Address P+16 is out of bounds", "and is inside the freed allocation at P+0 of size 1024 bytes")),
    ("second", 1024, "wait", finding("Invalid __global__ write of size 4 bytes", "second, PTX line 52", "thread (0,1,0) in block (0,0,1)",
                                     "Address P+1024 is out of bounds", "and is 1 bytes after the nearest allocation at P+0 of size 1024 bytes")),
    ("share", 64, "wait", finding("Invalid __shared__ write of size 8 bytes", "share, PTX line 37", "thread (0,0,0) in block (0,0,0)", "Address 0x40 is out of bounds")),
])
def test_memory_checks_name_the_access(run_program, url, kernel, offset, how, found):
    out, said = run_program("memcheck", kernel, str(offset), how, url=url, GPUREST_MEMCHECK="1")
    assert report(out) == [kernel, "========= GPUREST MEMCHECK", *found, ILLEGAL, "=========", "end", "========= ERROR SUMMARY: 2 errors"] and not said, (out, said)


@CHECKED
def test_memory_checks_tell_the_other_faults(run_program, url):
    out = report(run_program("memcheck", "store", "2", "wait", url=url, GPUREST_MEMCHECK="1")[0])
    assert "=========     Address P+2 is misaligned" in out and "=========     and is inside the nearest allocation at P+0 of size 1024 bytes" in out, out
    assert any("CUDA_ERROR_MISALIGNED_ADDRESS (error 716)" in line for line in out), out
    out = report(run_program("memcheck", "load", "0", "fresh", url=url, GPUREST_MEMCHECK="1")[0])
    assert "========= Uninitialized __global__ memory read of size 4 bytes" in out and "=========     Address P+0 was never written" in out, out
    out = run_program("memcheck", "stop", "0", "wait", url=url, GPUREST_MEMCHECK="1")[0]
    assert "(error 719)" in out and "trap in stop, PTX line 44" in out and "ERROR SUMMARY: 1 error\n" in out and "Invalid" not in out, out


@CHECKED
@pytest.mark.parametrize("how", ["closed", "unread", "without"])
def test_memory_checks_of_a_program_whose_output_nobody_takes(run_program, url, how):
    """The report goes to standard error, and the program to its own end."""
    out, said = run_program("memcheck", "store", "1032", how, url=url, GPUREST_MEMCHECK="1")
    assert "Invalid" not in out and "========= Invalid __global__ write" in said and said.endswith("ERROR SUMMARY: 2 errors\n"), (out, said)


@CHECKED
def test_memory_checks_show_names_on_their_line(run_program, url):
    out, _ = run_program("memcheck", "line", "1032", "wait", url=url, GPUREST_MEMCHECK="1")
    assert re.search(r"^=========     at line, PTX line \d+ in a\?b\?\[2K%s\.cu:5$", out, re.M), out


@CHECKED
def test_memory_checks_at_the_end_of_a_program(run_program, url):
    """What is queued still runs, unless the program's own memory would be written; a child's end, and one without exit(), sum up nothing."""
    out, _ = run_program("memcheck", "store", "1032", "leave", url=url, code=3, GPUREST_MEMCHECK="1")
    assert 'Invalid __global__ write' in out and '" when it ended.' in out and out.endswith("ERROR SUMMARY: 2 errors\n"), out
    out, _ = run_program("memcheck", "store", "1032", "copy", url=url, GPUREST_MEMCHECK="1")
    assert "========= The program ended before it waited: 3 operations did not run\n" in out and "Invalid" not in out, out
    out, _ = run_program("memcheck", "store", "1032", "fork", url=url, GPUREST_MEMCHECK="1")
    assert out.count("ERROR SUMMARY") == 1 and out.count("GPUREST MEMCHECK") == 1 and out.count("Invalid") == 1, out
    out, _ = run_program("memcheck", "store", "1032", "abort", url=url, code=-signal.SIGABRT, GPUREST_MEMCHECK="1")
    assert "Invalid __global__ write" in out and "ERROR SUMMARY" not in out, out


@CHECKED
def test_memory_checks_that_cannot_be_are_refused(run_program, service, url, build, executable, tmp_path):  # noqa: F811
    """A device without them, and a session that is there without them: a line says so, no report promises anything."""
    service.client().put("/v1/sessions/unchecked", {}).expect(201)
    out, said = run_program("vector_add", url=url, code=1, GPUREST_MEMCHECK="1", GPUREST_SESSION="unchecked")
    assert "no session on cpu:0: " in said and "=====" not in out, (out, said)
    fake = build / "tests" / "support" / "libcuda.so.1"
    if not fake.exists():
        pytest.skip("the fake driver is not built")
    other = Service(executable, tmp_path, "--backends", "cuda", "--libcuda", str(fake), "--vendor-libraries", "off")
    try:
        out, said = run_program("vector_add", url=f"http://127.0.0.1:{other.port}", code=1, GPUREST_MEMCHECK="1")
    finally:
        other.stop()
    assert "no session on cuda:0: this device does not support memcheck\n" in said and "=====" not in out, (out, said)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_service_ends_meanwhile(build, library, tmp_path, executable, how):
    service = Service(executable, tmp_path)
    program = subprocess.Popen([build / "tests" / "sdk" / "shim" / "programs" / "gone"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "LD_LIBRARY_PATH": str(library.parent), "GPUREST_URL": f"http://127.0.0.1:{service.port}"})
    assert program.stdout.readline() == "allocated\n"
    service.process.send_signal(how)
    service.process.wait(120)
    out, errors = program.communicate("go\ngo\n", timeout=300)
    assert out == "ended\nPASS\n" and program.returncode == 0, (out, errors)
    assert len(FAILED.findall(errors)) == 1, errors


@pytest.mark.parametrize("how", ["reset", "upgrade"])
def test_no_kernel_gets_an_address_of_before(executable, tmp_path, build, library, how):  # noqa: F811
    """A reset by somebody else, or a restore, may put other buffers where the program's were: it hears of that, and nothing is written."""
    service = Service(executable, tmp_path, "--state", str(tmp_path / "state"))
    try:
        program = subprocess.Popen([build / "tests" / "sdk" / "shim" / "programs" / "restored"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=tmp_path,
                                   env={**os.environ, "LD_LIBRARY_PATH": str(library.parent), "GPUREST_URL": f"http://127.0.0.1:{service.port}"})
        assert program.stdout.readline() == "ready\n"
        client = service.client()
        (session,) = client.get("/v1/sessions").expect(200).json()["items"]
        path = "/v1/sessions/" + session["id"]
        if how == "reset":
            client.post(path + "/reset", {}).expect(200)
        else:
            os.kill(service.process.pid, signal.SIGUSR2)
            until(lambda: (tmp_path / "stdout").read_text().count(" serving") == 2, service.stderr)
        out, err = program.communicate("go\n", timeout=300)
        assert program.returncode == 0 and out == "CUDA_ERROR_DEVICE_UNAVAILABLE\n", (program.returncode, out, err)
        assert "the session's generation is " in err and "take them anew" in err
    finally:
        service.stop()
