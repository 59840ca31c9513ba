"""The command line tool against the real service: data, output, exit codes."""
import csv
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import threading

import pytest

SAXPY = """extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *z, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        z[i] = a * x[i] + y[i];
}
"""
TWICE = 'extern "C" __global__ void twice(unsigned char *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }'
OK, FAILED, USAGE, UNREACHABLE, AUTH, NOT_FOUND, FAULT, COMPILE, BUSY, DEGRADED, REGRESSED = range(11)


def npy(dtype, shape, data, fortran=False, version=1):
    """A .npy file made by hand, so that NumPy is not needed."""
    text = f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    head = b"\x93NUMPY" + bytes([version, 0])
    size = 10 if version == 1 else 12
    text += " " * (-(size + len(text) + 1) % 64) + "\n"
    return head + len(text).to_bytes(size - 8, "little") + text.encode() + data


def floats(values):
    values = list(values)
    return struct.pack(f"<{len(values)}f", *values)


@pytest.fixture
def job(tmp_path):
    (tmp_path / "saxpy.cu").write_text(SAXPY)
    (tmp_path / "x.npy").write_bytes(npy("<f4", "(1024,)", floats(range(1024))))
    (tmp_path / "y.npy").write_bytes(npy("<f4", "(1024,)", floats([1] * 1024), version=2))
    return tmp_path


RUN = ["run", "saxpy.cu", "saxpy", "--grid", "4", "--block", "256", "--arg", "f32:2.0", "--in", "x.npy", "--in", "y.npy"]


def test_run_reads_and_writes_npy(gpurest, job):
    done = gpurest(*RUN, "--out", "z.npy:f32[32,32]", "--arg", "i32:1024")
    assert done.returncode == OK, done.stderr
    assert done.stdout == b"" and b"(kernel " in done.stderr
    assert (job / "z.npy").read_bytes() == npy("<f4", "(32,32)", floats(2 * i + 1 for i in range(1024)))
    assert sorted(p.name for p in job.iterdir() if "part" in p.name) == []


def test_what_run_writes_is_an_array_for_numpy(gpurest, job):
    numpy = pytest.importorskip("numpy", reason="NumPy is not installed")
    for shape in ("1024", "32,32", "4,16,16"):
        assert gpurest("-q", *RUN, "--out", f"z.npy:f4[{shape}]", "--arg", "i32:1024").returncode == OK
        z = numpy.load(job / "z.npy")
        assert z.dtype == numpy.float32 and z.shape == tuple(map(int, shape.split(",")))
        assert (z.ravel() == 2 * numpy.arange(1024) + 1).all()


@pytest.mark.parametrize("name,dtype,size", [
    ("f16", "<f2", 2), ("f32", "<f4", 4), ("f64", "<f8", 8), ("bool", "|b1", 1), ("int8", "|i1", 1), ("i16", "<i2", 2), ("i32", "<i4", 4), ("i64", "<i8", 8),
    ("uint8", "|u1", 1), ("u16", "<u2", 2), ("u32", "<u4", 4), ("u64", "<u8", 8), ("f4", "<f4", 4), ("i1", "|i1", 1), ("u4", "<u4", 4),
])
def test_types_of_arrays_have_the_names_of_kernel_arguments_and_numpys(gpurest, tmp_path, name, dtype, size):
    (tmp_path / "set.cu").write_text('extern "C" __global__ void set(unsigned char *x) { x[threadIdx.x] = threadIdx.x + 1; }')
    done = gpurest("-q", "run", "set.cu", "set", "--grid", "1", "--block", str(2 * size), "--out", f"x.npy:{name}[2]")
    assert done.returncode == OK, done.stderr
    assert (tmp_path / "x.npy").read_bytes() == npy(dtype, "(2,)", bytes(range(1, 2 * size + 1)))


def test_help_names_the_types(gpurest):
    for command in ("run", "buf"):
        shown = gpurest("help", command).stdout
        assert b"DTYPE: int8, i16" in shown and b"TYPE: i8, i16" in shown


