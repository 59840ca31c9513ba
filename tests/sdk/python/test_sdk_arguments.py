"""Kernel arguments, signatures, frames, scalars: all that needs no service."""
import ctypes
import math
import struct

import pytest

import gpurest
from gpurest import errors
from gpurest._session.args import Converter, params_declared, params_of
from gpurest._transport.frame import dumps, pack, unpack
from gpurest._values.hostmem import byte_view, parse_bytes
from gpurest._values.scalars import Scalar
from gpurest._values.signature import signature
from sources import MANY, SAXPY


def convert(declaration, value, **more):
    """Packs `value` for a kernel with one parameter of this declaration."""
    converter = Converter("k", params_declared(signature(f"__global__ void k({declaration}) {{}}", "k")))
    found, = converter.convert([value], None, **more)
    assert converter.written([value], None, more.get("same_kind", False)) == dumps(found).decode()
    return found


def by_size(value, size, type_=""):
    row = {"offset": 0, "size": size, **({"type": type_} if type_ else {})}
    return Converter("k", params_of([row], None)).convert([value], None)[0]


def refused(words, *args, **more):
    with pytest.raises(errors.ArgumentError, match=words):
        convert(*args, **more)


@pytest.mark.parametrize("declaration,value,expected", [
    ("int n", 5, {"i32": 5}), ("unsigned n", 4294967295, {"u32": 4294967295}), ("unsigned long long n", 2**64 - 1, {"u64": str(2**64 - 1)}),
    ("long n", -2**63, {"i64": str(-2**63)}), ("size_t n", 7, {"u64": 7}), ("char c", -128, {"i8": -128}), ("float x", 1.5, {"f32": 1.5}),
    ("float x", 2, {"f32": 2.0}), ("double x", math.inf, {"f64": "inf"}), ("int n", -2**31, {"i32": -2**31}), ("double x", -0.0, {"f64": -0.0}), ("float x", -math.inf, {"f32": "-inf"}), ("float x", math.nan, {"f32": "nan"}),
    ("bool b", True, {"bool": True}), ("int n", True, {"i32": 1}), ("const float* p", None, {"u64": 0}),
    ("float x", gpurest.f32(3), {"f32": 3.0}), ("__half x", 2.0, {"f16": 2.0}), ("int n", ctypes.c_int(4), {"i32": 4}), ("double x", ctypes.c_double(4), {"f64": 4.0}),
    ("unsigned n", gpurest.i32(4), {"u32": 4})])
def test_a_value_becomes_what_is_declared(declaration, value, expected):
    assert convert(declaration, value) == expected


@pytest.mark.parametrize("declaration,value,words", [
    ("int n", 1.0, "Python float 1.0 for an integer"), ("int n", 1 << 31, "does not fit i32"), ("unsigned n", -1, "does not fit u32"),
    ("char c", 128, "does not fit i8"), ("float x", 1e39, "beyond the range of f32"), ("float x", True, "floating-point"),
    ("float* p", 7, "a pointer is wanted"), ("float* p", b"1234", "upload them"), ("int n", "5", "a str is no kernel argument"),
    ("int n", [1], "a list is no"), ("bool b", 2, "bool"), ("int n", gpurest.i64(1), "8 bytes, i32 is wanted"),
    ("float x", gpurest.f64(1), "8 bytes, f32 is wanted"), ("int n", gpurest.f32(1), "integer"), ("float x", gpurest.i32(1), "floating-point"),
    ("int n", None, "null pointer"), ("unsigned n", gpurest.i32(-1), "does not fit u32")])
def test_a_value_that_does_not_fit_is_refused_with_its_place(declaration, value, words):
    refused(words, declaration, value)
    refused(r"argument 0 \('\w'\) of k", declaration, value)


