"""The rooms of the Python SDK: which may import which, and that no two modules import each other, even within functions."""
import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "sdk/python/gpurest"

# Room -> rooms that it may import; "" are the modules beside __init__.py. Everybody may import `errors`; other modules outside rooms are
# above all rooms.
MAY_IMPORT = {
    "_values": set(),
    "_transport": set(),
    "_shown": {"_transport"},
    "_session": {"_shown", "_transport", "_values"},
    "arrays/_engine": {"_session", "_values"},
    "arrays": {"arrays/_engine", "_session", "_values"},
    "arrays/matrices": {"arrays", "arrays/_engine", "_values"},
    "arrays/routines": {"arrays", "arrays/_engine", "arrays/matrices", "_session", "_values"},
    "arrays/random": {"arrays", "arrays/_engine", "arrays/matrices", "arrays/routines", "_values"},
    "arrays/kernels": {"arrays", "arrays/_engine", "_session", "_values"},
    "aio": {"arrays", "_session", "_transport", "_values"},
    "cuda": {"arrays", "arrays/_engine", "_session", "_shown", "_transport"},
    "testing/_fake": {"_transport", "_values"},
    "testing": {"testing/_fake", "_session", "_transport"},
    "": {"arrays", "arrays/kernels", "arrays/matrices", "arrays/random", "arrays/routines", "aio", "cuda", "_session", "_shown", "_transport", "_values"},
    "cupy": {"", "arrays", "arrays/kernels", "arrays/random", "arrays/routines", "cuda", "cupy/cuda", "cupy/lib", "_session"},
    "cupy/cuda": {"arrays", "cuda", "cupy", "_session"},
    "cupy/lib": {"arrays", "arrays/_engine"},
    "dask": {"arrays", "arrays/_engine", "arrays/random", "arrays/routines", "_session", "_values"},
    "cupyx": {"", "arrays", "cuda", "cupy", "cupy/cuda", "cupyx/scipy"},
    "cupyx/scipy": {"arrays", "arrays/routines", "cupy"},
}
# Imports within functions, each with its reason; none may exist only to break a circle.
LATE = {("gpurest", "gpurest.aio"): "asyncio is loaded by those who use it", ("gpurest", "gpurest.notebook"): "IPython asks for it"}
MODULES_MAX = 25  # per room, besides __init__.py


def name_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module):
    return MODULES[module].parent.relative_to(PACKAGE).as_posix().replace(".", "", 1) if module != "gpurest.errors" else "errors"


def is_for_types(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports_of(module):
    """(module of the package, "types", "late" or "") for each import: for type checkers, within a function, else at the top."""
    path = MODULES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]

    def targets(node):
        if isinstance(node, ast.Import):
            return [one.name for one in node.names]
        base = ".".join([*package[:len(package) - node.level + 1], *(node.module or "").split(".")] if node.level else [node.module]).rstrip(".")
        return [f"{base}.{one.name}" if f"{base}.{one.name}" in MODULES else base for one in node.names]

    def walk(node, how):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.Import, ast.ImportFrom)):
                yield from ((target, how) for target in targets(child) if target in MODULES)
            elif is_for_types(child):
                yield from walk(child, "types")
            else:
                yield from walk(child, "late" if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) else how)

    return set(walk(ast.parse(path.read_text()), ""))


IMPORTS = {module: imports_of(module) for module in MODULES}


def test_every_room_is_in_the_picture():
    assert {room_of(module) for module in MODULES} - {"errors"} == set(MAY_IMPORT)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_rooms_import_only_what_stands_below_them(room):
    """Includes imports for type checkers."""
    allowed = MAY_IMPORT[room] | {room, "errors"}
    wrong = {f"{module} imports {target}" for module in MODULES if room_of(module) == room for target, _ in IMPORTS[module] if room_of(target) not in allowed}
    assert not wrong


def test_no_arrow_of_the_picture_is_unused():
    used = {(room_of(module), room_of(target)) for module in MODULES for target, _ in IMPORTS[module]}
    assert not [(room, other) for room, others in MAY_IMPORT.items() for other in others if (room, other) not in used]


def test_errors_import_nothing_of_the_package():
    assert not IMPORTS["gpurest.errors"]


def test_no_modules_import_each_other():
    """Includes imports within functions; excludes those for type checkers, since the types of a buffer and its session name each other."""
    waiting = {module: {target for target, how in IMPORTS[module] if how != "types"} - {module} for module in MODULES}
    while ready := [module for module, needs in waiting.items() if not needs & set(waiting)]:
        for module in ready:
            del waiting[module]
    assert not waiting, "these import each other, or what does: " + ", ".join(waiting)


def test_imports_within_functions_have_a_reason():
    assert {(module, target) for module in MODULES for target, how in IMPORTS[module] if how == "late"} == set(LATE)


def test_a_room_is_no_warehouse():
    rooms = [room_of(module) for module, path in MODULES.items() if path.stem != "__init__"]
    assert not {room: rooms.count(room) for room in rooms if rooms.count(room) > MODULES_MAX}


def test_a_module_in_a_room_needs_no_underscore():
    assert not [name for name, path in MODULES.items() if path.stem.startswith("_") and path.stem != "__init__"]


def test_functions_of_generated_shaders_are_those_of_the_built_in_ones():
    copies = sorted((PACKAGE / "arrays/_engine/shaders").iterdir())
    assert copies
    for copy in copies:
        assert copy.read_text() == (ROOT / "kernels" / copy.name).read_text(), f"copy kernels/{copy.name} to {copy.parent.relative_to(ROOT)}"
