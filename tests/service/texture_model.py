"""What a texture fetch gives, after the CUDA C++ Programming Guide, "Texture Fetching": written from its formulas, for texels in lists.

A texture is read as T[z][y][x], a list of channels each. Fractions have 8 bits (9-bit fixed point), as the guide says."""
import math
import struct

WIDTHS = {"u8": "B", "s8": "b", "u16": "H", "s16": "h", "u32": "I", "s32": "i", "f16": "e", "f32": "f"}
AXES = {"1d": 1, "2d": 2, "3d": 3, "1d_layered": 1, "2d_layered": 2, "cube": 1, "cube_layered": 1}
CONVERTED = {1: (0,), 2: (0,), 4: (0, 1, 2)}  # channels from sRGB to linear light, by how many a texture has; as an H200 does
GATHERED = ((0, 1), (1, 1), (1, 0), (0, 0))


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def linear_light(c):
    """IEC 61966-2-1, from 0 to 1."""
    return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4


class Texture:
    """The request's members, and the texels in the order of the data."""

    def __init__(self, spec, texels):
        self.spec, self.texels = spec, texels
        self.channels, self.dimension = spec.get("channels", 1), spec["dimension"]
        self.faces = 6 if "cube" in self.dimension else 1
        self.layers = spec.get("layers", 1)
        self.size = (spec["extent"] + [1, 1])[:3]
        if self.faces > 1:
            self.size[1] = self.size[0]
        self.normalized = spec.get("normalized_coordinates", self.faces > 1)
        modes = spec.get("addressing", "clamp")
        self.modes = [modes] * 3 if isinstance(modes, str) else modes
        self.floats = spec["format"][0] == "f" or spec.get("read", "element") != "element"

    def count(self):
        return self.size[0] * self.size[1] * self.size[2] * self.layers * self.faces * self.channels

    def bytes(self):
        return struct.pack(f"<{len(self.texels)}{WIDTHS[self.spec['format']]}", *self.texels)

    def value(self, v, channel):
        """As it is read."""
        if self.spec.get("read", "element") == "element":
            return v
        if self.spec["read"] == "srgb" and channel in CONVERTED[self.channels]:
            return single(linear_light(v / 255))
        return single(max(v / {"u8": 255, "s8": 127, "u16": 65535, "s16": 32767}[self.spec["format"]], -1.0))

    def texel(self, image, x, y, z):
        """Channels of T[x, y, z], after addressing; None: the border."""
        at = [x, y, z]
        for axis, size in enumerate(self.size):
            mode = "clamp" if self.faces > 1 else self.modes[min(axis, len(self.modes) - 1)]
            if 0 <= at[axis] < size:
                continue
            if mode == "border":
                return [0] * self.channels
            if mode == "clamp":
                at[axis] = min(max(at[axis], 0), size - 1)
            elif mode == "wrap":
                at[axis] %= size
            else:
                at[axis] %= 2 * size
                at[axis] = min(at[axis], 2 * size - 1 - at[axis])
        place = ((image * self.size[2] + at[2]) * self.size[1] + at[1]) * self.size[0] + at[0]
        return [self.value(v, i) for i, v in enumerate(self.texels[place * self.channels:(place + 1) * self.channels])]

    def place(self, at, layer):
        """The image, and the position in texels on it."""
        image = min(max(layer, 0), self.layers - 1)
        if self.faces > 1:
            face, s, t = face_of(*at)
            image, at = image * 6 + face, [s, t, 0.0]
        used = 2 if self.faces > 1 else AXES[self.dimension]
        return image, [at[k] * (self.size[k] if self.normalized else 1) if k < used else None for k in range(3)]

    def fetch(self, at, layer=0):
        image, position = self.place(at, layer)
        if self.spec.get("filter") != "linear":
            return self.whole(self.texel(image, *(0 if p is None else math.floor(p) for p in position)))
        taps = [[(0, 1.0)] if p is None else pair(p) for p in position]
        total = [0.0] * self.channels
        for x, a in taps[0]:
            for y, b in taps[1]:
                for z, c in taps[2]:
                    total = [t + a * b * c * v for t, v in zip(total, self.texel(image, x, y, z))]
        return self.whole([single(t) for t in total])

    def gather(self, at, channel):
        image, position = self.place(at, 0)
        taps = [pair(position[0]), pair(position[1])]
        return [self.texel(image, taps[0][i][0], taps[1][j][0], 0)[channel] for i, j in GATHERED]

    def whole(self, channels):
        return channels + [0] * (4 - len(channels))


def pair(position):
    """The two texels beside it, and their weights."""
    fixed = math.floor((position - 0.5) * 256 + 0.5)
    return [(fixed >> 8, 1 - fixed % 256 / 256), ((fixed >> 8) + 1, fixed % 256 / 256)]


def face_of(x, y, z):
    """The table of "Cubemap Textures"."""
    if abs(x) >= abs(y) and abs(x) >= abs(z):
        face, m, s, t = (0, x, -z, -y) if x >= 0 else (1, -x, z, -y)
    elif abs(y) >= abs(z):
        face, m, s, t = (2, y, x, z) if y >= 0 else (3, -y, x, -z)
    else:
        face, m, s, t = (4, z, x, -y) if z >= 0 else (5, -z, -x, -y)
    return face, single(single(single(s / m) + 1) / 2), single(single(single(t / m) + 1) / 2)
