"""Modules: valid requests, answers, and failures of compilation."""
import functools
import operator

import pytest

from conftest import VADD
from kernels import PTX

TEMPLATE = """
template <typename T> __global__ void scale(T *p, T by) { p[threadIdx.x] *= by; }
__device__ int counter;
__constant__ float table[4];
namespace ns { __global__ void touch(int *p) { atomicAdd(&counter, 1); *p = (int)table[0]; } }
"""


def post(client, session, body, **headers):
    return client.post(session + "/modules", body, **headers)


def test_raw_source(client, session):
    made = client.post(session + "/modules", VADD.encode(), Content_Type="text/x-cuda")
    info = made.json()
    assert made.status == 201 and info["id"].startswith("m_") and made.headers["Location"] == f"{session}/modules/{info['id']}"
    kernel = info["kernels"][0]
    assert kernel["name"] == kernel["mangled"] == "vadd"
    assert [(p["offset"], p["size"]) for p in kernel["params"]] == [(0, 8), (8, 8), (16, 8), (24, 4)]
    assert kernel["max_threads"] >= 32
    for member in ("registers", "shared_bytes", "local_bytes"):
        assert kernel[member] >= 0
    assert set(info) >= {"globals", "arch", "cached", "compile_ms", "log"}
    again = client.post(session + "/modules", VADD.encode(), Content_Type="text/x-cuda")
    assert again.status == 200 and again.json()["id"] == info["id"]


def test_get_list_delete(client, session):
    path = session + "/modules/m"
    assert client.put_cuda(path, VADD).status == 201
    assert client.put_cuda(path, VADD).status == 200
    assert client.put_cuda(path, VADD + "//").code == "spec_conflict"
    assert client.get(path).json()["kernels"][0]["name"] == "vadd"
    listed = client.get(session + "/modules").json()
    assert [m["id"] for m in listed["items"]] == ["m"] and listed["next_cursor"] is None
    assert client.get(path + "/log").headers["Content-Type"].startswith("text/plain")
    assert client.delete(path).status == 204
    for answer in (client.get(path), client.delete(path), client.get(path + "/log"), client.get(path + "/code")):
        assert answer.status == 404 and answer.code == "module_not_found"


def test_code_with_a_strong_tag(client, session):
    client.put_cuda(session + "/modules/m", VADD)
    code = client.get(session + "/modules/m/code")
    assert code.status == 200 and b".entry vadd" in code.body and code.headers["Content-Type"] == "application/vnd.gpurest.ptx"
    tag = code.headers["ETag"]
    assert tag.startswith('"')
    assert client.get(session + "/modules/m/code?format=ptx", If_None_Match=tag).status == 304
    assert client.get(session + "/modules/m/code?format=elf").code == "invalid_field"
    assert client.get(session + "/modules/m/code?form=ptx").code == "unknown_field"
    cubin = client.get(session + "/modules/m/code?format=cubin")
    assert cubin.status == 404 or (cubin.body[:4] == b"\x7fELF" and cubin.headers["ETag"] != tag)


def test_json_with_options_headers_and_templates(client, session):
    made = post(client, session, {"source": '#include "by.h"\n' + TEMPLATE, "headers": {"by.h": "// nothing"},
                                  "options": ["--std=c++17", "-DN=4", "--use_fast_math"],
                                  "name_expressions": ["scale<float>", "scale<int>"]})
    assert made.status == 201, made
    names = {kernel["name"]: kernel["mangled"] for kernel in made.json()["kernels"]}
    assert {"scale<float>", "scale<int>", "ns::touch"} <= set(names)
    assert names["scale<float>"].startswith("_Z") and names["scale<float>"] != names["scale<int>"]
    found = {g["name"]: g for g in made.json()["globals"]}
    if found:
        assert found["table"]["bytes"] == 16 and found["table"]["constant"] is True


def test_ptx(client, session):
    made = client.put(session + "/modules/p", PTX.encode(), Content_Type="application/vnd.gpurest.ptx").expect(201)
    assert made.json()["kernels"][0]["name"] == "put7"
    client.put(session + "/buffers/x", {"size": 4})
    client.post(session + "/launches", {"module": "p", "kernel": "put7", "grid": [1], "block": [1], "args": [{"buf": "x"}]}).expect(200)
    assert client.get(session + "/buffers/x/data").body == b"\7\0\0\0"


def test_bad_ptx(client, session):
    answer = client.post(session + "/modules", b".version 6.0\n.target sm_50\nnonsense", Content_Type="application/vnd.gpurest.ptx")
    assert answer.status == 422 and answer.code == "module_invalid"


@pytest.mark.parametrize("kind", ["cubin", "fatbin"])
def test_binary_images_are_switched_off(client, session, kind):
    assert client.post(session + "/modules", b"\x7fELF", Content_Type="application/vnd.gpurest." + kind).code == "feature_disabled"