def test_run_takes_raw_bytes_from_standard_input(gpurest, tmp_path):
    (tmp_path / "twice.cu").write_text(TWICE)
    done = gpurest("-q", "run", "twice.cu", "twice", "--grid", "1", "--block", "8", "--inout", "-:-", "--arg", "i32:8", stdin=bytes(range(8)))
    assert done.returncode == OK and done.stdout == bytes(range(0, 16, 2)), done.stderr


def test_infinity_is_a_value(gpurest, job):
    infinite = [{"f32:2.0": "f32:-inf"}.get(one, one) for one in RUN]
    assert gpurest("-q", *infinite, "--out", "z.raw:4096", "--arg", "i32:1024").returncode == OK
    assert (job / "z.raw").read_bytes()[4:] == floats([float("-inf")] * 1023)


def test_quiet_is_quiet(gpurest, job):
    assert gpurest("-q", *RUN, "--out", "z.raw:4096", "--arg", "i32:1024").stderr == b""
    assert (job / "z.raw").read_bytes() == floats(2 * i + 1 for i in range(1024))


PARAMETER_BYTES_MAX = 32764  # of a kernel
STRUCT_WORDS = (PARAMETER_BYTES_MAX - 12) // 4  # beside a pointer and a count
BIG = """struct big { unsigned w[%d]; };
extern "C" __global__ void take(unsigned *out, unsigned n, big b)
{
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = b.w[i];
}
""" % STRUCT_WORDS
RUN_BIG = ["-q", "run", "big.cu", "take", "--grid", "1", "--block", "256", "--out", f"w.raw:{4 * STRUCT_WORDS}", "--arg", f"u32:{STRUCT_WORDS}"]


@pytest.mark.parametrize("name,head", [("b.raw", b""), ("b.npy", npy("<u4", f"({STRUCT_WORDS},)", b""))])
def test_run_takes_a_struct_from_a_file(gpurest, tmp_path, name, head):
    data = struct.pack(f"<{STRUCT_WORDS}I", *[40503 * i + 1 for i in range(STRUCT_WORDS)])
    (tmp_path / "big.cu").write_text(BIG)
    (tmp_path / name).write_bytes(head + data)
    done = gpurest(*RUN_BIG, "--struct", name)
    assert done.returncode == OK, done.stderr
    assert (tmp_path / "w.raw").read_bytes() == data


@pytest.mark.parametrize("size,words", [
    (4 * STRUCT_WORDS + 1, b"takes 32752 bytes, got 32753"),
    (PARAMETER_BYTES_MAX + 1, b"32765 bytes, a kernel's parameters at most 32764"),
    (0, b"has 0 bytes"),
])
def test_a_struct_of_another_size(gpurest, tmp_path, size, words):
    (tmp_path / "big.cu").write_text(BIG)
    (tmp_path / "b.raw").write_bytes(bytes(size))
    done = gpurest(*RUN_BIG, "--struct", "b.raw")
    assert done.returncode == FAILED and words in done.stderr, done.stderr
    assert not (tmp_path / "w.raw").exists()


@pytest.mark.parametrize("arguments,words", [
    (["--out", "z.npy:f4[1024]", "--arg", "i32:1024.5"], b"TYPE:VALUE"),
    (["--out", "z.npy:f4[1024]", "--arg", "i8:128"], b"TYPE:VALUE"),
    (["--out", "z.npy:f4[1024]", "--arg", "q:1"], b"TYPE:VALUE"),
    (["--out", "z.npy:f4[1024]", "--arg", "i64:9223372036854775808"], b"TYPE:VALUE"),
    (["--out", "z.npy:f4[1024]", "--arg", "u64:18446744073709551616"], b"TYPE:VALUE"),
    (["--out", "z.npy:f4[1024]", "--arg", "f32:1e39"], b"TYPE:VALUE"),
    (["--out", "z.npy:f4[1024]", "--arg", "f64:-1e400"], b"TYPE:VALUE"),
    (["--out", "z.npy:f3[1024]"], b"DTYPE[SHAPE]"),
    (["--out", "z.npy:i8[1024]"], b"not i8 and u8"),
    (["--out", "z.npy:u8[1024]"], b"not i8 and u8"),
    (["--out", "z.npy:f32"], b"DTYPE[SHAPE]"),
    (["--out", "z.npy:f4[99999999999,99999999999]"], b"DTYPE[SHAPE]"),
    (["--out", "z.npy"], b"DTYPE[SHAPE]"),
    (["--out", "z.npy:f4[0]"], b"has no elements"),
    (["--in", "/dev/null"], b"has no elements"),
    (["--inout", "/dev/null:z.npy"], b"has no elements"),
    (["--out"], b"needs a value"),
    (["--nonsense"], b"run does not take the option --nonsense"),
])
def test_wrong_arguments_of_run(gpurest, job, arguments, words):
    done = gpurest(*RUN, *arguments)
    assert done.returncode == USAGE and words in done.stderr, done.stderr
    assert not (job / "z.npy").exists()


