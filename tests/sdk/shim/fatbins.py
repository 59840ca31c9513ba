"""The kernels of the programs in every form that the library reads: PTX, and fatbins of it, compressed or not."""
import ctypes
import pathlib
import re
import struct


def ptx():
    """The kernels of the programs."""
    source = pathlib.Path(__file__).with_name("kernels.c").read_text()
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', source.split("kernels_ptx[] =")[1])).encode().decode("unicode_escape").encode() + b"\0"


def lz4(data):
    library = ctypes.CDLL("liblz4.so.1")
    room = library.LZ4_compressBound(len(data))
    out = ctypes.create_string_buffer(room)
    length = library.LZ4_compress_default(data, out, len(data), room)
    return out.raw[:length]


def zstd(data):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    room = library.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(room)
    length = library.ZSTD_compress(out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:length]


def entry(payload, kind=1, architecture=70, flags=0x11, unpacked=0):
    """One part of a fatbin, as nvcc writes them: 1 is PTX, 2 a cubin."""
    packed = len(payload) if unpacked else 0
    payload += bytes(-len(payload) % 8)
    return struct.pack("<HHIQIIIIIIQQQ", kind, 0x101, 64, len(payload), packed, 0, 0, architecture, 64, 0, flags, 0, unpacked) + payload


def fatbin(*entries):
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, sum(map(len, entries))) + b"".join(entries)


def images():
    text, newer = ptx(), entry(b".version 9.0\n.target sm_121\n\0", architecture=121)
    cubin = entry(b"\x7fELF" + bytes(60), kind=2, architecture=75)
    return {"plain": text, "fatbin": fatbin(cubin, entry(b"nonsense\0", architecture=50), entry(text), newer),
            "lz4": fatbin(entry(lz4(text), flags=0x2011, unpacked=len(text))), "zstd": fatbin(newer, entry(zstd(text), flags=0x8011, unpacked=len(text)))}
