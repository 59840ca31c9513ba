"""Textures: made, filled and sampled through REST. What kernels read is compared with texture_model.py, an oracle of its own."""
import os
import pathlib
import random
import struct

import pytest

from fake_gpu import driver, start  # noqa: F401
from texture_kernels import fetches, surfaces
from texture_model import WIDTHS, Texture

POINTS = 200
ON_CPU = os.environ.get("GPUREST_TEST_BACKENDS", "cpu") == "cpu"
of_cpu = pytest.mark.skipif(not ON_CPU, reason="what only the cpu device tells or refuses")
ALLOWED = 1e-6 if ON_CPU else 0.2  # of a mean; test_textures_gpu.py tells what it is exactly


def coordinates(rng, texture, count=POINTS):
    """x, y, z, layer: inside and outside, away from where a rounding decides."""
    def one(axis):
        size = texture.size[axis]
        texels = rng.choice([rng.uniform(-2 * size, 3 * size), rng.randrange(size) + 0.5, rng.uniform(0, size), -0.25, size + 0.25])
        texels = (round(texels * 1024) | 1) / 1024 if texture.spec.get("filter") == "linear" else (round(texels * 64) | 1) / 64
        return texels / size if texture.normalized else texels
    if texture.faces > 1:
        return [[rng.uniform(-1, 1) for _ in range(3)] + [float(rng.randint(0, texture.layers))] for _ in range(count)]
    return [[one(0), one(1), one(2), float(rng.randint(0, texture.layers))] for _ in range(count)]


def as_given(points):
    """The coordinates as binary32, which is what the kernel gets."""
    data = b"".join(struct.pack("<4f", *p) for p in points)
    return data, [list(struct.unpack_from("<4f", data, 16 * i)) for i in range(len(points))]


def texels(rng, texture):
    letter = WIDTHS[texture.spec["format"]]
    if letter in "ef":
        return [struct.unpack(f"<{letter}", struct.pack(f"<{letter}", rng.uniform(-8, 8)))[0] for _ in range(texture.count())]
    bits = 8 * struct.calcsize(letter)
    low = -(1 << (bits - 1)) if letter.islower() else 0
    return [rng.randrange(low, low + (1 << bits)) for _ in range(texture.count())]


def make(client, session, spec, seed=1, name="t"):
    texture = Texture(spec, [])
    texture.texels = texels(random.Random(seed), texture)
    client.put(f"{session}/textures/{name}", spec).expect(201)
    client.put_octets(f"{session}/textures/{name}/data", texture.bytes()).expect(204)
    return texture