@pytest.mark.parametrize("shape", ["0", "-1", "4,x", "4,", ",4", "1,1,1,1", "4294967296", "99999999999", "1.5", "", "4 "])
def test_shapes_that_are_none(gpurest, job, shape):
    for option in ("--grid", "--block"):
        others = {"--grid": "4", "--block": "256", option: shape}
        done = gpurest("run", "saxpy.cu", "saxpy", *[f"{name}={value}" for name, value in others.items()], "--arg", "f32:2.0", "--in", "x.npy", "--in", "y.npy",
                       "--out", "z.npy:f4[1024]", "--arg", "i32:1024")
        assert done.returncode == USAGE and option.encode() in done.stderr, done.stderr
        assert not (job / "z.npy").exists()


@pytest.mark.parametrize("content,words", [
    (npy("<f4", "(2, 2)", bytes(16), fortran=True), b"Fortran order"),
    (npy(">f4", "(4,)", bytes(16)), b"big-endian"),
    (npy("<c8", "(2,)", bytes(16)), b"dtype"),
    (npy("<f4", "(5,)", bytes(16)), b"length"),
    (npy("<f4", "(4,)", bytes(16))[:60], b"cut off"),
    (npy("<f4", "(-4,)", bytes(16)), b"shape"),
    (b"\x93NUMPY\x09\x00", b"cut off"),
    (npy("<f4", "(4611686018427387904, 4)", b""), b"too large"),
])
def test_files_that_are_no_arrays_to_take(gpurest, job, content, words):
    (job / "x.npy").write_bytes(content)
    done = gpurest(*RUN, "--out", "z.npy:f4[1024]", "--arg", "i32:1024")
    assert done.returncode == USAGE and words in done.stderr and b"x.npy" in done.stderr


def test_too_few_arguments_are_told_before_anything_runs(gpurest, job):
    done = gpurest(*RUN)
    assert done.returncode == FAILED and b"takes 5 arguments, got 3" in done.stderr


def test_a_source_that_does_not_compile_shows_where(gpurest, tmp_path):
    (tmp_path / "bad.cu").write_text('extern "C" __global__ void f() { int x = ; }')
    done = gpurest("run", "bad.cu", "f", "--grid", "1", "--block", "1")
    assert done.returncode == COMPILE and b"expected an expression" in done.stderr and b"^" in done.stderr
    for failed in (done, gpurest("compile", "bad.cu")):
        assert b"gpurest: bad.cu, line 1: " in failed.stderr and b"\nbad.cu(1): error: " in failed.stderr and b"kernel.cu" not in failed.stderr


def test_a_kernel_that_faults(gpurest, tmp_path):
    (tmp_path / "bad.cu").write_text('extern "C" __global__ void f(int *x) { x[1ll << 40] = 1; }')
    done = gpurest("run", "bad.cu", "f", "--grid", "1", "--block", "1", "--out", "x.raw:64")
    assert done.returncode == FAULT and not (tmp_path / "x.raw").exists()


def test_a_full_disk_leaves_the_old_file(gpurest, job):
    done = gpurest(*RUN, "--out", "/dev/full/z.npy:f4[1024]", "--arg", "i32:1024")
    assert done.returncode == FAILED and b"cannot be written" in done.stderr


