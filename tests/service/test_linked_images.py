"""Modules of several images, which the device links: PTX on the cpu device, and what the driver of a GPU links."""
import struct

import pytest

from conftest import floats
from fake_gpu import driver, start as start_gpu  # noqa: F401
from kernels import launch_vadd

MAGIC = bytes.fromhex("89474c4b0d0a1a0a")
TYPE = "application/vnd.gpurest.images"
PTX, CUBIN, LIBRARY = 1, 2, 4
HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
DECLARED = ".func (.param .f32 r) sum(.param .f32 x, .param .f32 y)"
CALLER = HEAD + ".extern " + DECLARED + """;
.visible .entry vadd(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{
    .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<6>;
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r5, [pn]; setp.ge.s32 %p, %r4, %r5; @%p bra DONE;
    ld.param.u64 %d1, [pa]; ld.param.u64 %d2, [pb]; ld.param.u64 %d3, [pc]; mul.wide.s32 %d4, %r4, 4;
    add.s64 %d1, %d1, %d4; add.s64 %d2, %d2, %d4; add.s64 %d3, %d3, %d4;
    ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d2];
    { .param .f32 x; .param .f32 y; .param .f32 r; st.param.f32 [x], %f1; st.param.f32 [y], %f2; call.uni (r), sum, (x, y); ld.param.f32 %f3, [r]; }
    st.global.f32 [%d3], %f3;
DONE: ret;
}
"""
CALLEE = HEAD + ".visible " + DECLARED + """
{
    .reg .f32 %f<4>;
    ld.param.f32 %f1, [x]; ld.param.f32 %f2, [y]; add.f32 %f3, %f1, %f2; st.param.f32 [r], %f3; ret;
}
"""


def images(*parts):
    """Each part: its kind and bytes, or text of PTX."""
    parts = [(PTX, part) if isinstance(part, str) else part for part in parts]
    parts = [(kind, data.encode() if isinstance(data, str) else data) for kind, data in parts]
    return MAGIC + struct.pack("<II", len(parts), 0) + b"".join(struct.pack("<IIQ", kind, 0, len(data)) + data for kind, data in parts)


def put(client, session, body, name="m"):
    return client.put(f"{session}/modules/{name}", body, Content_Type=TYPE)


def adds(client, session):
    for name, data in (("a", range(1024)), ("b", [2] * 1024), ("c", [0] * 1024)):
        client.put_octets(f"{session}/buffers/{name}", floats(data)).expect(201)
    client.post(session + "/launches", launch_vadd()).expect(200)
    return client.get(session + "/buffers/c/data").body == floats(i + 2 for i in range(1024))


def test_images_become_one_module(client, session):
    body = images(CALLER, CALLEE)
    made = put(client, session, body).expect(201).json()
    assert [k["name"] for k in made["kernels"]] == ["vadd"]
    assert adds(client, session)
    put(client, session, body).expect(200)
    assert client.post(session + "/modules", body, Content_Type=TYPE).expect(200).json()["id"] == "m"
    put(client, session, images(CALLEE, CALLER)).expect(409, "spec_conflict")  # other bytes
    client.get(session + "/modules/m/code").expect(404)
    data = client.get(session + "/snapshot").expect(200).body
    client.delete(session + "/modules/m").expect(204)
    copy = session + "x"
    client.put(copy, data, Content_Type="application/vnd.gpurest.snapshot").expect(201)
    client.post(copy + "/launches", launch_vadd()).expect(200)
    client.delete(copy).expect(204)


@pytest.mark.parametrize("parts,words", [
    ([CALLER], "`sum` is not defined"), ([CALLER, CALLEE, CALLEE], "`sum` is defined in image 2, too, image 3, PTX line 5"),
    ([CALLER, CALLEE.replace(", .param .f32 y", "")], "`sum` has another signature in image 1, image 2"),
    ([HEAD + ".extern .func f();\n.visible .global .u64 pf = f;\n", CALLEE], "function `f`, whose address `pf` has, is not defined"),
    ([CALLER, HEAD + "nonsense"], "got `nonsense`, image 2, PTX line 4"), ([CALLER, "a\0b"], "image 2 is PTX with a NUL character")])
def test_what_does_not_link(client, session, parts, words):
    said = put(client, session, images(*parts)).expect(422, "module_invalid").json()["detail"]
    assert words in said, said


def test_wrong_bodies(client, session):
    """Cut anywhere, or with a length that is not so; the session lives on."""
    body = images(CALLEE, CALLER)
    second = len(images(CALLEE))
    for cut in [0, 1, 7, 8, 12, 15, 16, 20, 31, 32, 33, second - 1, second, second + 15, second + 16, len(body) - 1]:
        put(client, session, body[:cut]).expect(422, "module_invalid")
    for length in (0, len(CALLEE) + 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 16, 2**64 - 1):
        put(client, session, body[:24] + struct.pack("<Q", length) + body[32:]).expect(422, "module_invalid")
    for count in (0, 1, 3, 64, 65, 2**32 - 1):
        put(client, session, MAGIC + struct.pack("<I", count) + body[12:]).expect(422, "module_invalid")
    put(client, session, body).expect(201)


@pytest.mark.parametrize("kind", [CUBIN, LIBRARY])
def test_images_that_are_no_text_need_the_setting(client, session, kind):
    put(client, session, images(CALLER, (kind, b"!<arch>\n"))).expect(403, "feature_disabled")


def test_a_gpu_has_its_driver_link(executable, tmp_path, driver):  # noqa: F811
    library = (LIBRARY, b"!<arch>\n has sum in it")
    one = start_gpu(executable, tmp_path, driver[1], "--allow-binary-images")
    try:
        client = one.client()
        client.put("/v1/sessions/s").expect(201)
        put(client, "/v1/sessions/s", images(CALLER, CALLEE)).expect(201)
        assert adds(client, "/v1/sessions/s")
        put(client, "/v1/sessions/s", images(CALLER, library), "l").expect(201)
        for parts, words in (([CALLER], "Undefined reference to 'sum' in 'image 1'"), ([CALLEE, CALLEE, CALLER], "Multiple definition of 'sum'")):
            refused = put(client, "/v1/sessions/s", images(*parts), "x").expect(422, "module_invalid").json()
            assert words in refused["detail"], refused
        assert client.get("/v1/sessions/s").json()["state"] == "ready"  # the driver's unknown error is no lost context
    finally:
        one.stop()