def fetch(client, session, texture, kernel, data, name="t"):
    """The four channels for each point."""
    kind = "float4" if texture.floats else "int4" if texture.spec["format"][0] == "s" else "uint4"
    count = len(data) // 16
    client.put_octets(session + "/buffers/at", data).expect(201)
    client.put(session + "/buffers/out", {"size": 16 * count}).expect(201)
    client.post(session + "/launches", {"module": "m", "kernel": f"get_{kernel}_{kind}", "grid": [(count + 63) // 64], "block": [64],
                                        "args": [{"tex": name}, {"buf": "at"}, {"buf": "out"}, {"i32": count}]}).expect(200)
    got = client.get(session + "/buffers/out/data").expect(200).body
    client.delete(session + "/buffers/at").expect(204)
    client.delete(session + "/buffers/out").expect(204)
    letter = {"float4": "f", "int4": "i", "uint4": "I"}[kind]
    return [list(struct.unpack_from(f"<4{letter}", got, 16 * i)) for i in range(count)]


@pytest.fixture
def clean(client, session):
    """With a kernel for each function, compiled once."""
    client.put_cuda(session + "/modules/m", fetches()).expect(201)
    return session


EXTENTS = {"1d": [13], "2d": [9, 5], "3d": [5, 4, 3], "1d_layered": [7], "2d_layered": [5, 4], "cube": [6], "cube_layered": [4]}


def spec_of(dimension, **members):
    spec = {"dimension": dimension, "extent": EXTENTS[dimension], "format": "f32", **members}
    if "layered" in dimension:
        spec["layers"] = 3
    return spec


def close(got, expected, texture):
    if texture.spec.get("filter") != "linear":
        return got == expected
    return all(abs(g - e) <= ALLOWED * max(1, abs(e)) for g, e in zip(got, expected))


def compare(client, session, texture, seed=2, kernel=None):
    data, points = as_given(coordinates(random.Random(seed), texture))
    got = fetch(client, session, texture, kernel or texture.dimension, data)
    for point, found in zip(points, got):
        expected = texture.fetch(point[:3], int(point[3]))
        assert close(found, expected, texture), (texture.spec, point, found, expected)


@pytest.mark.parametrize("filtered", ["point", "linear"])
@pytest.mark.parametrize("dimension", sorted(EXTENTS))
def test_dimensions(client, clean, dimension, filtered):
    compare(client, clean, make(client, clean, spec_of(dimension, filter=filtered)))
    client.delete(clean + "/textures/t").expect(204)
    compare(client, clean, make(client, clean, spec_of(dimension, filter=filtered, normalized_coordinates=True, channels=4)))


@pytest.mark.parametrize("texel", sorted(WIDTHS))
def test_formats(client, clean, texel):
    for channels in (1, 2, 4):
        compare(client, clean, make(client, clean, spec_of("2d", format=texel, channels=channels)))
        client.delete(clean + "/textures/t").expect(204)
    if texel[0] != "f" and texel[1:] in ("8", "16"):
        for filtered in ("point", "linear"):
            compare(client, clean, make(client, clean, spec_of("2d", format=texel, read="normalized_float", filter=filtered)))
            client.delete(clean + "/textures/t").expect(204)


@of_cpu
def test_srgb(client, clean):
    """Each byte in each channel, alpha as it is; converted before the filter; gathers and tex1Dfetch too. A GPU's table: test_textures_gpu.py."""
    spec = {"dimension": "2d", "format": "u8", "read": "srgb", "channels": 4, "extent": [16, 16]}
    whole = Texture(spec, [v ^ turn for v in range(256) for turn in (0, 85, 170, 255)])
    assert client.put(clean + "/textures/t", spec).expect(201).json()["read"] == "srgb"
    client.put_octets(clean + "/textures/t/data", whole.bytes()).expect(204)
    data, points = as_given([[i % 16 + 0.5, i // 16 + 0.5, 0, 0] for i in range(256)])
    assert fetch(client, clean, whole, "2d", data) == [whole.fetch(p[:3]) for p in points]
    for channel in (1, 3):
        data, points = as_given(coordinates(random.Random(channel), Texture({**spec, "filter": "linear"}, [])))
        assert fetch(client, clean, whole, f"gather_{channel}", data) == [whole.gather(p[:3], channel) for p in points]
    client.delete(clean + "/textures/t").expect(204)
    for channels in (1, 2, 4):
        compare(client, clean, make(client, clean, spec_of("2d", format="u8", channels=channels, read="srgb", filter="linear", addressing="border")))
        client.delete(clean + "/textures/t").expect(204)
    client.put_octets(clean + "/buffers/b", whole.bytes()).expect(201)
    line = Texture({**spec, "dimension": "1d", "extent": [256], "buffer": "b"}, whole.texels)
    client.put(clean + "/textures/t", line.spec).expect(201)
    data, points = as_given([[float(i), 0, 0, 0] for i in range(256)])
    assert fetch(client, clean, line, "fetch", data) == [line.fetch(p[:3]) for p in points]
    client.delete(clean + "/textures/t").expect(204)
    client.delete(clean + "/buffers/b").expect(204)


@pytest.mark.parametrize("modes", [["wrap", "mirror"], ["mirror", "clamp"], ["border", "wrap"], ["clamp", "border"]])
def test_addressing(client, clean, modes):
    for filtered in ("point", "linear"):
        spec = spec_of("2d", addressing=modes, normalized_coordinates=True, filter=filtered)
        compare(client, clean, make(client, clean, spec))
        client.delete(clean + "/textures/t").expect(204)


@pytest.mark.parametrize("kernel, dimension", [("lod_1d", "1d"), ("lod_2d", "2d"), ("lod_3d", "3d"), ("grad_2d", "2d")])
def test_levels_and_gradients_read_the_only_level(client, clean, kernel, dimension):
    compare(client, clean, make(client, clean, spec_of(dimension, filter="linear")), kernel=kernel)


@pytest.mark.parametrize("texel, channels", [("f32", 1), ("u8", 4), ("s16", 2), ("f16", 4)])
def test_gather(client, clean, texel, channels):
    texture = make(client, clean, spec_of("2d", format=texel, channels=channels))
    data, points = as_given(coordinates(random.Random(5), Texture({**texture.spec, "filter": "linear"}, [])))
    for channel in range(channels):
        got = fetch(client, clean, texture, f"gather_{channel}", data)
        for point, found in zip(points, got):
            assert found == texture.gather(point[:3], channel), (point, channel)


def test_over_a_buffer(client, clean):
    """tex1Dfetch, and rows with a pitch. The buffer stays while a texture reads it."""
    rng = random.Random(7)
    values = [rng.uniform(-1, 1) for _ in range(1024)]
    client.put_octets(clean + "/buffers/b", struct.pack("<1024f", *values)).expect(201)
    line = Texture({"dimension": "1d", "format": "f32", "extent": [100], "addressing": "border", "buffer": "b", "offset": 512},
                   list(struct.unpack_from("<100f", struct.pack("<1024f", *values), 512)))
    client.put(clean + "/textures/t", {k: v for k, v in line.spec.items() if k != "addressing"}).expect(201)
    data, points = as_given([[float(i), 0, 0, 0] for i in range(-3, 104)])
    assert fetch(client, clean, line, "fetch", data) == [line.fetch(p[:3]) for p in points]
    plane = client.put(clean + "/textures/p", {"dimension": "2d", "format": "f32", "extent": [6, 5], "buffer": "b", "pitch": 64,
                                               "filter": "linear"}).expect(201).json()
    assert plane["pitch"] == 64 and plane["size"] == 4 * 64 + 24 and plane["buffer"] == "b" and plane["offset"] == 0
    rows = struct.unpack("<80f", client.get(clean + "/buffers/b/data", Range="bytes=0-319").body)
    flat = Texture({"dimension": "2d", "format": "f32", "extent": [6, 5], "filter": "linear"},
                   [rows[16 * y + x] for y in range(5) for x in range(6)])
    data, points = as_given(coordinates(rng, flat))
    for found, point in zip(fetch(client, clean, flat, "2d", data, name="p"), points):
        assert close(found, flat.fetch(point[:3]), flat)
    refused = client.delete(clean + "/buffers/b")
    assert refused.code == "buffer_busy" and "2 of the session's textures" in refused.json()["detail"]
    client.put_octets(clean + "/textures/t/data", struct.pack("<f", 5), Content_Range="bytes 4-7/400").expect(204)
    assert client.get(clean + "/buffers/b/data", Range="bytes=516-519").body == struct.pack("<f", 5)
    client.delete(clean + "/textures/t").expect(204)
    client.delete(clean + "/textures/p").expect(204)
    client.delete(clean + "/buffers/b").expect(204)


# ---- surfaces ----

KINDS = (("float", "Zero"), ("float4", "Trap"), ("uchar4", "Clamp"), ("short", "Clamp"))


@pytest.fixture
def surface(client, session):
    client.put_cuda(session + "/modules/m", "typedef unsigned char uchar;\n" + surfaces(*KINDS)).expect(201)
    return session


def places_of(texture):
    """Every texel, in the order of the data: x, y, z, layer."""
    images = texture.layers * texture.faces
    return [(x, y, z, image) for image in range(images) for z in range(texture.size[2]) for y in range(texture.size[1])
            for x in range(texture.size[0])]


def access(client, session, what, places, data, width, **changes):
    client.put_octets(session + "/buffers/at", b"".join(struct.pack("<4i", *p) for p in places))
    client.put_octets(session + "/buffers/data", data)
    answer = client.post(session + "/launches", {"module": "m", "kernel": what, "grid": [(len(places) + 31) // 32], "block": [32],
                                                 "args": [{"surf": "t"}, {"buf": "at"}, {"buf": "data"}, {"i32": len(places)}], **changes})
    client.delete(session + "/buffers/at")
    got = client.get(session + "/buffers/data/data").body if answer.status == 200 else None
    client.delete(session + "/buffers/data")
    return answer, got


@pytest.mark.parametrize("dimension", sorted(EXTENTS))
@pytest.mark.parametrize("kind, mode, members", [("float", "Zero", {"format": "f32"}), ("float4", "Trap", {"format": "f32", "channels": 4}),
                                                 ("uchar4", "Clamp", {"format": "u8", "channels": 4}), ("short", "Clamp", {"format": "s16"})])
def test_surfaces(client, surface, dimension, kind, mode, members):
    """Each texel is written by a kernel, read back by one, and through REST."""
    spec = spec_of(dimension, surface=True, **members)
    texture = make(client, surface, spec)
    width = len(texture.bytes()) // (texture.count() // texture.channels)
    places = places_of(texture)
    order = list(range(len(places)))
    random.Random(3).shuffle(order)
    before = texture.bytes()
    answer, got = access(client, surface, f"read_{dimension}_{kind}_{mode}", [places[i] for i in order], bytes(len(before)), width)
    answer.expect(200)
    assert got == b"".join(before[i * width:(i + 1) * width] for i in order)
    new = random.Random(4).randbytes(len(before))
    access(client, surface, f"write_{dimension}_{kind}_{mode}", [places[i] for i in order],
           b"".join(new[i * width:(i + 1) * width] for i in order), width)[0].expect(200)
    assert client.get(surface + "/textures/t/data").body == new
    client.delete(surface + "/textures/t").expect(204)


@of_cpu
def test_boundaries(client, surface):
    texture = make(client, surface, spec_of("2d", surface=True))
    outside = [(-1, 0, 0, 0), (9, 0, 0, 0), (0, -1, 0, 0), (0, 5, 0, 0), (3, 2, 0, 0)]
    answer, got = access(client, surface, "read_2d_float_Zero", outside, b"\xff" * 20, 4)
    assert struct.unpack("<5f", got) == (0, 0, 0, 0, texture.texels[2 * 9 + 3])
    access(client, surface, "write_2d_float_Zero", outside[:4], bytes(16), 4)[0].expect(200)
    assert client.get(surface + "/textures/t/data").body == texture.bytes()
    client.delete(surface + "/textures/t").expect(204)
    texture = make(client, surface, spec_of("2d", format="s16", surface=True))
    answer, got = access(client, surface, "read_2d_short_Clamp", outside, bytes(10), 2)
    at = [texture.texels[9 * y + x] for x, y in ((0, 0), (8, 0), (0, 0), (0, 4), (3, 2))]
    assert list(struct.unpack("<5h", got)) == at
    client.delete(surface + "/textures/t").expect(204)
    make(client, surface, spec_of("2d", channels=4, surface=True))
    answer, _ = access(client, surface, "write_2d_float4_Trap", [(9, 1, 0, 0)], bytes(16), 16)
    assert answer.code == "kernel_fault" and "surface access outside 9 x 5 x 1 texels" in answer.json()["detail"]
    assert client.get(surface + "/textures/t").code in ("session_faulted", "texture_not_found")
    client.post(surface + "/reset", {}).expect(200)
    assert client.get(surface + "/textures").json()["items"] == []


# ---- requests ----

WRONG = [
    ({"dimension": "4d"}, "/dimension"), ({"format": "f64"}, "/format"), ({"channels": 3}, "/channels"), ({"extent": [4]}, "/extent"),
    ({"extent": [4, 0]}, "/extent/1"), ({"extent": [131073, 1]}, "/extent/0"), ({"extent": [4, "x"]}, "/extent/1"), ({"layers": 2}, "/layers"),
    ({"dimension": "2d_layered", "layers": 2049}, "/layers"), ({"mip_levels": 2}, "/mip_levels"), ({"addressing": "wrap"}, "/addressing"),
    ({"addressing": ["clamp"]}, "/addressing"), ({"addressing": "edge"}, "/addressing"), ({"filter": "cubic"}, "/filter"),
    ({"format": "u8", "filter": "linear"}, "/filter"), ({"read": "normalized_float"}, "/read"), ({"pitch": 64}, "/pitch"),
    *(({"format": texel, "read": "srgb"}, "/read") for texel in sorted(WIDTHS) if texel != "u8"), ({"read": "sRGB"}, "/read"),
    ({"offset": 512}, "/offset"), ({"buffer": "b", "offset": 4}, "/offset"), ({"buffer": "b", "pitch": 40}, "/pitch"),
    ({"buffer": "b", "surface": True}, "/surface"), ({"buffer": "b", "dimension": "3d", "extent": [4, 4, 4]}, "/dimension"),
    ({"dimension": "cube", "extent": [4], "normalized_coordinates": False}, "/normalized_coordinates"),
    ({"buffer": "b", "dimension": "1d", "extent": [4], "normalized_coordinates": True}, "/normalized_coordinates"),
    ({"buffer": "b", "extent": [32, 1000]}, "/buffer"), ({"extent": [18446744073709551615, 1]}, "/extent/0"),
]


@pytest.mark.parametrize("change, pointer", WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_wrong_requests_name_the_member(client, session, change, pointer):
    client.put(session + "/buffers/b", {"size": 4096}).expect(201)
    answer = client.put(session + "/textures/t", {"dimension": "2d", "format": "f32", "extent": [16, 4], **change})
    assert answer.status == 400 and answer.code == "invalid_field", answer
    assert answer.json()["errors"][0]["pointer"] == pointer, answer
    assert client.get(session + "/textures/t").code == "texture_not_found"
    client.delete(session + "/buffers/b").expect(204)


def test_resource(client, session):
    """As buffers: created once, listed, counted, freed."""
    spec = {"dimension": "2d", "format": "u8", "channels": 4, "extent": [16, 8], "filter": "point", "surface": True}
    made = client.put(session + "/textures/t", spec).expect(201)
    assert made.headers["Location"].endswith("/textures/t")
    row = made.json()
    assert row["size"] == 512 and row["texels"] == "t.texels" and row["addressing"] == ["clamp", "clamp"] and "layers" not in row
    assert client.put(session + "/textures/t", spec).expect(200).json() == row == client.get(session + "/textures/t").json()
    assert client.put(session + "/textures/t", {**spec, "filter": "linear", "read": "normalized_float"}).code == "spec_conflict"
    own = client.post(session + "/textures", spec).expect(201).json()["id"]
    assert [item["id"] for item in client.get(session + "/textures").json()["items"]] == sorted([own, "t"])
    assert client.get(session).json()["usage"]["memory_bytes"] == 1024
    client.put_octets(session + "/textures/t/data", bytes(512)).expect(204)
    client.put_octets(session + "/textures/t/data", bytes(range(256)), Content_Range="bytes 128-383/512").expect(204)
    assert client.get(session + "/textures/t/data", Range="bytes=124-131").body == bytes((0, 0, 0, 0, 0, 1, 2, 3))
    broken = client.get(session + "/textures/t/data", Range="bytes=127-130")
    assert broken.code == "range_not_satisfiable" and "not whole texels of 4 bytes" in broken.json()["detail"]
    assert client.put_octets(session + "/textures/t/data", bytes(511)).code == "length_mismatch"
    client.delete(session + "/textures/t").expect(204)
    client.delete(session + "/textures/" + own).expect(204)
    assert client.get(session).json()["usage"]["memory_bytes"] == 0
    assert client.get(session + "/textures/t/data").code == client.delete(session + "/textures/t").code == "texture_not_found"


@pytest.mark.parametrize("dimension", EXTENTS)
def test_texels_sampled_in_two_ways(client, clean, dimension):
    """A texture over the texels of another: what is written by one is read by both, each in its own way."""
    own = spec_of(dimension, filter="linear", normalized_coordinates=True, surface=True)
    texture = make(client, clean, {**own, "layers": 2} if "layered" in dimension else own)
    other = {**texture.spec, "filter": "point", "addressing": "border"}
    row = client.put(clean + "/textures/other", {**other, "buffer": "t.texels"}).expect(201).json()
    assert row["buffer"] == "t.texels" and row["object"] != client.get(clean + "/textures/t").json()["object"]
    assert client.put(clean + "/textures/other", {**other, "buffer": "t.texels"}).status == 200
    assert client.put(clean + "/textures/other", other).code == "spec_conflict"
    assert client.get(clean).json()["usage"]["memory_bytes"] == len(texture.bytes())
    texture = Texture(other, texels(random.Random(6), texture))
    client.put_octets(clean + "/textures/other/data", texture.bytes()).expect(204)
    assert client.get(clean + "/textures/t/data").body == texture.bytes()
    for name, spec in (("t", {**other, "filter": "linear", "addressing": "clamp"}), ("other", other)):
        sampled = Texture(spec, texture.texels)
        data, points = as_given(coordinates(random.Random(7), sampled))
        for got, point in zip(fetch(client, clean, sampled, dimension, data, name), points):
            expected = sampled.fetch(point[:3], int(point[3]))
            assert all(abs(a - b) <= ALLOWED * 8 for a, b in zip(got, expected)), (name, point, got, expected)
    busy = client.delete(clean + "/textures/t")
    assert busy.code == "buffer_busy" and "1 of the session's textures" in busy.json()["detail"]
    client.delete(clean + "/textures/other").expect(204)
    client.delete(clean + "/textures/t").expect(204)
    assert client.get(clean).json()["usage"]["memory_bytes"] == 0


@pytest.mark.parametrize("change, pointer", [
    ({"format": "s32"}, "/buffer"), ({"extent": [16, 5]}, "/buffer"), ({"channels": 2}, "/buffer"), ({"offset": 512}, "/offset"),
    ({"dimension": "1d", "extent": [64]}, "/buffer"), ({"surface": True}, "/surface"), ({"pitch": 64}, None),
    ({"buffer": "view.texels"}, "/buffer"), ({"buffer": "none.texels"}, "/buffer"), ({"buffer": "t.tex"}, "/buffer")])
def test_what_cannot_read_anothers_texels(client, session, change, pointer):
    spec = {"dimension": "2d", "format": "f32", "extent": [16, 4]}
    client.put(session + "/textures/t", spec).expect(201)
    client.put(session + "/textures/view", {**spec, "buffer": "t.texels"}).expect(201)
    answer = client.put(session + "/textures/wrong", {**spec, "buffer": "t.texels", **change})
    assert answer.code in ("invalid_field", "buffer_not_found"), answer
    assert pointer is None or answer.json()["errors"][0]["pointer"] == pointer, answer
    client.delete(session + "/textures/view").expect(204)
    client.delete(session + "/textures/t").expect(204)


def test_the_number_of_a_texture_in_a_buffer(client, clean):
    """A kernel finds it there as an argument would bring it."""
    texture = make(client, clean, spec_of("2d"))
    client.put_cuda(clean + "/modules/n", """
        extern "C" __global__ void look(const cudaTextureObject_t *t, float *out) { *out = tex2D<float>(*t, 3, 2); }""").expect(201)
    number = int(client.get(clean + "/textures/t").json()["object"])
    client.put_octets(clean + "/buffers/numbers", struct.pack("<Q", number)).expect(201)
    client.put(clean + "/buffers/out", {"size": 4}).expect(201)
    client.post(clean + "/launches", {"module": "n", "kernel": "look", "grid": [1], "block": [1],
                                      "args": [{"buf": "numbers"}, {"buf": "out"}]}).expect(200)
    assert struct.unpack("<f", client.get(clean + "/buffers/out/data").body)[0] == texture.fetch([3, 2, 0])[0]


def test_memory_counts(client):
    session = client.post("/v1/sessions", {"memory_limit": 1 << 20}).expect(201).headers["Location"]
    spec = {"dimension": "2d", "format": "f32", "extent": [512, 256]}
    client.put(session + "/textures/a", spec).expect(201)
    client.put(session + "/textures/b", spec).expect(201)
    refused = client.put(session + "/textures/c", spec)
    assert refused.code == "quota_exceeded" and refused.json()["limit"]["name"] == "session_memory_bytes", refused
    client.delete(session + "/textures/a").expect(204)
    client.put(session + "/textures/c", spec).expect(201)


def test_texels_are_a_buffer(client, session):
    """Copied from and to, in batches too; never filled, shared, freed or passed as an address."""
    client.put_octets(session + "/buffers/b", bytes(range(64))).expect(201)
    client.put(session + "/textures/t", {"dimension": "1d", "format": "u8", "extent": [64]}).expect(201)
    client.post(session + "/buffers/t.texels/copy", {"from": "b"}).expect(204)
    assert client.get(session + "/textures/t/data").body == bytes(range(64))
    shown = client.get(session + "/buffers/t.texels").expect(200).json()
    assert (shown["id"], shown["size"]) == ("t.texels", 64) and "address" not in shown
    assert client.post(session + "/buffers/b/compare", {"with": "t.texels"}).expect(200).json()["equal"]
    refused = client.post(session + "/launches", {"builtin": "axpy", "dtype": "f32",
                                                  "args": [{"f32": 1}, {"buf": "t.texels"}, {"buf": "b"}, {"u64": 4}]})
    assert refused.code == "buffer_not_found" and "copy texels to one" in refused.json()["detail"], refused
    got = client.post(session + "/batches", {"ops": [
        {"op": "copy", "to": "b", "from": "t.texels", "offset": 32, "size": 8}, {"op": "read", "from": "t.texels", "size": 4, "segment": "x"}]})
    assert got.status == 200, got
    assert client.get(session + "/buffers/b/data", Range="bytes=32-39").body == bytes(range(8))
    assert client.post(session + "/buffers/t.texels/fill", {"pattern": {"u8": 1}}).status == 400
    assert client.delete(session + "/buffers/t.texels").status == 400
    assert client.post(session + "/batches", {"ops": [{"op": "fill", "to": "t.texels", "pattern": {"u8": 1}}]}).status == 400
    assert client.get(session + "/buffers/t.tex/data").code == "buffer_not_found"


def test_arguments(client, clean):
    """In launches, batches and programs; wrong ones are refused before anything runs."""
    texture = make(client, clean, spec_of("2d"))
    data, points = as_given([[2.5, 1.5, 0, 0]])
    client.put_octets(clean + "/buffers/at", data).expect(201)
    client.put(clean + "/buffers/out", {"size": 16}).expect(201)
    launch = {"op": "launch", "module": "m", "kernel": "get_2d_float4", "grid": [1], "block": [1],
              "args": [{"tex": "t"}, {"buf": "at"}, {"buf": "out"}, {"i32": 1}]}
    expected = struct.pack("<4f", *texture.fetch(points[0][:3]))
    client.post(clean + "/batches", {"ops": [launch]}).expect(200)
    assert client.get(clean + "/buffers/out/data").body == expected
    client.post(clean + "/buffers/out/fill", {"pattern": {"u8": 0}}).expect(204)
    client.put(clean + "/programs/p", {"ops": [launch]}).expect(201)
    for _ in range(2):
        client.post(clean + "/programs/p/runs", {}).expect(200)
        assert client.get(clean + "/buffers/out/data").body == expected
    single = {name: value for name, value in launch.items() if name != "op"}
    for first, code in (({"tex": "none"}, "texture_not_found"), ({"surf": "t"}, "texture_not_found"), ({"buf": "t.texels"}, "texture_not_found"),
                        ({"tex": 5}, "invalid_field"), ({"tex": "t.tex"}, "invalid_field"), ({"tex": "t", "offset": 4}, "invalid_field")):
        answer = client.post(clean + "/launches", {**single, "args": [first, *single["args"][1:]]})
        assert answer.code == code, (first, answer)
    assert client.get(clean).json()["state"] == "ready"


@of_cpu
@pytest.mark.parametrize("first, text", [({"u64": 12345}, "0x3039 is no texture object"), ({"tex": "other"}, "2d access to a texture that is 3d")])
def test_wrong_objects_are_faults(client, clean, first, text):
    client.put(clean + "/textures/other", spec_of("3d")).expect(201)
    client.put(clean + "/buffers/x", {"size": 64}).expect(201)
    answer = client.post(clean + "/launches", {"module": "m", "kernel": "get_2d_float4", "grid": [1], "block": [1],
                                               "args": [first, {"buf": "x"}, {"buf": "x"}, {"i32": 1}]})
    assert answer.code == "kernel_fault" and text in answer.json()["detail"] and answer.json()["cuda"]["name"] == "CUDA_ERROR_ILLEGAL_ADDRESS"


@of_cpu
def test_memcheck_looks_at_texels(client):
    """Read before they are written; written by a surface, they can be read."""
    session = client.post("/v1/sessions", {"memcheck": True}).expect(201).headers["Location"]
    client.put_cuda(session + "/modules/m", fetches()).expect(201)
    client.put_cuda(session + "/modules/s", surfaces(("float", "Zero"))).expect(201)
    texture = Texture(spec_of("2d", surface=True), [])
    client.put(session + "/textures/t", texture.spec).expect(201)
    places = places_of(texture)
    client.put_octets(session + "/buffers/at", b"".join(struct.pack("<4i", *p) for p in places)).expect(201)
    client.put_octets(session + "/buffers/in", struct.pack(f"<{len(places)}f", *range(len(places)))).expect(201)
    client.post(session + "/launches", {"module": "s", "kernel": "write_2d_float_Zero", "grid": [1], "block": [len(places) - 1], "args": [
        {"surf": "t"}, {"buf": "at"}, {"buf": "in"}, {"i32": len(places) - 1}]}).expect(200)
    client.delete(session + "/buffers/at").expect(204)
    data, _ = as_given([[2.5, 1.5, 0, 0]])
    assert fetch(client, session, texture, "2d", data)[0][0] == 11
    client.put_octets(session + "/buffers/last", as_given([[8.5, 4.5, 0, 0]])[0]).expect(201)
    answer = client.post(session + "/launches", {"module": "m", "kernel": "get_2d_float4", "grid": [1], "block": [1],
                                                 "args": [{"tex": "t"}, {"buf": "last"}, {"buf": "in"}, {"i32": 1}]})
    assert answer.code == "kernel_fault" and "read of uninitialised memory" in answer.json()["detail"], answer


REFUSED = {
    "tex.base.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];": "mip levels",
    "sured.b.add.2d.u32.trap [%rd1, {%r1, %r2}], %r1;": "atomics on surfaces",
    "sust.p.2d.v4.b32.trap [%rd1, {%r1, %r2}], {%r1, %r1, %r1, %r1};": "surfaces written with a conversion",
    "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1}];": "tex.2d.v4.f32.f32",
    "suld.b.2d.b32 {%r1}, [%rd1, {%r1, %r2}];": "suld.b.2d.b32",
}


@of_cpu
@pytest.mark.parametrize("instruction, text", REFUSED.items())
def test_what_is_refused_by_name(client, session, instruction, text):
    ptx = f""".version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 t)
{{
    .reg .b64 %rd<2>;
    .reg .b32 %r<3>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [t];
    {instruction}
    ret;
}}
"""
    answer = client.put(session + "/modules/m", ptx.encode(), Content_Type="application/vnd.gpurest.ptx")
    assert answer.code == "module_invalid" and text in answer.json()["detail"], answer


@of_cpu
def test_references_are_refused_by_name(client, session):
    ptx = ".version 8.0\n.target sm_75\n.address_size 64\n.global .texref t;\n"
    answer = client.put(session + "/modules/m", ptx.encode(), Content_Type="application/vnd.gpurest.ptx")
    assert answer.code == "module_invalid" and "texture references" in answer.json()["detail"], answer


def test_a_texture_lives_while_launches_use_it(client, clean):
    """Freed behind the launches that were submitted before."""
    texture = make(client, clean, spec_of("2d"))
    count = 4096
    data, points = as_given(coordinates(random.Random(9), texture, count))
    client.put_octets(clean + "/buffers/at", data).expect(201)
    client.put(clean + "/buffers/out", {"size": 16 * count}).expect(201)
    for _ in range(20):
        client.post(clean + "/launches", {"module": "m", "kernel": "get_2d_float4", "grid": [64], "block": [64],
                                          "args": [{"tex": "t"}, {"buf": "at"}, {"buf": "out"}, {"i32": count}]}, Prefer="respond-async")
    client.delete(clean + "/textures/t").expect(204)
    client.post(clean + "/sync", {}).expect(200)
    got = client.get(clean + "/buffers/out/data").body
    assert list(struct.unpack_from("<4f", got)) == texture.fetch(points[0][:3])
    assert client.get(clean).json()["state"] == "ready"


def test_other_tenants_textures_are_not_there(client, session):
    client.put(session + "/textures/t", {"dimension": "1d", "format": "u8", "extent": [4]}).expect(201)
    other = client.post("/v1/sessions", {}).expect(201).headers["Location"]
    assert client.get(other + "/textures/t").code == "texture_not_found"
    assert client.get(other + "/buffers/t.texels/data").code == "buffer_not_found"


def test_on_cuda(executable, tmp_path, driver):  # noqa: F811
    """The fake driver, whose arrays hold rubbish at first; the contract's kernels, which it knows."""
    service = start(executable, tmp_path, driver[1])
    try:
        client = service.client()
        session = client.post("/v1/sessions", {}).expect(201).headers["Location"]
        ptx = (pathlib.Path(__file__).parents[1] / "contract" / "ptx" / "textures.ptx").read_bytes()
        client.put(session + "/modules/m", ptx, Content_Type="application/vnd.gpurest.ptx").expect(201)
        client.put(session + "/textures/t", {"dimension": "2d", "format": "f32", "extent": [16, 8], "surface": True}).expect(201)
        client.put_octets(session + "/textures/t/data", struct.pack("<128f", *range(128))).expect(204)
        client.put_octets(session + "/textures/t/data", struct.pack("<20f", *range(500, 520)), Content_Range="bytes 24-103/512").expect(204)
        expected = [*range(6), *range(500, 520), *range(26, 128)]
        assert client.get(session + "/textures/t/data", Range="bytes=16-131").body == struct.pack("<29f", *expected[4:33])
        client.put(session + "/buffers/out", {"size": 512}).expect(201)
        client.post(session + "/batches", {"ops": [
            {"op": "launch", "module": "m", "kernel": "look", "grid": [1], "block": [128], "args": [{"tex": "t"}, {"buf": "out"}]},
            {"op": "launch", "module": "m", "kernel": "number", "grid": [1], "block": [128], "args": [{"surf": "t"}]}]}).expect(200)
        assert client.get(session + "/buffers/out/data").body == struct.pack("<128f", *expected)
        assert client.get(session + "/textures/t/data").body == struct.pack("<128f", *range(128))
        client.post(session + "/buffers/t.texels/copy", {"from": "out", "from_offset": 4, "offset": 64, "size": 128}).expect(204)
        assert client.get(session + "/textures/t/data", Range="bytes=60-67").body == struct.pack("<2f", 15, 1)
        assert client.post(session + "/buffers/t.texels/fill", {"pattern": {"u8": 1}}).status == 400
        assert client.get(session + "/textures/t/data", Range="bytes=1-2").code == "range_not_satisfiable"
        large = client.put(session + "/textures/large", {"dimension": "3d", "format": "f32", "extent": [4096, 4096, 4096]})
        assert large.code == "device_memory_exhausted" and "274877906944 bytes requested" in large.json()["detail"]
        client.put(session + "/textures/b", {"dimension": "2d", "format": "f32", "extent": [16, 8], "buffer": "out"}).expect(201)
        client.put(session + "/textures/v", {"dimension": "2d", "format": "f32", "extent": [16, 8], "buffer": "t.texels"}).expect(201)
        assert client.get(session + "/textures/v/data").body == client.get(session + "/textures/t/data").body
        client.delete(session + "/textures/v").expect(204)
        client.delete(session + "/textures/b").expect(204)
        client.delete(session + "/textures/t").expect(204)
        assert client.get(session).json()["state"] == "ready"
    finally:
        service.stop()
