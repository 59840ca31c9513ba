"""What kernels read from textures on a GPU and on the cpu device of one service: the same bits where points are sampled, the same means within
what 8 bits of fraction leave open where they are filtered. Skipped without a GPU."""
import contextlib
import random
import struct

import pytest

from test_textures import EXTENTS, as_given, coordinates, fetch, make, places_of, spec_of
from texture_kernels import fetches, surfaces
from texture_model import CONVERTED, WIDTHS, Texture, linear_light

pytestmark = pytest.mark.skipif("not __import__('os').path.exists('/dev/nvidiactl')", reason="no GPU on this machine")


@pytest.fixture
def both(start):
    """A session on each device, with the kernels."""
    service = start("--backends", "cuda,cpu")
    client = service.client()
    if "cuda:0" not in [row["id"] for row in client.get("/v1/devices").json()["items"]]:
        pytest.skip("the service finds no GPU")
    sessions = []
    for device in ("cuda:0", "cpu:0"):
        sessions.append(client.post("/v1/sessions", {"device": device}).expect(201).headers["Location"])
        client.put_cuda(sessions[-1] + "/modules/m", fetches()).expect(201)
    return client, sessions


def reads(both, spec, data, kernel):
    """The channels that the texture has, from the GPU and from the cpu device."""
    client, sessions = both
    found = []
    for session in sessions:
        texture = make(client, session, spec)
        found.append([row[:texture.channels] if not kernel.startswith("gather") else row for row in fetch(client, session, texture, kernel, data)])
        client.delete(session + "/textures/t").expect(204)
    return texture, found[0], found[1]


def bits(row):
    return struct.pack(f"<{len(row)}d", *row)


def widest(texture):
    """The largest step between texels that a fraction can weigh."""
    values = [texture.value(v, i % texture.channels) for i, v in enumerate(texture.texels)]
    return max(values) - min(values)


SPECS = [spec_of(dimension, **members) for dimension in sorted(EXTENTS) for members in (
    {}, {"channels": 4, "normalized_coordinates": True}, {"format": "u8", "channels": 2}, {"format": "s16"},
    {"format": "u8", "channels": 4, "read": "normalized_float"}, {"format": "f16", "channels": 2})]
SRGB = spec_of("2d", format="u8", channels=4, read="srgb")
SPECS += [spec_of("2d", format=texel) for texel in sorted(WIDTHS)]
SPECS += [spec_of("2d", addressing=modes, normalized_coordinates=True) for modes in (["wrap", "mirror"], ["mirror", "border"], ["border", "wrap"])]


def test_points_have_the_same_bits(both):
    different = []
    for spec in SPECS:
        if "cube" in spec["dimension"]:
            spec = {key: value for key, value in spec.items() if key != "normalized_coordinates"}
        data, points = as_given(coordinates(random.Random(11), Texture(spec, [])))
        texture, gpu, cpu = reads(both, spec, data, spec["dimension"])
        different += [(spec, point, g, c) for point, g, c in zip(points, gpu, cpu) if bits(g) != bits(c)]
    assert not different, (len(different), different[:8])


def test_gathers_have_the_same_bits(both):
    different = []
    for members in ({}, {"format": "u8", "channels": 4}, {"format": "s16", "channels": 2}):
        spec = spec_of("2d", **members)
        data, points = as_given(coordinates(random.Random(12), Texture({**spec, "filter": "linear"}, [])))
        for channel in range(spec.get("channels", 1)):
            _, gpu, cpu = reads(both, spec, data, f"gather_{channel}")
            different += [(spec, channel, point, g, c) for point, g, c in zip(points, gpu, cpu) if bits(g) != bits(c)]
    assert not different, (len(different), different[:8])


def test_means_agree_within_the_fraction(both):
    """Each axis may round its fraction by one in 256, and the mean is rounded."""
    different, apart = [], 0.0
    for spec in SPECS + [SRGB]:
        if not Texture(spec, []).floats:
            continue
        spec = {**spec, "filter": "linear"}
        if "cube" in spec["dimension"]:
            spec.pop("normalized_coordinates", None)
        data, points = as_given(coordinates(random.Random(13), Texture(spec, [])))
        texture, gpu, cpu = reads(both, spec, data, spec["dimension"])
        axes = 2 if texture.faces > 1 else len(spec["extent"])
        allowed = axes * widest(texture) / 256 + 1e-6
        for point, g, c in zip(points, gpu, cpu):
            step = max(abs(a - b) for a, b in zip(g, c))
            apart = max(apart, step / allowed)
            if step > allowed:
                different.append((spec, point, g, c))
    print(f"largest difference: {apart:.3f} of what is allowed")
    assert not different, (len(different), different[:8])


