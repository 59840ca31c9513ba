"""The rules of the source tree that a reader relies on, kept by a test: who may include whom, who owns a foreign header, how long a file
may be, and that nothing unfinished is marked as done."""
import collections
import pathlib
import re
import subprocess
import warnings

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVICE = ROOT / "service"

# Folder -> folders of service/ that it may include besides itself, base/, limits.h and config/config.h; service/README.md has the picture.
# A folder's bounds.h belongs to it alone.
MAY_INCLUDE = {
    "": {"api", "config", "health", "http", "session", "pool", "worker", "ipc", "kernels"},  # main.c, frontend.c
    "base": set(),
    "config": {"http"},
    "health": {"http"},
    "ipc": set(),
    "http": set(),
    "api": {"http", "session", "pool", "kernels"},
    "kernels": set(),
    "session": {"pool", "ipc", "kernels"},
    "pool": {"ipc"},
    "worker": {"ipc", "device", "compile"},
    "device": {"ipc"},
    "compile": {"ipc"},
}

# The same between the rooms of a folder; "" are the files beside its rooms, which may include all unless a row says otherwise. In session/
# events/ is noted by everybody, and api/ may call what session/*.h and each room's own header say.
ROOM_MAY_INCLUDE = {
    "base": {"": set(), "log": set(), "files": set(), "digests": set(), "threads": set()},
    "api": {"about": set(), "admin": set(), "events": set(), "memory": {"decode"}, "decode": set(), "batch": {"decode"},
            "snapshot": {"decode", "batch", "memory"}},
    "session": {
        "life": {"events"},
        "events": {"life"},
        "memory": {"life"},
        "code": {"memory", "life"},
        "launch": {"code", "memory", "life", "events"},
        "hibernate": {"memory", "life", "events"},
        "batch": {"launch", "code", "memory", "life", "events"},
        "snapshot": {"batch", "launch", "code", "memory", "life", "events"},
    },
    "device/cpu": {"ptx": set(), "interp": {"ptx", "runtime", "jit"}, "runtime": {"ptx", "interp", "jit", "vendor"}, "jit": {"ptx", "interp", "runtime"},
                   "vendor": set()},
    "device/cuda": {"vendor": set()},
}

# The rooms of the C clients; each may include itself and those before it. Files beside the rooms may include all.
CLIENT_ROOMS = {
    "sdk/c/src": ("base", "transport", "client", "session", "code", "batch", "calls"),
    "sdk/cli/src": ("base", "commands"),
}

# Foreign header -> files that may include it.
OWNERS = {
    "microhttpd.h": r"service/http/(engine|filter)/\w+\.[ch]",
    "cjson/cJSON.h": r"(sdk/c/src/base/json\.c|sdk/cli/src/base/cli\.h|tests/fuzz/json_fuzz\.c)",
    "dlfcn.h": r"(service/(base/files/library|base/log/crash|device/cuda/driver|device/cpu/vendor/vendor_library|compile/nvrtc)|sdk/shim/src/image)\.c",
    "gnutls/": r"service/(http/engine/tls(_crl)?\.[ch]|health/probe_tls\.c)",
    "nettle/": r"service/base/digests/digest\.c",
    "seccomp.h": r"(service/worker/(jail|compile)/\w+|tests/fault/learn_syscalls|tests/unit/worker/\w+)\.c",
    "curl/curl.h": r"sdk/c/src/transport/transport_curl\.c",
    "shaderc/": r"tests/.*abi_test\.c",
    "spirv-tools/": r"tests/.*abi_test\.c",
    "hip/": r"tests/.*abi_test\.c",
    "vulkan/": r"service/device/vulkan/loader\.h",
    "cuda.h": r"tests/.*abi_test\.c",
    "nvrtc.h": r"tests/.*abi_test\.c",
    "cublasLt.h": r"tests/.*abi_test\.c",
    "cufft.h": r"tests/.*abi_test\.c",
    "cublas_v2.h": r"tests/.*abi_test\.c",
    "cusolverDn.h": r"tests/.*abi_test\.c",
}

LINES_HINT = 600
UNITS_HINT = 25
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listed.splitlines() if (ROOT / line).is_file()]


def sources():
    return tracked("service/*.c", "service/*.h", "service/*.def")


def folder_of(path):
    parts = path.relative_to(SERVICE).parts
    return parts[0] if len(parts) > 1 else ""


