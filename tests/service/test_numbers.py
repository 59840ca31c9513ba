"""Integers arrive exactly, in all 64 bits, or are refused; a JSON number that a reader would round is refused."""
import struct

import pytest


EXACT = 1 << 53
ROUNDED = ["9007199254740993", "-9007199254740993", "18446744073709551615", "1e16", "1.5", "1e-400", "0.99999999999999999999", "4503599627370497.4999",
           "9007199254740992.0000000000001"]
KEEP = r"""
typedef long long i64; typedef unsigned long long u64;
struct both { u64 u; i64 i; };
extern "C" __global__ void keep(u64 u, i64 i, both b, double d, float f, u64 *out)
{
    out[0] = u; out[1] = (u64)i; out[2] = b.u; out[3] = (u64)b.i; out[4] = __double_as_longlong(d); out[5] = __float_as_int(f);
}
"""


@pytest.fixture
def kept(client, session):
    assert client.put_cuda(session + "/modules/f", KEEP).status == 201
    assert client.put(session + "/buffers/out", {"size": 48}).status == 201
    return session


def post_text(client, path, text):
    """Sends the text unchanged, digit by digit."""
    return client.request("POST", path, text.encode(), {"Content-Type": "application/json"})


def launch_text(u="0", i="0", f64="0", f32="0"):
    return ('{"module":"f","kernel":"keep","grid":[1],"block":[1],"args":[{"u64":%s},{"i64":%s},{"struct":[{"u64":%s},{"i64":%s}]},{"f64":%s},{"f32":%s},'
            '{"buf":"out"}]}' % (u, i, u, i, f64, f32))


@pytest.mark.parametrize("u,i", [
    (0, 0), (EXACT, EXACT), (EXACT, -EXACT), ((1 << 64) - 1, (1 << 63) - 1), (EXACT + 1, EXACT + 1), (EXACT + 1, -EXACT - 1), (1 << 63, -(1 << 63))])
def test_scalars_are_exact(client, kept, u, i):
    forms = [(f'"{u}"', f'"{i}"')] + ([(str(u), str(i))] if max(u, abs(i)) <= EXACT else [])
    for texts in forms:
        assert post_text(client, kept + "/launches", launch_text(*texts)).status == 200
        assert struct.unpack("<QqQq", client.get(kept + "/buffers/out/data").body[:32]) == (u, i, u, i)


@pytest.mark.parametrize("text", ROUNDED)
def test_scalars_that_are_rounded_are_refused(client, kept, text):
    assert client.post(kept + "/buffers/out/fill", {"pattern": {"u8": 1}}).status == 204
    for place, changed in (("/args/0", {"u": text}), ("/args/1", {"i": text})):
        answer = post_text(client, kept + "/launches", launch_text(**changed))
        assert (answer.status, answer.code) == (400, "invalid_field")
        error = answer.json()["errors"][0]
        assert error["pointer"] == place and "decimal string" in error["detail"]
    assert client.get(kept + "/buffers/out/data").body == b"\1" * 48


def test_real_numbers_are_rounded_as_doubles_are(client, kept):
    assert post_text(client, kept + "/launches", launch_text(f64="9007199254740993", f32="16777217")).status == 200
    bits = struct.unpack("<QQ", client.get(kept + "/buffers/out/data").body[32:])
    assert bits == (struct.unpack("<Q", struct.pack("<d", float(EXACT)))[0], struct.unpack("<I", struct.pack("<f", 16777216.0))[0])


