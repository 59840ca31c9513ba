"""The shaders of the built-in kernels, compiled in this process: a compile worker for each, as the service has them, costs ten times as much."""
import ctypes
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"
SETS = {"SHADED_INTEGERS": ("i32", "u32", "i64", "u64"), "SHADED_LARGE_REALS": ("f32", "f64"), "SHADED_REALS": ("f16", "f32", "f64")}
SETS["SHADED"] = SETS["SHADED_REALS"] + SETS["SHADED_INTEGERS"]
COMPUTE, VULKAN_1_2, PERFORMANCE = 2, 1 << 22 | 2 << 12, 2


def dtypes_of(words):
    return tuple(dtype for word in words.split(" | ") for dtype in SETS.get(word, (word[4:-1],)))


def rows():
    """The dtypes of each kernel that has a shader, from kernels/shaders.def."""
    table = (KERNELS / "shaders.def").read_text()
    found = {name: dtypes_of(dtypes) for name, dtypes in re.findall(r"^(?:EACH|SHADER)\((\w+), ((?:BIT\(\w+\)|[\w |])+)[,)]", table, re.M)}
    for name, dtypes in re.findall(r"^SHADED_REDUCTION\((\w+), ([\w()| ]+)\)$", table, re.M):
        found |= {f"reduce_{name}": dtypes_of(dtypes), f"reduce_{name}_axis": dtypes_of(dtypes)}
    return found


def whole(name):
    """Its text, with headers in place of their names."""
    return re.sub(r'#include "([\w.]+)"', lambda found: whole(found[1]), (KERNELS / name).read_text())


class Compiler:
    """shaderc as the service has it: service/compile/shader.def is the order of its functions."""

    def __init__(self, library):
        declared = re.findall(r"SHADERC_FUNCTION\((\w+), \w+, ([\w *]+), \(([^)]*)\)\)", (ROOT / "service/compile/shader.def").read_text())
        table = (ctypes.c_void_p * len(declared)).in_dll(ctypes.CDLL(str(library)), "gpurest_shaderc")
        self.functions = {}
        for (member, result, parameters), address in zip(declared, table):
            types = [self.kind(one) for one in parameters.split(", ") if one != "void"]
            self.functions[member] = ctypes.CFUNCTYPE(None if result == "void" else self.kind(result), *types)(address)
        self.compiler = self.call("compiler_create")

    @staticmethod
    def kind(declared):
        pointer = "*" in declared or declared.startswith("shader_")
        return ctypes.c_void_p if pointer else ctypes.c_size_t if declared.startswith("size_t") else ctypes.c_int

    def call(self, member, *values):
        return self.functions[member](*values)

    def compile(self, family, *macros):
        """SPIR-V, or the errors as text."""
        source = whole(f"{family}.comp").encode()
        options = self.call("options_create")
        self.call("set_target", options, 0, VULKAN_1_2)
        self.call("set_optimization", options, PERFORMANCE)
        for macro in macros:
            self.call("add_macro", options, macro.encode(), len(macro), b"1", 1)
        result = self.call("compile", self.compiler, source, len(source), COMPUTE, b"kernel.comp", b"main", options)
        failed = self.call("result_status", result)
        made = ctypes.string_at(self.call("result_messages", result)).decode() if failed else \
            ctypes.string_at(self.call("result_code", result), self.call("result_bytes", result))
        self.call("result_release", result)
        self.call("options_release", options)
        return made
