"""The functions and constants of sdk/rust/src/ffi.rs are those of the C headers, by their text; layout.rs compares structs and values by
building both."""
import re

import pytest

from conftest import CRATE, ROOT

HEADERS = sorted((ROOT / "sdk/c/include/gpurest").glob("*.h"))
FFI = (CRATE / "src/ffi.rs").read_text()
C_NAMES = {"c_char": "char", "c_int": "int", "c_uint": "unsigned", "c_float": "float", "c_double": "double", "c_void": "void", "usize": "size_t",
           "u32": "uint32_t", "u64": "uint64_t", "i64": "int64_t"}


def c_type(text):
    """As "char const * const *": what stands before a star is what it points to."""
    words = re.findall(r"\w+|\*", text)
    base = words[:words.index("*")] if "*" in words else words
    qualified = [word for word in base if word != "const"] + ["const"] * ("const" in base)
    return " ".join(qualified + words[len(base):])


def rust_type(text):
    pointer = re.fullmatch(r"\*(const|mut) (.*)", text)
    if pointer:
        return rust_type(pointer[2]) + (" const *" if pointer[1] == "const" else " *")
    return C_NAMES.get(text, text)


def c_functions():
    """name -> (type, [(name, type) of each parameter])"""
    found = {}
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for kind, name, parameters in re.findall(r"^GPUREST_API\s+([^;()]*?)\b(gpurest_\w+)\(([^;]*?)\);", text, re.M):
            listed = [re.fullmatch(r"\s*(.*?)(\w+)\s*", one, re.S) for one in parameters.split(",") if one.strip() != "void"]
            found[name] = (c_type(kind), [(one[2], c_type(one[1])) for one in listed])
    return found


def rust_functions(text):
    found = {}
    for name, parameters, kind in re.findall(r"pub fn (gpurest_\w+)\(([^)]*)\)(?: -> ([^;]+))?;", text):
        listed = [one.strip().split(": ") for one in parameters.split(",") if one.strip()]
        found[name] = (rust_type(kind) if kind else "void", [(one[0], rust_type(one[1])) for one in listed])
    return found


def differing(text):
    of_c = c_functions()
    return {name: (declared, of_c.get(name)) for name, declared in rust_functions(text).items() if declared != of_c.get(name)}


def test_every_function_is_declared_as_in_c():
    assert len(c_functions()) > 80 and len(rust_functions(FFI)) > 40
    assert len(rust_functions(FFI)) == FFI.count("pub fn ") and not differing(FFI)


@pytest.mark.parametrize("right,wrong", [("offset: usize, src", "offset: u32, src"), ("src: *const c_void", "src: *mut c_void"),
                                         ("pub fn gpurest_free(", "pub fn gpurest_let_go("), ("(memory: *mut c_void)", "(memory: *mut c_void) -> c_int"),
                                         ("out: *mut *const gpurest_kernel", "out: *mut gpurest_kernel")])
def test_a_wrong_declaration_is_noticed(right, wrong):
    flat = re.sub(r"\s+", " ", FFI)
    assert right in flat and not differing(flat) and differing(flat.replace(right, wrong))


def test_every_status_and_kind_of_argument_is_there():
    text = "".join(header.read_text() for header in HEADERS)
    listed = {name for body in re.findall(r"^typedef enum (?:gpurest_status|gpurest_arg_kind) \{(.*?)^\}", text, re.M | re.S)
              for name in re.findall(r"\b(GPUREST_\w+)\b(?= =|,|\s)", re.sub(r"/\*.*?\*/", "", body))}
    assert len(listed) > 30 and listed - {"GPUREST_ARG_NONE"} == set(re.findall(r"pub const (GPUREST_\w+)", FFI))
    kinds = set(re.findall(r"ffi::(GPUREST_E_\w+) => Self", (CRATE / "src/error.rs").read_text()))
    assert kinds == {name for name in listed if name.startswith("GPUREST_E_")}


def test_foreign_functions_are_declared_in_one_file():
    assert [path.name for path in sorted((CRATE / "src").glob("*.rs")) if re.search(r'^extern "C"', path.read_text(), re.M)] == ["ffi.rs"]
