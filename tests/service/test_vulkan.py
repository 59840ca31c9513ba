"""The vulkan device: GLSL and SPIR-V modules, their kernel tables and launches, named errors, and that what fails harms no other session.
Runs on whichever Vulkan device is here; lavapipe is one of Debian's packages."""
import base64
import pathlib
import re
import struct

import pytest

import vulkan_fuzz
from fixtures import vulkan  # noqa: F401
from service_under_test import Service

SCALE = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 3) const uint SCALE = 2;
layout(binding = 2) readonly buffer From { float from[]; };
layout(binding = 5) buffer To { float to[]; };
layout(push_constant) uniform Push { uint n; float plus; };
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        to[i] = from[i] * SCALE + plus;
}
"""
FREE = """#version 450
layout(local_size_x_id = 0) in;
layout(binding = 0) buffer To { uint to[]; };
shared uint sum;
void main()
{
    sum = 0;
    barrier();
    atomicAdd(sum, 1);
    barrier();
    to[gl_WorkGroupID.x] = sum;
}
"""
FAR = """#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430) buffer Words { uint at[]; };
layout(push_constant) uniform Push { Words words; uint value; };
void main()
{
    words.at[0] = value;
}
"""
SLOW = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer To { uint to[]; };
void main()
{
    for (uint i = 0; i < 60000; i++)
        atomicAdd(to[0], i);
}
"""


@pytest.fixture
def client(vulkan):  # noqa: F811
    one = vulkan.client()
    yield one
    one.close()
    after = vulkan.client()
    for left in after.get("/v1/sessions").json()["items"]:
        assert after.delete("/v1/sessions/" + left["id"]).status in (204, 404)
    after.close()


@pytest.fixture
def session(client):
    return new_session(client)


def new_session(client):
    return "/v1/sessions/" + client.post("/v1/sessions", {}).expect(201).json()["id"]


def put_glsl(client, path, source):
    return client.request("PUT", path, source, {"Content-Type": "text/x-glsl"})


def put_spirv(client, path, words):
    return client.request("PUT", path, words, {"Content-Type": "application/spirv"})


def put_json(client, path, **module):
    return client.put(path, module)


def launch(client, session, module, *args, grid=(1,), **more):
    return client.post(session + "/launches", {"module": module, "kernel": "main", "grid": list(grid), "args": list(args), **more})


def floats(answer):
    return struct.unpack(f"<{len(answer.body) // 4}f", answer.body)


def words(answer):
    return struct.unpack(f"<{len(answer.body) // 4}I", answer.body)


@pytest.fixture
def scale(client, session):
    """A session with the module m, and buffers a (0 to 99) and b."""
    put_glsl(client, session + "/modules/m", SCALE).expect(201)
    client.put_octets(session + "/buffers/a", struct.pack("<100f", *range(100))).expect(201)
    client.put(session + "/buffers/b", {"size": 400}).expect(201)
    return session


def scaled(client, session, module, **more):
    return launch(client, session, module, {"buf": "a"}, {"buf": "b"}, {"u32": 100}, {"f32": 0.5}, grid=[2], **more)


def test_the_device_tells_its_limits_and_features(client):
    device = client.get("/v1/devices/vulkan:0").expect(200).json()
    attributes = device["attributes"]
    assert device["backend"] == "vulkan" and device["compiler"] == "shaderc" and device["uuid"].startswith("VK-")
    assert attributes["max_push_constants_bytes"] >= 128 and attributes["feature_robust_buffer_access"] == 1
    assert attributes["feature_subgroup_basic"] in (0, 1) and "textures" in device["unsupported"]


def test_the_page_tells_what_the_device_tells(client):
    page = (pathlib.Path(__file__).parents[2] / "docs/reference/vulkan.md").read_text()
    rows = {row[0]: row[1].strip() for row in re.findall(r"^\| `(\w+)`[^|]*\|[^|]*\|[^|]*\|([^|]*)\|[^|]*\|$", page, re.M)}
    device = client.get("/v1/devices/vulkan:0").json()
    told = {word for word, has in rows.items() if has == "no"} - {"cuda_source", "builtin_kernels"}
    assert told == set(device["unsupported"]) - {"long_loops"} and rows["long_loops"] == "not on lavapipe"
    assert ("long_loops" in device["unsupported"]) == (device["vendor"] == "Mesa" and device["kind"] == "cpu")


