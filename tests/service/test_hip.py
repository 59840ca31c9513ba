"""The hip device, on a library that is no AMD GPU's: code objects run, what is checked of them, and what such devices do not have is refused by name."""
import pathlib
import re
import struct

import pytest

from conftest import VADD, floats
from kernels import launch_vadd
from service_under_test import Service

CODE = pathlib.Path(__file__).parents[1] / "unit" / "device" / "fixtures" / "sample_gfx90a.code"
BINARY = "application/vnd.gpurest.cubin"


@pytest.fixture(scope="module")
def service(executable, tmp_path_factory):
    library = pathlib.Path(executable).parents[1] / "tests" / "support" / "libamdhip64.so.6"
    if not library.exists():
        pytest.skip("the fake library is not built")
    one = Service(executable, tmp_path_factory.mktemp("hip"), "--backends", "hip", "--libamdhip64", str(library), "--allow-binary-images")
    yield one
    one.stop()


@pytest.fixture
def client(service):
    one = service.client()
    yield one
    one.close()


@pytest.fixture
def session(client):
    path = "/v1/sessions/" + client.post("/v1/sessions", {}).expect(201).json()["id"]
    yield path
    client.delete(path)


def test_the_device_tells_what_it_is(client):
    device = client.get("/v1/devices/hip:0").json()
    assert (device["vendor"], device["warp_size"], device["compile_arch"]) == ("AMD", 64, "gfx90a")
    page = (pathlib.Path(__file__).parents[2] / "docs/reference/vulkan.md").read_text()
    rows = {row[0]: row[1].strip() for row in re.findall(r"^\| `(\w+)`.*\|([^|]*)\|$", page, re.M)}
    told = {word for word, has in rows.items() if has == "no"} - {"cuda_source", "glsl", "builtin_kernels"}
    assert told == set(device["unsupported"]) and rows["globals"] == "yes"
    assert client.get("/readyz").status == 200


def test_a_code_object_runs(client, session):
    made = client.put(session + "/modules/m", CODE.read_bytes(), Content_Type=BINARY).expect(201).json()
    vadd = next(kernel for kernel in made["kernels"] if kernel["name"] == "vadd")
    assert [(p["offset"], p["size"]) for p in vadd["params"]] == [(0, 8), (8, 8), (16, 8), (24, 4)]
    assert [(g["name"], g["bytes"]) for g in made["globals"]] == [("gv", 32), ("ctab", 64)]
    for name, step in (("a", 1), ("b", 2), ("c", 0)):
        assert client.put_octets(f"{session}/buffers/{name}", floats(step * i for i in range(1024))).status == 201
    assert client.post(session + "/launches", launch_vadd()).status == 200
    assert client.get(session + "/buffers/c/data").body == floats(3 * i for i in range(1024))
    short = launch_vadd()
    short["args"] = short["args"][:3]
    assert client.post(session + "/launches", short).code == "argument_mismatch"
    together = client.post(session + "/launches", {**launch_vadd(), "cooperative": True})
    assert together.status == 422 and "cooperative" in together.json()["detail"]


def test_hip_c_is_compiled_for_it(client, session):
    made = client.put(session + "/modules/m", {"source": VADD, "options": ["-DN=3"]}).expect(201).json()
    assert [kernel["name"] for kernel in made["kernels"]] == ["vadd"] and made["arch"] == "gfx90a", made
    for name, step in (("a", 1), ("b", 2), ("c", 0)):
        assert client.put_octets(f"{session}/buffers/{name}", floats(step * i for i in range(1024))).status == 201
    assert client.post(session + "/launches", launch_vadd()).status == 200
    assert client.get(session + "/buffers/c/data").body == floats(3 * i for i in range(1024))
    failed = client.put_cuda(session + "/modules/bad", "\n#error none of it\n")
    assert failed.code == "compile_failed" and "kernel.hip, line 2: none of it" in failed.json()["detail"], failed.body
    assert [(d["file"], d["line"], d["column"]) for d in failed.json()["compile"]["diagnostics"]] == [("kernel.hip", 2, 2)]
    for spec, code, word in (({"options": ["--maxrregcount=32"]}, "option_not_allowed", "maxrregcount"), ({"arch": "sm_90"}, "invalid_field", "gfx90a")):
        refused = client.post(session + "/modules", {"source": VADD, **spec})
        assert refused.code == code and word in refused.json()["detail"], refused.body


def test_code_that_is_not_for_it_is_refused_by_name(client, session):
    half = client.post(session + "/modules", CODE.read_bytes()[:5000], Content_Type=BINARY)
    assert half.code == "module_invalid" and "truncated" in half.json()["detail"]
    other = client.post(session + "/modules", CODE.read_bytes().replace(b"hsa--gfx90a", b"hsa--gfx906"), Content_Type=BINARY)
    assert other.code == "module_invalid" and "gfx906" in other.json()["detail"]
    ptx = client.post(session + "/modules", b".version 6.0\n.target sm_75\n", Content_Type="application/vnd.gpurest.ptx")
    assert ptx.code == "module_invalid" and "gfx90a" in ptx.json()["detail"]
    client.put(session + "/buffers/x", {"size": 4096}).expect(201)
    builtin = client.post(session + "/launches", {"builtin": "fill", "dtype": "f32", "args": [{"buf": "x"}, {"u64": 1024}, {"f32": 2.0}]})
    assert builtin.code == "invalid_field" and "hip" in builtin.json()["detail"], builtin.body
    assert client.get(session).json()["state"] == "ready"


def test_images_are_not_linked(client, session):
    """The devices that link are those of the backends cuda and cpu."""
    body = bytes.fromhex("89474c4b0d0a1a0a") + struct.pack("<IIIIQ", 1, 0, 1, 0, 3) + b"ptx"
    refused = client.put(session + "/modules/m", body, Content_Type="application/vnd.gpurest.images").expect(422, "module_invalid").json()
    assert "backends cuda and cpu" in refused["detail"], refused
