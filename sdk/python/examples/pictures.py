"""Pictures as NumPy arrays of bytes, (height, width, 3): PNG files with 8 bits per channel, by the standard library alone."""
import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # grey, RGB, grey with alpha, RGB with alpha


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path, picture):
    """Every row is stored as its difference to the row above (filter 2), which smooth pictures compress best with."""
    rows = np.ascontiguousarray(picture, np.uint8)
    height, width, _ = rows.shape
    above = np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])
    filtered = np.concatenate([np.full((height, 1), 2, np.uint8), (rows - above).reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(path, "wb") as out:
        out.write(SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(filtered.tobytes(), 9)) + _chunk(b"IEND", b""))


def _chunks(data):
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + length]
        at += 12 + length


def _paeth(left, above, corner):
    """The neighbour nearest to left + above - corner."""
    to_left, to_above, to_corner = abs(above - corner), abs(left - corner), abs(left + above - 2 * corner)
    if to_left <= to_above and to_left <= to_corner:
        return left
    return above if to_above <= to_corner else corner


def _restore(kind, line, above, step):
    """Undoes a row's filter. `line` is changed and returned."""
    if kind == 2:
        return (line + above).astype(np.uint8)
    values, up = line.tolist(), above.tolist()
    for at in range(len(values) if kind else 0):
        left, corner = (values[at - step], up[at - step]) if at >= step else (0, 0)
        guess = left if kind == 1 else (left + up[at]) // 2 if kind == 3 else _paeth(left, up[at], corner)
        values[at] = (values[at] + guess) & 255
    return np.array(values, np.uint8)


def read_png(path):
    """RGB; transparency is left out, grey becomes three equal channels."""
    with open(path, "rb") as file:
        data = file.read()
    chunks = list(_chunks(data))
    if not data.startswith(SIGNATURE) or not chunks:
        raise ValueError(f"{path} is not a PNG file")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if depth != 8 or colour not in CHANNELS or interlaced:
        raise ValueError(f"{path}: only 8 bits per channel, without palette and interlacing, are read here")
    step = CHANNELS[colour]
    raw = np.frombuffer(zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT")), np.uint8).reshape(height, -1)
    rows = np.zeros((height + 1, width * step), np.uint8)
    for at in range(height):
        rows[at + 1] = _restore(raw[at, 0], raw[at, 1:], rows[at], step)
    pixels = rows[1:].reshape(height, width, step)
    return np.repeat(pixels[:, :, :1], 3, axis=2) if step < 3 else pixels[:, :, :3]