def test_glsl_becomes_a_kernel(client, scale):
    kernel = client.get(scale + "/modules/m").expect(200).json()["kernels"][0]
    assert kernel["name"] == "main" and kernel["block"] == [64, 1, 1]
    assert [(p["offset"], p["size"], p["type"]) for p in kernel["params"]] == [(0, 8, "u64"), (8, 8, "u64"), (16, 4, "u32"), (20, 4, "f32")]
    assert scaled(client, scale, "m").expect(200).json()["state"] == "succeeded"
    assert floats(client.get(scale + "/buffers/b/data")) == tuple(2 * i + 0.5 for i in range(100))


def test_launches_are_timed(client, scale):
    assert scaled(client, scale, "m").expect(200).json()["gpu_us"] >= 0


def test_errors_have_lines(client, session):
    answer = put_glsl(client, session + "/modules/m", SCALE.replace("plus;\n}", "plus * nobody;\n}"))
    assert answer.status == 422 and answer.code == "compile_failed"
    compiled = answer.json()["compile"]
    assert "nobody" in compiled["log"] and compiled["diagnostics"][0]["line"] == 11 and compiled["diagnostics"][0]["severity"] == "error"


def test_macros_headers_and_constants(client, scale):
    source = SCALE.replace("#version 450", '#version 450\n#extension GL_GOOGLE_include_directive : require\n#include "extra.h"').replace("+ plus", "+ plus + EXTRA * MORE")
    put_json(client, scale + "/modules/n", language="glsl", source=source, headers={"extra.h": "#define EXTRA 1000\n"},
             options=["-DMORE=2", "--specialize=3=7"]).expect(201)
    scaled(client, scale, "n").expect(200)
    assert floats(client.get(scale + "/buffers/b/data")) == tuple(7 * i + 2000.5 for i in range(100))


def test_spirv_is_what_glsl_becomes(client, scale):
    spirv = client.get(scale + "/modules/m/code").expect(200)
    assert spirv.headers["Content-Type"] == "application/spirv" and struct.unpack("<I", spirv.body[:4])[0] == 0x07230203
    put_spirv(client, scale + "/modules/s", spirv.body).expect(201)
    put_json(client, scale + "/modules/t", language="spirv", source=base64.b64encode(spirv.body).decode(), options=["--specialize=3=10"]).expect(201)
    for module, factor in (("s", 2), ("t", 10)):
        scaled(client, scale, module).expect(200)
        assert floats(client.get(scale + "/buffers/b/data")) == tuple(factor * i + 0.5 for i in range(100))


def test_invalid_spirv_never_reaches_the_driver(client, scale):
    good = client.get(scale + "/modules/m/code").body
    for bad in (good[:-4], good[:400], good[:-3], b"SPIR", good[:20] + b"\0\0\0\0" + good[24:], bytes(reversed(good))):
        answer = put_spirv(client, scale + "/modules/bad", bad)
        assert answer.status == 422 and answer.code == "module_invalid", answer
    scaled(client, scale, "m").expect(200)


@pytest.mark.parametrize("options,code", [
    (["--specialize=4=1"], "compile_failed"), (["--specialize=3=word"], "compile_failed"), (["--specialize=3"], "option_not_allowed"),
    (["--use_fast_math"], "option_not_allowed")])
def test_options_that_do_not_fit(client, session, options, code):
    assert put_json(client, session + "/modules/m", language="glsl", source=SCALE, options=options).code == code


def test_what_belongs_to_other_devices_is_refused(client, session):
    assert client.put_cuda(session + "/modules/m", 'extern "C" __global__ void k() {}').code == "compiler_unavailable"
    ptx = client.request("PUT", session + "/modules/m", ".version 6.4\n", {"Content-Type": "application/vnd.gpurest.ptx"})
    assert ptx.code == "module_invalid" and "SPIR-V" in ptx.json()["detail"]
    assert put_json(client, session + "/modules/m", language="glsl", source=SCALE, name_expressions=["k"]).code == "invalid_field"
    assert put_json(client, session + "/modules/m", language="glsl", source=SCALE, arch="compute_90").code == "invalid_field"