def test_kernels_and_compile(gpurest, job):
    done = gpurest("kernels", "saxpy.cu", "--json")
    kernel = json.loads(done.stdout)["items"][0]
    if "cuda" in os.environ.get("GPUREST_TEST_BACKENDS", "cpu"):  # a driver reports sizes but no types
        assert kernel["name"] == "saxpy" and kernel["parameters"] == "4B@0 8B@8 8B@16 8B@24 4B@32"
    else:
        assert kernel["name"] == "saxpy" and kernel["parameters"].startswith("f32@0 ") and kernel["parameters"].endswith("@32")
    ptx = gpurest("compile", "saxpy.cu", "--", "--use_fast_math").stdout
    assert b".entry saxpy" in ptx
    assert gpurest("compile", "saxpy.cu", "-o", "saxpy.ptx").returncode == OK and (job / "saxpy.ptx").read_bytes().startswith(b"//")
    assert b"saxpy" in gpurest("kernels", "saxpy.ptx").stdout
    assert gpurest("compile", "saxpy.cu", "--", "--nonsense").returncode == FAILED


def test_a_session_is_opened_with_bounds_of_its_memory(gpurest):
    for part in ("0.25", "25%"):
        done = gpurest("connect", "cli-part", "--memory-fraction", part, "--pool-max", "64MiB")
        assert done.returncode == OK, done.stderr
        item = json.loads(gpurest("sessions", "get", "cli-part", "--json").stdout)["item"]
        assert item["memory_fraction"] == 0.25 and item["pool_bytes_max"] == 64 << 20
    assert gpurest("disconnect", "cli-part").returncode == OK
    assert gpurest("connect", "cli-part", "--memory-limit", "1MiB").returncode == OK
    assert json.loads(gpurest("sessions", "get", "cli-part", "--json").stdout)["item"]["memory_limit"] == 1 << 20
    assert gpurest("disconnect", "cli-part").returncode == OK
    for wrong in (["--memory-fraction", "2"], ["--memory-fraction", "much"], ["--memory-fraction", "50%", "--memory-limit", "1000"], ["--pool-max", "x"]):
        refused = gpurest("connect", "cli-part", *wrong)
        assert refused.returncode != OK and refused.stderr, wrong
    assert gpurest("sessions", "get", "cli-part").returncode == NOT_FOUND


def test_a_session_has_a_lease_and_says_how_it_ended(gpurest):
    assert gpurest("connect", "cli-leased", "--lease", "600", "--idle-timeout", "700").returncode == OK
    item = json.loads(gpurest("sessions", "get", "cli-leased", "--json").stdout)["item"]
    assert (item["lease_s"], item["idle_timeout_s"]) == (600, 700)
    shown = gpurest("sessions", "-o", "wide").stdout.decode()
    assert "LEASE S" in shown and "600" in shown and "LEASE S" not in gpurest("sessions").stdout.decode()
    assert gpurest("sessions", "rm", "cli-leased", "--yes").returncode == OK
    gone = gpurest("sessions", "get", "cli-leased")
    assert gone.returncode == NOT_FOUND and b"the session has ended: it was deleted" in gone.stderr and b"gpurest connect" in gone.stderr
    used = gpurest("--session", "cli-leased", "buffers")
    assert used.returncode != OK and b"the session has ended: it was deleted" in used.stderr
    assert gpurest("connect", "cli-leased", "--lease", "86401").returncode != OK


def test_a_session_joins_a_fault_domain(gpurest):
    for name, more in (("cli-left", []), ("cli-right", ["--take-turns"])):
        assert gpurest("connect", name, "--fault-domain", "cli-train", *more).returncode == OK
    item = json.loads(gpurest("sessions", "get", "cli-left", "--json").stdout)["item"]
    assert item["fault_domain"] == {"name": "cli-train", "shared_server": False, "sessions": 2}
    assert gpurest("top", "-1").stdout.count(b"cli-train") == 2
    for name in ("cli-left", "cli-right"):
        assert gpurest("disconnect", name).returncode == OK
    for wrong in (["--fault-domain", "Not Valid"], ["--fault-domain", ""], ["--take-turns"], ["--fault-domain"]):
        refused = gpurest("connect", "cli-left", *wrong)
        assert refused.returncode != OK and refused.stderr, wrong
    assert gpurest("sessions", "get", "cli-left").returncode == NOT_FOUND