def test_casting_is_allowed_only_when_asked_for():
    numpy = pytest.importorskip("numpy")
    refused("same_kind", "float x", numpy.float64(2))
    assert convert("float x", numpy.float64(2), same_kind=True) == {"f32": 2.0}
    assert convert("int n", numpy.int64(2), same_kind=True) == {"i32": 2}
    refused("integer", "int n", numpy.float32(2), same_kind=True)
    assert convert("float x", numpy.float32(2)) == {"f32": 2.0} and convert("bool b", numpy.bool_(True)) == {"bool": True}
    refused("an array of the host", "float* p", numpy.zeros(3))


def test_an_int_for_a_float_is_that_number_or_an_error():
    for value in (0, 1, -7, 2**24, -(2**24), 2**24 + 2, 2**60, 3 * 2**100):
        assert convert("float x", value) == {"f32": float(value)} and by_size(value, 4, "f32") == {"f32": float(value)}
    assert convert("double x", 2**53 - 1) == {"f64": 2.0**53 - 1}
    for declaration, value in (("float x", 2**24 + 1), ("float x", -(2**24) - 1), ("float x", 2**60 + 1), ("double x", 2**53 + 1)):
        refused("has no equal", declaration, value)
        kind = "f32" if declaration.startswith("float") else "f64"
        with pytest.raises(errors.ArgumentError, match="has no equal"):
            by_size(value, 4 if kind == "f32" else 8, kind)
    assert convert("float x", float(2**24 + 1)) == {"f32": 2.0**24 + 1}, "a float is rounded, as everywhere"


def test_when_only_the_size_is_known():
    assert by_size(5, 4) == {"i32": 5} and by_size(5, 8) == {"i64": 5} and by_size(2**31, 4) == {"u32": 2**31}
    assert by_size(1.5, 4) == {"f32": 1.5} and by_size(1.5, 8) == {"f64": 1.5}
    for value, size in ((1.5, 2), (5, 16), (5, 3), (2**40, 4)):
        with pytest.raises(errors.ArgumentError):
            by_size(value, size)


def test_what_ptx_tells():
    assert by_size(5, 4, "f32") == {"f32": 5.0} and by_size(5, 4, "u32") == {"i32": 5}
    for value, size, kind in ((1.5, 4, "u32"), (1.5, 8, "u64"), (5, 8, "b8"), (gpurest.i32(1), 4, "f32")):
        with pytest.raises(errors.ArgumentError):
            by_size(value, size, kind)


def test_structs_and_bytes():
    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]

    raw = struct.pack("@id", 3, 4.5)
    for value in (Pair(3, 4.5), raw, bytearray(raw)):
        assert len(by_size(value, 16, "b8")["bytes"]) == 24
    with pytest.raises(errors.ArgumentError, match="15 bytes, the parameter has 16"):
        by_size(raw[:15], 16, "b8")
    assert by_size(gpurest.Struct(3, gpurest.f64(1), gpurest.Struct(gpurest.u8(1))), 24, "b8") == \
        {"struct": [{"i32": 3}, {"f64": 1.0}, {"struct": [{"u8": 1}]}]}
    with pytest.raises(errors.ArgumentError, match="f32"):
        by_size(gpurest.Struct(1.5), 8, "b8")
    with pytest.raises(errors.ArgumentError):
        gpurest.Struct()


def test_the_number_of_arguments():
    converter = Converter("saxpy", params_declared(signature(SAXPY, "saxpy")))
    with pytest.raises(errors.ArgumentError, match=r"takes 4 arguments \(a, x, y, n\), got 2"):
        converter.convert([1.0, None], None)
    with pytest.raises(errors.ArgumentError, match=r"takes 4 arguments \(a, x, y, n\), got 5"):
        converter.written([1.0, None, None, 7, 7], None, False)
    for _ in range(2):  # the second time from the stored plan
        assert converter.convert([1.0, None, None, 7], None)[3] == {"i32": 7}
        assert converter.written([1.0, None, None, 7], None, False) == '{"f32":1.0},{"u64":0},{"u64":0},{"i32":7}'
        for way in (converter.convert, converter.written):
            with pytest.raises(errors.ArgumentError, match="argument 3 .'n'. of saxpy"):
                way([1.0, None, None, 1 << 40], None, False)