@pytest.mark.parametrize("change,words_of_it", [
    (("layout(binding = 5) buffer To { float to[]; };", "layout(binding = 5) uniform To { float to[4]; };"), "uniform buffer"),
    (("layout(binding = 2)", "layout(set = 1, binding = 2)"), "descriptor set 1"),
    (("float plus; };", "float plus; vec4 many[2000]; };"), "push constants"),
    (("layout(local_size_x = 64)", "layout(local_size_x = 4096)"), "too large"),
    (("layout(local_size_x = 64)", "layout(local_size_x = 1024, local_size_y = 64)"), "threads")])
def test_what_the_device_cannot_run_is_refused_at_load(client, session, change, words_of_it):
    source = SCALE.replace(*change).replace("to[i] = from[i] * SCALE + plus;", "" if "uniform" in change[1] else "to[i] = from[i] * SCALE + plus;")
    source = source.replace("to[i] = from", "to[i] = many[n].x + from") if "many" in source else source
    if "uniform" in change[1]:
        source = source.replace("if (i < n)", "from[0] = to[n];").replace("readonly buffer", "buffer")
    answer = put_glsl(client, session + "/modules/m", source)
    assert answer.status == 422 and answer.code in ("module_invalid", "compile_failed") and words_of_it in answer.json()["detail"], answer


def test_launches_that_do_not_fit(client, scale):
    assert scaled(client, scale, "m", block=[32]).code == "launch_config_invalid"
    assert scaled(client, scale, "m", block=[64]).status == 200
    assert launch(client, scale, "m", {"buf": "a"}, {"u32": 1}, {"f32": 1}).code == "argument_mismatch"
    assert launch(client, scale, "m", {"buf": "a"}, {"u64": 16}, {"u32": 1}, {"f32": 1}).code == "argument_mismatch"
    assert launch(client, scale, "m", {"buf": "a", "offset": 4}, {"buf": "b"}, {"u32": 1}, {"f32": 1}).code == "argument_mismatch"
    assert scaled(client, scale, "m", shared_bytes=16).code == "launch_config_invalid"
    assert scaled(client, scale, "m", cooperative=True).code == "launch_config_invalid"
    scaled(client, scale, "m").expect(200)


def test_a_launch_chooses_a_free_block(client, session):
    put_glsl(client, session + "/modules/m", FREE).expect(201)
    assert client.get(session + "/modules/m").json()["kernels"][0]["block"] == [0, 1, 1]
    client.put(session + "/buffers/b", {"size": 16}).expect(201)
    for block in (1, 7, 64, 256):
        launch(client, session, "m", {"buf": "b"}, grid=[4], block=[block]).expect(200)
        assert words(client.get(session + "/buffers/b/data")) == (block,) * 4


def test_what_lies_beyond_a_buffer_is_not_touched(client, scale):
    client.put(scale + "/buffers/small", {"size": 40}).expect(201)
    client.put_octets(scale + "/buffers/behind", b"\x5a" * 4096).expect(201)
    launch(client, scale, "m", {"buf": "a"}, {"buf": "small"}, {"u32": 100}, {"f32": 0}, grid=[2]).expect(200)
    assert floats(client.get(scale + "/buffers/small/data")) == tuple(2 * i for i in range(10))
    assert client.get(scale + "/buffers/behind/data").body == b"\x5a" * 4096


def test_a_bad_address_ends_its_session_alone(client, scale):
    other = new_session(client)
    put_glsl(client, other + "/modules/m", FAR).expect(201)
    client.put(other + "/buffers/b", {"size": 16}).expect(201)
    launch(client, other, "m", {"buf": "b"}, {"u32": 77}).expect(200)
    assert words(client.get(other + "/buffers/b/data"))[0] == 77
    answer = launch(client, other, "m", {"u64": 64}, {"u32": 1})
    assert answer.status >= 400 or answer.json()["state"] == "failed", answer
    scaled(client, scale, "m").expect(200)
    assert floats(client.get(scale + "/buffers/b/data")) == tuple(2 * i + 0.5 for i in range(100))