@pytest.mark.parametrize("kind", ["cubin", "fatbin"])
def test_binary_images_are_taken_where_they_are_switched_on(start, kind):
    client = start("--allow-binary-images").client()
    assert client.put("/v1/sessions/b").status == 201
    modules = "/v1/sessions/b/modules"
    damaged = client.post(modules, b"\x7fELF\0\0", Content_Type="application/vnd.gpurest." + kind)
    assert damaged.status == 422 and damaged.code == "module_invalid"
    assert client.put_cuda(modules + "/m", VADD).status == 201
    cubin = client.get(modules + "/m/code?format=cubin")
    if kind == "cubin" and cubin.status == 200:
        loaded = client.put(modules + "/c", cubin.body, Content_Type="application/vnd.gpurest.cubin")
        assert loaded.status == 201 and [k["name"] for k in loaded.json()["kernels"]] == ["vadd"]
        assert client.get(modules + "/c/code?format=cubin").body == cubin.body


def test_other_media_types(client, session):
    assert client.post(session + "/modules", b"x", Content_Type="text/plain").code == "unsupported_media_type"


def test_compile_errors_name_line_and_column(client, session):
    answer = post(client, session, {"source": "// fine\n__global__ void k() {\n  undefined_thing = 1;\n}\n"})
    assert answer.status == 422 and answer.code == "compile_failed"
    compile_part = answer.json()["compile"]
    error = next(d for d in compile_part["diagnostics"] if d["severity"] == "error")
    assert error["line"] == 3 and "undefined_thing" in error["message"]
    assert isinstance(error["column"], int) and "undefined_thing" in compile_part["log"] and compile_part["log_truncated"] is False
    assert client.get(session).json()["state"] == "ready"


@pytest.mark.parametrize("option", ["--include-path=/etc", "-I/etc", "--time=/tmp/x", "--create-pch=x", "--gpu-architecture=sm_90a", "-arch=native",
                                    "--pre-include=x", "@file", "", "--std=c++99 ", "-Xptxas=-v"])
def test_options_not_allowed(client, session, option):
    answer = post(client, session, {"source": VADD, "options": [option]})
    assert answer.status == 400 and answer.code == "option_not_allowed"
    assert answer.json()["errors"][0]["pointer"] == "/options/0"


@pytest.mark.parametrize("body", [{}, {"source": 5}, {"source": VADD, "options": "x"}, {"source": VADD, "options": [1]}, {"source": VADD, "headers": []},
                                  {"source": VADD, "headers": {"a.h": 1}}, {"source": VADD, "headers": {"../a.h": ""}},
                                  {"source": VADD, "headers": {"/etc/a.h": ""}}, {"source": VADD, "name_expressions": {}}])
def test_bad_members(client, session, body):
    assert post(client, session, body).code == "invalid_field"


def test_unknown_members(client, session):
    assert post(client, session, {"source": VADD, "architecture": "sm_90"}).code == "unknown_field"


@pytest.mark.parametrize("header", ["/etc/passwd", "/proc/self/environ", "../../../etc/passwd"])
def test_no_file_of_the_host_is_readable(client, session, header):
    answer = post(client, session, {"source": f'#include "{header}"\n' + VADD})
    missing = post(client, session, {"source": '#include "/no/such/file"\n' + VADD})
    assert answer.status == missing.status == 422
    assert b"root:" not in answer.body and b"PATH=" not in answer.body
    assert len(answer.json()["compile"]["diagnostics"]) == len(missing.json()["compile"]["diagnostics"])


def test_compilation_is_cached(client, session):
    source = VADD + "// cached once"
    assert client.put_cuda(session + "/modules/first", source).json()["cached"] is False
    assert client.put("/v1/sessions/cachetwo").status == 201
    try:
        assert client.put_cuda("/v1/sessions/cachetwo/modules/second", source).json()["cached"] is True
    finally:
        client.delete("/v1/sessions/cachetwo")


def test_a_name_that_compiles_to_nothing(client, session):
    answer = post(client, session, {"source": VADD, "name_expressions": ["no_such_kernel<int>"]})
    assert answer.status == 422 and answer.code == "compile_failed"


def test_a_module_of_very_many_constants(client):
    """Each is searched among all earlier ones."""
    count = 170_000
    lines = "".join(f"xor.b32 r,r,{100_000 + i};\n" for i in range(count))
    text = (".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 r;\n.reg .b64 a;\n"
            f"ld.param.u64 a,[p];\nmov.u32 r,7;\n{lines}st.global.u32 [a],r;\nret;\n}}\n")
    path = client.post("/v1/sessions").json()["id"]
    path = "/v1/sessions/" + path
    assert client.request("PUT", path + "/modules/m", text.encode(), {"Content-Type": "application/vnd.gpurest.ptx"}).status == 201
    assert client.put(path + "/buffers/x", {"size": 4}).status == 201
    launch = {"module": "m", "kernel": "k", "grid": [1], "block": [1], "args": [{"buf": "x"}]}
    assert client.post(path + "/launches", launch).json()["state"] == "succeeded"
    expected = functools.reduce(operator.xor, range(100_000, 100_000 + count), 7)
    assert int.from_bytes(client.get(path + "/buffers/x/data").body, "little") == expected
    assert client.delete(path).status == 204