def room_of(path, folder):
    """The room within the folder, "" for a file beside its rooms, None for one that is elsewhere. The path counts from the root of service/."""
    if not path.startswith(folder + "/"):
        return None
    room, _, inside = path[len(folder) + 1 :].partition("/")
    return room if inside else ""


def test_there_are_sources_in_every_folder_of_the_picture():
    present = {folder_of(path) for path in sources()}
    assert set(MAY_INCLUDE) <= present


def test_folders_include_only_what_the_picture_allows():
    wrong = []
    for path in sources():
        own = folder_of(path)
        for quote, name in INCLUDE.findall(path.read_text()):
            if quote == "<":
                continue
            target = name.split("/")[0] if "/" in name else ""
            others_bounds = name.endswith("/bounds.h") and target != own
            if not others_bounds and target in ("base", own) or name in ("limits.h", "config/config.h", "config/config.def", "frontend.h", "roles.def"):
                continue
            if others_bounds or target not in MAY_INCLUDE[own]:
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder,rooms", ROOM_MAY_INCLUDE.items())
def test_rooms_include_only_what_stands_below_them(folder, rooms):
    present, wrong = set(), []
    for path in sources():
        own = room_of(str(path.relative_to(SERVICE)), folder)
        present |= {own} - {None, ""}
        if own not in rooms:
            continue
        for _, included in INCLUDE.findall(path.read_text()):
            if room_of(included, folder) not in (None, "", own, *rooms[own]):
                wrong.append(f"{path.relative_to(ROOT)} includes {included}")
    assert not wrong, "\n".join(wrong)
    assert set(rooms) - {""} == present


def test_a_rooms_internal_header_stays_in_its_folder():
    """filter/ may include engine/internal.h, because its functions are steps of an exchange."""
    wrong = [f"{path.relative_to(ROOT)} includes {included}" for path in sources() for _, included in INCLUDE.findall(path.read_text())
             if included.endswith("internal.h") and included.split("/")[0] != folder_of(path)]
    assert not wrong, "\n".join(wrong)


def test_includes_of_our_own_are_written_from_the_root_of_service():
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources()
        for quote, name in INCLUDE.findall(path.read_text())
        if quote == '"' and not (SERVICE / name).is_file() and name not in ("kernels/kernels.def", "kernels/shaders.def")
    ]
    assert not wrong, "\n".join(wrong)