def declared(source, kernel):
    return [(one.name, one.pointer, one.kind, one.pointee) for one in signature(source, kernel)]


def test_signatures():
    assert declared(SAXPY, "saxpy") == [("a", False, "f32", None), ("x", True, None, "f32"), ("y", True, None, "f32"), ("n", False, "i32", None)]
    assert [one.kind for one in signature(MANY, "types")][:11] == ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "bool"]
    assert declared(MANY, "pair") == [("p", False, None, None), ("out", True, None, "f64")]
    assert declared(MANY, "scale<double>") == [("a", False, "f64", None), ("x", True, None, "f64"), ("n", False, "i32", None)]
    assert declared(MANY, "scale<unsigned int>")[0][2] == "u32"


@pytest.mark.parametrize("source,kernel,expected", [
    ("__global__ void f(void) {}", "f", []),
    ("// __global__ void f(int a)\n/* f(double) */ __global__ void __launch_bounds__(64, 2) f(const unsigned char *__restrict__ p = 0) {}", "f",
     [("p", True, None, "u8")]),
    ('const char* s = "__global__ void f(int)"; __global__ void f(float (*callback)(int)) {}', "f", [("callback", True, None, None)]),
    ("__global__ void f(float**, int a[3], my::type t, std::int32_t)", "f",
     [("", True, None, None), ("a", True, None, "i32"), ("t", False, None, None), ("", False, None, None)]),
    ("void f(int); __global__ void f(long long int q);", "f", [("q", False, "i64", None)])])
def test_unusual_signatures(source, kernel, expected):
    assert [one[1:] for one in declared(source, kernel)] == [one[1:] for one in expected]


@pytest.mark.parametrize("source,kernel", [("", "f"), ("__global__ void g(int)", "f"), ("void f(int) {}", "f"),
                                           ("__global__ void f(int a);\n#if X\n__global__ void f(float a)", "f"), ("__global__ void f(int", "f")])
def test_signatures_that_are_not_understood(source, kernel):
    assert signature(source, kernel) is None


def test_frames_there_and_back():
    segments = {"a": b"x" * 64, "b": memoryview(b"y" * 5), "c": b""}
    raw = b"".join(bytes(piece) for piece in pack({"ops": []}, segments))
    assert len(raw) % 64 == 0 and raw[:8] == b"\x89GPR\r\n\x1a\n"
    document, found = unpack(bytearray(raw))
    assert {name: bytes(view) for name, view in found.items()} == {"a": b"x" * 64, "b": b"y" * 5, "c": b""}
    assert document["segments"] == [{"id": "a", "size": 64}, {"id": "b", "size": 5}, {"id": "c", "size": 0}]


def test_frames_that_are_damaged():
    raw = b"".join(bytes(piece) for piece in pack({"ops": []}, {"a": b"x" * 64}))
    for cut in range(len(raw)):
        with pytest.raises(errors.ProtocolError):
            unpack(raw[:cut])
    for at in range(16):
        with pytest.raises(errors.ProtocolError):
            unpack(raw[:at] + bytes([raw[at] ^ 0x80]) + raw[at + 1:])


def test_scalars():
    assert repr(gpurest.i32(5)) == "gpurest.i32(5)" and gpurest.u64(2**64 - 1).json() == {"u64": str(2**64 - 1)}
    assert gpurest.i64(2**53).json() == {"i64": 2**53} and gpurest.i32(1) == Scalar("i32", 1) != gpurest.u32(1)
    for make, value in ((gpurest.i8, 128), (gpurest.u8, -1), (gpurest.i32, 1.5), (gpurest.f16, 70000.0), (gpurest.i32, "5")):
        with pytest.raises(errors.ArgumentError):
            make(value)