def test_variables_of_modules(gpurest, service, tmp_path):
    assert gpurest("connect", "cli-variables").returncode == OK
    source = b"__device__ int counter[2] = {5, 6}; extern \"C\" __global__ void k() { counter[0]++; }"
    service.client().put_cuda("/v1/sessions/cli-variables/modules/m", source.decode()).expect(201)
    shown = json.loads(gpurest("modules", "get", "m", "--json").stdout)["item"]
    assert [(row["name"], row["bytes"]) for row in shown["globals"]] == [("counter", 8)]
    assert gpurest("buf", "get", "m:counter", "-").stdout == struct.pack("<2i", 5, 6)
    (tmp_path / "two").write_bytes(struct.pack("<2i", 7, 8))
    assert gpurest("buf", "put", "m:counter", "two").returncode == OK
    assert gpurest("buf", "get", "m:0", "-").stdout == struct.pack("<2i", 7, 8)
    assert gpurest("buf", "fill", "m:counter", "i32:1").returncode == OK
    assert gpurest("buf", "hexdump", "m:counter").stdout.startswith(b"00000000  01 00 00 00 01")
    (tmp_path / "one").write_bytes(bytes(4))
    assert gpurest("buf", "put", "m:counter", "one").returncode == USAGE
    assert gpurest("buf", "get", "m:nothing", "-").returncode == NOT_FOUND
    assert gpurest("disconnect", "--yes").returncode == OK


def test_textures(gpurest, service, tmp_path):
    assert gpurest("connect", "cli-textures").returncode == OK
    assert gpurest("texture", "create", "t", "2d", "f32[4,2]", "--filter", "linear", "--surface").returncode == OK
    (tmp_path / "texels").write_bytes(struct.pack("<8f", *range(8)))
    assert gpurest("texture", "put", "t", "texels").returncode == OK
    assert gpurest("texture", "get", "t", "-").stdout == struct.pack("<8f", *range(8))
    row = service.client().get("/v1/sessions/cli-textures/textures/t").json()
    assert (row["extent"], row["filter"], row["surface"], row["dimension"]) == ([4, 2], "linear", True, "2d")
    assert gpurest("texture", "create", "c", "cube_layered", "u8[4]", "--layers", "2", "--channels", "4", "--normalized").returncode == OK
    (tmp_path / "one").write_bytes(bytes(4))
    assert gpurest("texture", "put", "t", "one").returncode == USAGE
    for wrong in (["create", "x", "2d", "f32"], ["create", "x", "2d", "f32[4,]"], ["create", "x/y", "2d", "f32[4,2]"], ["create", "x", "2\"d", "f32[4,2]"],
                  ["create", "x", "2d", "f32[4,2]", "--layers", "many"], ["get", "t"], ["turn", "t"]):
        refused = gpurest("texture", *wrong)
        assert refused.returncode == USAGE and refused.stderr, wrong
    assert b"point, linear" in gpurest("texture", "create", "x", "2d", "f32[4,2]", "--filter", "cubic").stderr
    assert gpurest("texture", "rm", "t").returncode == OK
    assert gpurest("texture", "get", "t", "-").returncode == NOT_FOUND
    assert gpurest("disconnect", "--yes").returncode == OK


def test_a_cooperative_run(gpurest, tmp_path):
    (tmp_path / "k.cu").write_text("""#include <cooperative_groups.h>
        __device__ int total;
        extern "C" __global__ void k(int *out) {
            atomicAdd(&total, 1);
            cooperative_groups::this_grid().sync();
            if (threadIdx.x == 0) out[blockIdx.x] = total;
        }""")
    run = ("run", "k.cu", "k", "--grid", "4", "--block", "32", "--out", "out:16")
    assert gpurest(*run, "--cooperative").returncode == OK
    values = struct.unpack("<4i", (tmp_path / "out").read_bytes())
    assert len(set(values)) == 1 and values[0] % 128 == 0