def test_the_c_sdk_is_a_client_of_the_protocol_and_of_nothing_else():
    own = ROOT / "sdk" / "c"
    wrong = [
        f"{path.relative_to(ROOT)} includes {name}"
        for path in tracked("sdk/c/src/*.c", "sdk/c/src/*.h", "sdk/c/include/*.h", "sdk/c/examples/*.c", "sdk/c/examples/*.h")
        for quote, name in INCLUDE.findall(path.read_text())
        if quote == '"' and not any((folder / name).is_file() for folder in (own / "src", own / "include", *[own / "examples"][: path.parent.name == "examples"]))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder,rooms", CLIENT_ROOMS.items())
def test_rooms_of_the_clients_include_only_what_stands_before_them(folder, rooms):
    root, wrong = ROOT / folder, []
    assert {path.name for path in root.iterdir() if path.is_dir()} == set(rooms)
    for path in tracked(f"{folder}/*.c", f"{folder}/*.h"):
        own = path.relative_to(root).parts[0]
        for quote, name in INCLUDE.findall(path.read_text()):
            if quote == '"' and not (root / name).is_file() and not name.startswith("gpurest/") and name not in ("driver.def", "runtime.def"):
                wrong.append(f"{path.relative_to(ROOT)}: {name} is not written from {folder}")
            elif quote == '"' and own in rooms and name.split("/")[0] in rooms[rooms.index(own) + 1 :]:
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert not wrong, "\n".join(wrong)


def test_the_shim_stands_on_the_c_sdk_alone():
    shim, sdk = ROOT / "sdk" / "shim" / "src", ROOT / "sdk" / "c" / "src"
    wrong = [f"{path.relative_to(ROOT)} includes {name}" for path in tracked("sdk/shim/src/*.c", "sdk/shim/src/*.h")
             for quote, name in INCLUDE.findall(path.read_text()) if quote == '"' and not (shim / name).is_file() and not (sdk / name).is_file()]
    assert not wrong and tracked("sdk/shim/src/*.c"), "\n".join(wrong)


def test_the_runtime_stands_on_the_drivers_interface_alone():
    runtime, wrong = ROOT / "sdk" / "shim" / "runtime", []
    for path in tracked("sdk/shim/runtime/*.c", "sdk/shim/runtime/*.h"):
        names = [name for quote, name in INCLUDE.findall(path.read_text()) if quote == '"' and name not in ("../src/driver.def", "../src/types.h")]
        wrong += [f"{path.relative_to(ROOT)} includes {name}" for name in names if not (runtime / name).is_file()]
    assert not wrong and tracked("sdk/shim/runtime/*.c"), "\n".join(wrong)


@pytest.mark.parametrize("header,owner", OWNERS.items())
def test_foreign_headers_have_one_owner(header, owner):
    wrong = []
    for path in tracked("service/*.c", "service/*.h", "tests/*.c", "tests/*.h", "sdk/*.c", "sdk/*.h"):
        relative = str(path.relative_to(ROOT))
        for quote, name in INCLUDE.findall(path.read_text()):
            named = name == header or (header.endswith("/") and name.startswith(header))
            in_tests = relative.startswith("tests/") and header in ("dlfcn.h", "nettle/")
            if quote == "<" and named and not in_tests and not re.fullmatch(owner, relative):
                wrong.append(relative)
    assert not wrong, wrong


def test_long_files_are_named():
    """A hint, never a failure: a file is split by purpose, not by length."""
    for path in tracked("service/*.c", "service/*.h", "service/*.def", "sdk/*.c", "sdk/*.h", "sdk/*.py", "sdk/*.rs", "tests/*.c", "tests/*.h", "tests/*.py", "tests/*.rs"):
        count = len(path.read_text().splitlines())
        if count > LINES_HINT:
            warnings.warn(f"{path.relative_to(ROOT)} holds {count} lines; has it one purpose?")


def test_folders_that_hold_many_files_are_named():
    """A hint, never a failure. A .c and its .h are one."""
    units = collections.Counter(path.parent for path in {path.with_suffix("") for path in sources() + tracked("tests/unit/*.c", "tests/unit/*.h")})
    for folder, count in units.items():
        if count > UNITS_HINT:
            warnings.warn(f"{folder.relative_to(ROOT)} holds {count} units; is it one idea?")


def test_every_c_file_says_what_it_is_for():
    silent = [str(path.relative_to(ROOT)) for path in tracked("service/*.c", "service/*.h", "sdk/*.c", "sdk/*.h") if not path.read_text().lstrip().startswith("/*")]
    assert not silent, silent


def test_every_rust_file_says_what_it_is_for():
    files = tracked("sdk/*.rs", "tests/*.rs")
    assert files and not [str(path.relative_to(ROOT)) for path in files if not path.read_text().startswith("//! ")]


def test_the_tree_has_no_links():
    """One to a place of somebody's machine is dangling everywhere else."""
    listed = subprocess.run(["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True).stdout
    assert not [line for line in listed.splitlines() if line.startswith("120000")]


def test_nothing_unfinished_is_left_in_the_sources():
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK|not implemented yet|unimplemented)\b")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked("service/*", "sdk/*", "kernels/*", "openapi/*", "docker/*")
        if path.suffix in {".c", ".h", ".def", ".py", ".rs", ".cu", ".yaml", ".txt", ".md"}
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if marks.search(line)
    ]
    assert not found, "\n".join(found)


def test_no_variable_length_arrays_no_alloca_no_unbounded_copies():
    banned = re.compile(r"\b(alloca|strcpy|strcat|sprintf|vsprintf|gets|strtok)\s*\(")
    found = [
        f"{path.relative_to(ROOT)}: {match.group(0)}" for path in sources() + tracked("sdk/*.c", "sdk/*.h") for match in banned.finditer(path.read_text())
    ]
    assert not found, "\n".join(found)


def test_every_def_file_is_expanded_somewhere():
    text = "".join(path.read_text() for path in tracked("service/*.c", "service/*.h", "sdk/*.c", "sdk/*.h", "tests/*.c"))
    unused = [path.name for path in tracked("service/*.def", "sdk/*.def") if path.name not in text]
    assert not unused, unused