def test_bytes_of_the_host():
    import array
    assert bytes(byte_view(array.array("i", [1, 2]))) == struct.pack("=2i", 1, 2) and len(byte_view(b"")) == 0
    with pytest.raises(errors.StridesError):
        byte_view(memoryview(bytes(10))[::2])
    for bad in (5, "text", [1, 2], None, object()):
        with pytest.raises(errors.ArgumentError):
            byte_view(bad)
    numpy = pytest.importorskip("numpy")
    with pytest.raises(errors.StridesError, match="strides"):
        byte_view(numpy.zeros((4, 4))[:, 1])
    with pytest.raises(errors.ArgumentError):
        byte_view(numpy.array([object()]))


def test_sizes_in_words():
    assert [parse_bytes(text) for text in ("8GiB", "512 MiB", "1.5K", "7", 9, None)] == [8 << 30, 512 << 20, 1536, 7, 9, None]
    for bad in ("8 pounds", "-1", ""):
        with pytest.raises(errors.ArgumentError):
            parse_bytes(bad)


def test_a_compile_error_shows_the_line():
    problem = {"status": 422, "code": "compile_failed", "detail": "bad", "compile": {"log": "the log", "diagnostics": [
        {"file": "kernel.cu", "line": 1, "column": 1, "severity": "warning", "message": "w"},
        {"file": "kernel.cu", "line": 2, "column": 3, "severity": "error", "message": "e"}]}}
    error = errors.from_problem(problem, source="one\n\ttwo\n", options=["-DX"])
    assert isinstance(error, errors.CompileError) and (error.line, error.column, error.log) == (2, 3, "the log")
    assert str(error).splitlines()[1:] == ["    2 | \ttwo", "        \t ^"] and error.options == ("-DX",)
    assert "the log" in str(errors.from_problem(problem))


@pytest.mark.parametrize("status,code,kind", [
    (400, "invalid_json", errors.ValidationError), (401, "unauthenticated", errors.AuthError), (403, "insufficient_scope", errors.AuthError),
    (403, "quota_exceeded", errors.ResourceExhausted), (404, "buffer_not_found", errors.NotFoundError), (404, "session_not_found", errors.SessionLostError),
    (409, "spec_conflict", errors.ConflictError), (409, "session_faulted", errors.SessionLostError), (413, "body_too_large", errors.ResourceExhausted),
    (422, "argument_mismatch", errors.ArgumentError), (422, "launch_config_invalid", errors.ValidationError), (429, "rate_limited", errors.BusyError),
    (500, "device_error", errors.ServerError), (503, "no_worker", errors.BusyError), (504, "execution_timeout", errors.KernelTimeoutError),
    (507, "device_memory_exhausted", errors.OutOfMemoryError), (422, "kernel_fault", errors.LaunchFailedError), (599, "new_word", errors.ServerError)])
def test_every_problem_has_its_exception(status, code, kind):
    error = errors.from_problem({"status": status, "code": code, "detail": "what", "request_id": "r", "errors": [{"pointer": "/x"}]})
    assert type(error) is kind and (error.status, error.code, error.request_id) == (status, code, "r") and "what" in str(error)


def test_device_time_of_an_answer_where_launches_were_timed_together():
    from gpurest._transport.frame import device_us
    assert device_us({"ops": [{"index": 0, "gpu_us": 1.5}, {"index": 2, "stdout": ""}],
                      "gpu_groups": [{"first": 1, "last": 1, "gpu_us": 40.0}]}) == 41.5
    assert device_us({"ops": []}) == 0.0


def test_integers_that_numbers_do_not_hold_go_as_text():
    exact = 2**53
    assert dumps({"size": exact, "b": True, "f": 1e300, "t": "9007199254740993"}) == b'{"size":9007199254740992,"b":true,"f":1e+300,"t":"9007199254740993"}'
    assert dumps({"ops": [{"offset": exact + 1}, (-exact - 1, 5)], "size": 2**64 - 1}) == \
        b'{"ops":[{"offset":"9007199254740993"},["-9007199254740993",5]],"size":"18446744073709551615"}'