def test_a_session_that_stays(gpurest, tmp_path):
    (tmp_path / "a").write_bytes(bytes(range(100)))
    assert gpurest("buffers").returncode == USAGE
    assert gpurest("connect", "cli-stays").returncode == OK
    assert gpurest("buf", "put", "a", "a").returncode == OK
    assert gpurest("buf", "get", "a", "b").returncode == OK and (tmp_path / "b").read_bytes() == bytes(range(100))
    assert gpurest("buf", "get", "a", "-").stdout == bytes(range(100))
    dump = gpurest("buf", "hexdump", "a", "--offset", "96").stdout.decode()
    assert dump == "00000060  60 61 62 63                                      |`abc|\n"
    assert gpurest("buf", "fill", "a", "u8:7").returncode == OK and gpurest("buf", "get", "a", "-").stdout == bytes([7]) * 100
    assert gpurest("buf", "fill", "a", "f32:-inf").returncode == OK and gpurest("buf", "get", "a", "-").stdout == b"\x00\x00\x80\xff" * 25
    assert gpurest("buf", "fill", "a", "f32:infinite").returncode == USAGE
    assert gpurest("buffers", "-o", "name").stdout == b"a\n"
    assert b"allocated_bytes" in gpurest("memory").stdout
    assert gpurest("buffers", "rm", "a").returncode == USAGE
    assert gpurest("buffers", "rm", "a", "--yes").returncode == OK
    assert gpurest("buffers", "get", "a").returncode == NOT_FOUND
    assert gpurest("reset", "--yes").returncode == OK
    assert gpurest("disconnect").returncode == OK and gpurest("sessions", "get", "cli-stays").returncode == NOT_FOUND
    assert gpurest("buffers").returncode == USAGE


def test_disconnect_refuses_while_something_runs(gpurest, tmp_path, service):
    endless = 'extern "C" __global__ void f(volatile int *x) { while (!*x) {} }'
    client = service.client()
    (tmp_path / "zero").write_bytes(bytes(4))
    assert gpurest("connect", "cli-busy").returncode == gpurest("buf", "put", "x", "zero").returncode == OK
    assert client.put_cuda("/v1/sessions/cli-busy/modules/m", endless).status == 201
    launch = {"module": "m", "kernel": "f", "grid": [1], "block": [1], "args": [{"buf": "x"}]}
    assert client.post("/v1/sessions/cli-busy/launches", launch, Prefer="respond-async").status == 202
    client.close()
    assert gpurest("disconnect").returncode == BUSY
    assert gpurest("disconnect", "--force").returncode == OK


def test_lists_in_every_form(gpurest):
    assert gpurest("connect", "cli-lists").returncode == OK
    document = json.loads(gpurest("sessions", "--json").stdout)
    assert document["schema"] == "gpurest.sessions/1" and document["generated_at"].endswith("Z")
    assert "cli-lists" in [item["id"] for item in document["items"]]
    assert "cli-lists" in [json.loads(line)["id"] for line in gpurest("sessions", "-o", "jsonl").stdout.splitlines()]
    rows = list(csv.DictReader(gpurest("sessions", "-o", "csv").stdout.decode().splitlines()))
    assert {"id": "cli-lists", "state": "ready"}.items() <= {k: v for r in rows if r["id"] == "cli-lists" for k, v in r.items()}.items()
    assert b"STATE" in gpurest("sessions").stdout and b"STATE" not in gpurest("sessions", "--no-header").stdout
    assert gpurest("sessions", "--fields", "id,usage.buffers", "-o", "csv").stdout.splitlines()[0] == b"id,usage.buffers"
    refused = gpurest("sessions", "--fields", "id,nonsense")
    assert refused.returncode == USAGE and not refused.stdout and b'unknown member "nonsense"; available: id, ' in refused.stderr
    assert b"\x1b[" not in gpurest("status").stdout
    assert gpurest("sessions", "rm", "cli-lists", "--yes").returncode == OK


def test_status_info_version_config_wait(gpurest):
    assert gpurest().stdout.startswith(b"ready\n") and gpurest("status").returncode == OK
    assert json.loads(gpurest("info", "--json").stdout)["item"]["devices"][0]["id"]
    assert b"gpurestd" in gpurest("version").stdout and gpurest("--version").returncode == OK
    assert b"source_body_bytes" in gpurest("config").stdout
    assert gpurest("wait", "--timeout", "10").returncode == OK
    assert gpurest("stat", "-c", "1").returncode == gpurest("top", "-1").returncode == OK