def test_srgb_means_the_same_byte(both):
    """Of each byte in each channel the GPU's value is nearer to its linear light than to that of any other byte."""
    apart, steps = 0.0, [linear_light(v / 255) for v in range(256)]
    data, _ = as_given([[i % 16 + 0.5, i // 16 + 0.5, 0, 0] for i in range(256)])
    for channels in (1, 2, 4):
        spec = {**SRGB, "extent": [16, 16], "channels": channels}
        rows = []
        for session in both[1]:
            both[0].put(session + "/textures/t", spec).expect(201)
            both[0].put_octets(session + "/textures/t/data", bytes(v for v in range(256) for _ in range(channels))).expect(204)
            rows.append(fetch(both[0], session, Texture(spec, []), "2d", data))
            both[0].delete(session + "/textures/t").expect(204)
        for byte, (g, c) in enumerate(zip(*rows)):
            apart = max([apart] + [abs(a - b) for a, b in zip(g, c)])
            for channel in range(4):
                if channel in CONVERTED[channels]:
                    assert min(range(256), key=lambda v: abs(steps[v] - g[channel])) == byte, (channels, channel, byte, g, c)
                else:
                    assert g[channel] == c[channel], (channels, channel, byte, g, c)
    print(f"largest difference: {apart}")


def test_channels_that_are_not_there(both):
    data, _ = as_given([[2.5, 1.5, 0, 0]])
    client, sessions = both
    for members in ({}, {"channels": 2}, {"format": "u8"}, {"format": "s32", "channels": 2}, {"format": "u8", "read": "normalized_float"}):
        rows = []
        for session in sessions:
            rows.append(fetch(client, session, make(client, session, spec_of("2d", **members)), "2d", data))
            client.delete(session + "/textures/t").expect(204)
        assert rows[0] == rows[1], members


def test_memory_read_by_index(both):
    data, _ = as_given([[float(i), 0, 0, 0] for i in range(-3, 104)])
    client, sessions = both
    rows = []
    for session in sessions:
        client.put_octets(session + "/buffers/b", struct.pack("<1024f", *range(1024))).expect(201)
        spec = {"dimension": "1d", "format": "f32", "extent": [100], "buffer": "b", "offset": 512}
        client.put(session + "/textures/t", spec).expect(201)
        rows.append([row[:1] for row in fetch(client, session, Texture(spec, []), "fetch", data)])
        with contextlib.suppress(AssertionError):
            client.delete(session + "/textures/t").expect(204)
    assert rows[0] == rows[1]


def test_surfaces_hold_what_was_written(both):
    """Inside, and outside where that is defined."""
    client, sessions = both
    for dimension in sorted(EXTENTS):
        results = []
        for session in sessions:
            client.put_cuda(session + "/modules/s", surfaces(("float", "Zero"), ("short", "Clamp"))).expect(201)
            texture = make(client, session, spec_of(dimension, format="s16", surface=True))
            places = places_of(texture) + [(-1, 0, 0, 0), (texture.size[0], 0, 0, 0)]
            client.put_octets(session + "/buffers/at", b"".join(struct.pack("<4i", *p) for p in places))
            client.put_octets(session + "/buffers/data", struct.pack(f"<{len(places)}h", *range(len(places))))
            arguments = [{"surf": "t"}, {"buf": "at"}, {"buf": "data"}, {"i32": len(places)}]
            launch = {"module": "s", "grid": [(len(places) + 31) // 32], "block": [32], "args": arguments}
            client.post(session + "/launches", {**launch, "kernel": f"read_{dimension}_short_Clamp"}).expect(200)
            read = client.get(session + "/buffers/data/data").body
            client.put_octets(session + "/buffers/data/data", struct.pack(f"<{len(places)}h", *range(len(places))))
            client.post(session + "/launches", {**launch, "kernel": f"write_{dimension}_short_Clamp",
                                                "args": arguments[:3] + [{"i32": len(places) - 2}]}).expect(200)
            results.append((read, client.get(session + "/textures/t/data").body))
            for path in ("/textures/t", "/buffers/at", "/buffers/data", "/modules/s"):
                client.delete(session + path).expect(204)
        assert results[0] == results[1], dimension