def sized(text):
    return {
        "buffer": ("POST", "/buffers", '{"size":%s}' % text, "/size"),
        "named buffer": ("PUT", "/buffers/n", '{"size":%s}' % text, "/size"),
        "fill size": ("POST", "/buffers/out/fill", '{"pattern":{"u8":0},"size":%s}' % text, "/size"),
        "fill offset": ("POST", "/buffers/out/fill", '{"pattern":{"u8":0},"offset":%s}' % text, "/offset"),
        "fill pattern": ("POST", "/buffers/out/fill", '{"pattern":{"u64":%s}}' % text, "/pattern"),
        "copy": ("POST", "/buffers/out/copy", '{"from":"out","from_offset":%s}' % text, "/from_offset"),
        "argument offset": ("POST", "/launches", '{"module":"f","kernel":"keep","grid":[1],"args":[{"buf":"out","offset":%s}]}' % text, "/args/0"),
        "grid": ("POST", "/launches", '{"module":"f","kernel":"keep","grid":[1,%s]}' % text, "/grid/1"),
        "block": ("POST", "/launches", '{"module":"f","kernel":"keep","grid":[1],"block":[%s]}' % text, "/block/0"),
        "threads": ("POST", "/launches", '{"module":"f","kernel":"keep","grid":{"threads":%s}}' % text, "/grid/threads"),
        "shared memory": ("POST", "/launches", '{"module":"f","kernel":"keep","grid":[1],"shared_bytes":%s}' % text, "/shared_bytes"),
        "timeout": ("POST", "/launches", '{"module":"f","kernel":"keep","grid":[1],"timeout_ms":%s}' % text, "/timeout_ms"),
        "built-in": ("POST", "/launches", '{"builtin":"iota","dtype":"f32","args":[{"buf":"out"},{"u64":%s},{"f32":0},{"f32":1}]}' % text, "/args/1"),
        "batch alloc": ("POST", "/batches", '{"ops":[{"op":"alloc","as":"$a","size":%s}]}' % text, "/ops/0/size"),
        "batch fill": ("POST", "/batches", '{"ops":[{"op":"fill","to":"out","pattern":{"i64":%s}}]}' % text, "/ops/0/pattern"),
        "batch read": ("POST", "/batches", '{"ops":[{"op":"read","from":"out","segment":"s","offset":%s}]}' % text, "/ops/0/offset"),
        "batch launch": ("POST", "/batches", '{"ops":[{"op":"launch","module":"f","kernel":"keep","grid":[1],"args":[{"u64":%s}]}]}' % text, "/ops/0/args/0"),
        "batch timeout": ("POST", "/batches", '{"ops":[],"timeout_ms":%s}' % text, "/timeout_ms"),
        "program": ("PUT", "/programs/p", '{"ops":[{"op":"alloc","as":"$a","size":%s}]}' % text, "/ops/0/size"),
        "program segment": ("PUT", "/programs/p", '{"segments":[{"id":"s","size":%s}],"ops":[]}' % text, "/segments/0/size"),
        "session": ("PUT", "", '{"memory_limit":%s}' % text, "/memory_limit"),
    }


@pytest.mark.parametrize("text", ["9007199254740993", "1e-400", "2.00000000000000000001"])
@pytest.mark.parametrize("place", list(sized("0")))
def test_every_integer_is_exact_or_refused(client, kept, place, text):
    method, path, body, pointer = sized(text)[place]
    answer = client.request(method, kept + path, body.encode(), {"Content-Type": "application/json"})
    assert (answer.status, answer.code) == (400, "invalid_field"), answer
    error = answer.json()["errors"][0]
    assert error["pointer"] == pointer and "decimal string" in error["detail"], error
    assert client.get(kept).json()["state"] == "ready"


@pytest.mark.parametrize("place", list(sized("0")))
def test_a_decimal_string_is_read_whole(client, kept, place):
    """No object has such a size; the refusal must name the number that was sent."""
    method, path, body, pointer = sized('"9007199254740993"')[place]
    answer = client.request(method, kept + path, body.encode(), {"Content-Type": "application/json"})
    if answer.status >= 400:
        assert "decimal string" not in answer.json()["detail"] and answer.status < 500 or answer.status == 507, answer


def test_integers_in_other_clothes_are_integers(client, kept):
    for text in ("8", "8.0", "8e0", "80e-1", "0.08E+2", '"8"'):
        assert post_text(client, kept + "/buffers", '{"size":%s}' % text).json()["size"] == 8, text


def test_frames_and_runs_of_programs(client, kept):
    program = {"ops": [{"op": "launch", "module": "f", "kernel": "keep", "grid": [1], "block": [1],
                        "args": [{"u64": 1}, {"i64": 1}, {"struct": [{"u64": 1}, {"i64": 1}]}, {"f64": 1}, {"f32": 1}, {"buf": "out"}]}]}
    assert client.put(kept + "/programs/p", program).status == 201
    ran = post_text(client, kept + "/programs/p/runs", '{"args":{"0":{"0":{"u64":"18446744073709551615"},"1":{"i64":"-9007199254740993"}}}}')
    assert ran.status == 200, ran
    assert struct.unpack("<Qq", client.get(kept + "/buffers/out/data").body[:16]) == ((1 << 64) - 1, -EXACT - 1)
    refused = post_text(client, kept + "/programs/p/runs", '{"args":{"0":{"0":{"u64":9007199254740993}}}}')
    assert (refused.status, refused.code) == (400, "invalid_field") and refused.json()["errors"][0]["pointer"] == "/args/0/0"


@pytest.mark.parametrize("query", ["limit=18446744073709551617", "limit=1.0", "limit=1e2", "limit=", "limit=+1"])
def test_query_parameters(client, session, query):
    client.get(f"{session}/buffers?{query}").expect(400, "invalid_field")


def test_a_wait_beyond_64_bits_is_a_long_one(client, kept):
    answer = client.request("POST", kept + "/launches", launch_text().encode(), {"Content-Type": "application/json", "Prefer": "wait=99999999999999999999"})
    assert answer.status == 200 and answer.headers["Preference-Applied"] == "wait=300"