def test_latency_bench_and_diag(gpurest, tmp_path):
    rows = json.loads(gpurest("latency", "-c", "5", "--json").stdout)["items"]
    assert [r["what"] for r in rows] == ["ping", "empty launch", "4 KiB there and back"] and all(0 < r["min_us"] <= r["p99_us"] for r in rows)
    done = gpurest("bench", "h2d", "d2h", "--size", "1M", "--json")
    (tmp_path / "now.json").write_bytes(done.stdout)
    former = json.loads(done.stdout)
    for item in former["items"]:
        item["value"] *= 1e6
    (tmp_path / "better.json").write_text(json.dumps(former))
    assert gpurest("bench", "h2d", "--size", "1M", "--compare", "better.json").returncode == REGRESSED
    for item in former["items"]:
        item["value"] /= 1e12
    (tmp_path / "worse.json").write_text(json.dumps(former))
    assert gpurest("bench", "h2d", "--size", "1M", "--compare", "worse.json").returncode == OK
    assert gpurest("bench", "nothing").returncode == USAGE
    steps = json.loads(gpurest("diag", "--json").stdout)["items"]
    assert [s["result"] for s in steps] == ["ok"] * 5, steps


def test_help_manual_and_completion_name_every_command(bare):
    names = [line.split('"')[1] for line in (pathlib.Path(__file__).resolve().parents[3] / "sdk/cli/src/commands/commands.def").read_text().splitlines()
             if line.startswith("COMMAND(")]
    assert len(names) > 25
    for text in (bare("help").stdout, bare("help", "--man").stdout, *(bare("completion", shell).stdout for shell in ("bash", "zsh", "fish"))):
        for name in names:
            assert name.encode() in text
    for name in names:
        assert bare("help", name).returncode == OK
    assert subprocess.run(["bash", "-n"], input=bare("completion", "bash").stdout, check=False).returncode == 0
    if shutil.which("man"):
        assert subprocess.run(["man", "--warnings", "-l", "-"], input=bare("help", "--man").stdout, capture_output=True, check=False).stderr == b""


@pytest.mark.parametrize("arguments", [["nonsense"], ["sessions", "ls", "x"], ["buf", "put", "a"], ["run"], ["completion", "csh"], ["--output", "xml"],
                                       ["sessions", "get", "../x"], ["connect", "a/b"], ["connect", ""], ["--url"], ["help", "nonsense"], ["wait", "--timeout", "soon"]])
def test_usage_is_two(gpurest, arguments):
    done = gpurest(*arguments)
    assert done.returncode == USAGE and done.stderr.startswith(b"gpurest: ") and done.stdout == b""


def test_a_service_that_is_not_there(bare):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        done = bare("status", "--url", f"http://127.0.0.1:{s.getsockname()[1]}")
    assert done.returncode == UNREACHABLE and b"no connection" in done.stderr
    assert bare("wait", "--timeout", "1", "--url", "http://127.0.0.1:1").returncode == UNREACHABLE


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"no http at all\r\n\r\n"])
def test_something_else_is_there(bare, answer):
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        for _ in range(8):
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            peer.recv(65536)
            peer.sendall(answer)
            peer.close()

    threading.Thread(target=serve, daemon=True).start()
    done = bare("status", "--url", f"http://127.0.0.1:{listener.getsockname()[1]}", "--timeout-s", "5")
    listener.close()
    assert done.returncode in (FAILED, UNREACHABLE) and done.stderr.startswith(b"gpurest: ")


def test_a_token_that_is_kept(bare, tmp_path, service):
    url = f"http://127.0.0.1:{service.port}"
    done = bare("login", "--url", url, stdin=b"my-token\nrest\n")
    assert done.returncode == OK, done.stderr
    kept = tmp_path / ".config/gpurest/token"
    assert kept.read_text() == "my-token\n" and kept.stat().st_mode & 0o777 == 0o600
    assert bare("login", "--url", url, stdin=b"").returncode == USAGE