def test_a_deadline_ends_its_session_alone(client, scale):
    other = new_session(client)
    put_glsl(client, other + "/modules/m", SLOW).expect(201)
    client.put(other + "/buffers/b", {"size": 16}).expect(201)
    answer = launch(client, other, "m", {"buf": "b"}, grid=[65535, 1000], timeout_ms=500)
    assert answer.code == "execution_timeout", answer
    scaled(client, scale, "m").expect(200)


def test_a_deadline_is_kept_beside_another_stream(client):
    """No event here tells that a launch has started, so the time counts from when the device was given it."""
    session = new_session(client)
    put_glsl(client, session + "/modules/m", SLOW).expect(201)
    client.put(session + "/buffers/b", {"size": 16}).expect(201)
    slow = {"module": "m", "kernel": "main", "grid": [65535, 1000], "args": [{"buf": "b"}]}
    client.post(session + "/launches", {**slow, "stream": "a", "timeout_ms": 20_000}, Prefer="respond-async").expect(202)
    answer = client.post(session + "/launches", {**slow, "stream": "b", "timeout_ms": 500}, Prefer="wait=60")
    assert answer.code == "execution_timeout" and "timeout_ms of 500 ms" in answer.json()["detail"], answer


def test_fills_and_copies(client, scale):
    client.put(scale + "/buffers/c", {"size": 403}).expect(201)
    for pattern, size in (({"u8": 7}, 1), ({"u16": 0x1234}, 2), ({"u32": 0xdeadbeef}, 4), ({"u64": "18446744073709551614"}, 8)):
        client.post(scale + "/buffers/c/fill", {"pattern": pattern, "size": 400}).expect(204)
        value = int(next(iter(pattern.values())))
        assert client.get(scale + "/buffers/c/data").body[:400] == value.to_bytes(size, "little") * (400 // size)
    client.post(scale + "/buffers/b/copy", {"from": "a"}).expect(204)
    assert floats(client.get(scale + "/buffers/b/data")) == tuple(range(100))


def test_a_program_runs_many_times(client, scale):
    request = {"ops": [{"op": "launch", "module": "m", "kernel": "main", "grid": [2], "args": [{"buf": a}, {"buf": b}, {"u32": 100}, {"f32": 1}]}
                       for a, b in (("a", "b"), ("b", "a"))]}
    for _ in range(3):
        client.post(scale + "/batches", request).expect(200)
    values = [float(i) for i in range(100)]
    for _ in range(6):
        values = [2 * v + 1 for v in values]
    assert floats(client.get(scale + "/buffers/a/data")) == tuple(values)


def test_a_snapshot_keeps_shaders(client, scale):
    spirv = client.get(scale + "/modules/m/code").body
    put_json(client, scale + "/modules/n", language="glsl", source=SCALE, options=["--specialize=3=7"]).expect(201)
    put_json(client, scale + "/modules/o", language="spirv", source=base64.b64encode(spirv).decode(), options=["--specialize=3=8"]).expect(201)
    put_spirv(client, scale + "/modules/p", spirv).expect(201)
    saved = client.get(scale + "/snapshot").expect(200).body
    client.request("PUT", "/v1/sessions/again", saved, {"Content-Type": "application/vnd.gpurest.snapshot"}).expect(201)
    for module, factor in (("m", 2), ("n", 7), ("o", 8), ("p", 2)):
        scaled(client, "/v1/sessions/again", module).expect(200)
        assert floats(client.get("/v1/sessions/again/buffers/b/data")) == tuple(factor * i + 0.5 for i in range(100)), module


def test_mutations_of_spirv_reach_no_other_session(executable, vulkan, tmp_path):  # noqa: F811
    """A few; vulkan_fuzz.py makes as many as one wants."""
    service = Service(executable, tmp_path, "--backends", "vulkan", "--crash-budget", "0")
    tally, bad = vulkan_fuzz.campaign(service, 300, 25)
    assert not bad and tally["mutations"] == 300 and tally["load ok"] > 10 and tally["load module_invalid"] > 100, (tally, bad)
    assert tally["the other session's results"] > 10
    service.stop()
