"""service/README.md names only files, folders and functions that exist; a step of a path names functions of its file."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVICE = ROOT / "service"
README = (SERVICE / "README.md").read_text()
TOKEN = re.compile(r"`([^`\n]+)`")
FUNCTION = re.compile(r"(\w+)\(\)")
# At the left edge, and no declaration: its line does not end in ";".
DEFINED = re.compile(r"^[A-Za-z_][^;=\n]*?\b(\w+)\((?:[^;{]*?)\)\s*\{?$", re.M)
# "bounds.h" is any folder's.
NO_FILES = {"bounds.h", "microhttpd.h", "seccomp.h", "dlfcn.h"}


def calls_of_messages():
    """worker_<call>() and worker_submit_<call>() are made of rows of messages.def."""
    for call in re.findall(r"^MESSAGE\(\w+,\s*(\w+)\)", (SERVICE / "ipc/messages.def").read_text(), re.M):
        yield from (f"worker_{call}", f"worker_submit_{call}")


def functions_of(path):
    text = re.sub(r"__attribute__\(\(.*?\)\)+ ", "", path.read_text())
    return set(DEFINED.findall(text)) | (set(calls_of_messages()) if path.name == "calls.c" else set())


def named_paths():
    for token in TOKEN.findall(README):
        if "<" in token or token in NO_FILES or re.search(r"[\s…]|^[-/]", token):
            continue
        if re.fullmatch(r"[\w*./-]+(\.(c|h|def|py|cu|md|yaml|txt)|/)", token) or ("/" in token and re.fullmatch(r"[\w*./-]+", token)):
            yield token


def test_every_file_and_folder_that_is_named_exists():
    names = set(named_paths())
    missing = [name for name in names if not any(list(base.glob(name.rstrip("/"))) for base in (SERVICE, ROOT))]
    assert len(names) > 100 and not missing, missing


def test_every_function_that_is_named_exists():
    defined = set().union(*(functions_of(path) for path in SERVICE.rglob("*.[ch]")))
    named = {function for token in TOKEN.findall(README) for function in FUNCTION.findall(token) if "<" not in token}
    assert len(named) > 100 and not named - defined, named - defined


def test_functions_of_a_step_are_in_its_file():
    steps = re.findall(r"`([\w/]+\.c)`: ((?:`\w+\(\)`(?:, )?)+)", README)
    wrong = [f"{path}: {name}()" for path, names in steps for name in FUNCTION.findall(names) if name not in functions_of(SERVICE / path)]
    assert len(steps) > 60 and not wrong, wrong


def test_it_is_short():
    lines = README.splitlines()
    assert len(lines) <= 300 and max(map(len, lines)) <= 150
