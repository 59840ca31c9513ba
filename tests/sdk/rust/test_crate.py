"""The crate: its tests and programs against the real service, its documentation and style, and how others build with it."""
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import CRATE, ROOT, TARGET

LOCKED = ("--locked", "--offline")
DEBIAN_12 = "1.63"  # whose rustfmt and clippy the style is of
VALGRIND_FOUND = 99
RUN_DEADLINE_S = 600
PASSED = re.compile(r"^test result: ok\. (\d+) passed; 0 failed; 0 ignored", re.M)


def succeeded(done):
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    return done.stdout


def test_its_tests_and_the_programs_of_its_pages_pass(cargo, executable, url, other_url):
    out = succeeded(cargo("test", *LOCKED, GPUREST_URL=url, OTHER_NODE=other_url, GPUREST_CLI=str(executable.parents[1] / "sdk/cli/gpurest")))
    written = sum(path.read_text().count("#[test]") for path in (ROOT / "tests/sdk/rust").glob("*.rs"))
    passed = [int(count) for count in PASSED.findall(out)]
    assert sum(passed[:-1]) == written and passed[-1] >= 10, out  # the last are the pages


@pytest.fixture(scope="module")
def programs(cargo):
    """Executables of tests and examples, by name."""
    made = succeeded(cargo("test", "--no-run", "--message-format=json", *LOCKED)).splitlines()
    artifacts = [one for one in map(json.loads, made) if one.get("executable")]
    return {one["target"]["name"]: one["executable"] for one in artifacts}


def run_example(programs, library, url, *arguments):
    return subprocess.run([programs["vector_add"], *arguments], env={**os.environ, "LD_LIBRARY_PATH": str(library), "GPUREST_URL": url}, capture_output=True,
                          text=True, timeout=RUN_DEADLINE_S)


def test_the_example_is_right(programs, library, url):
    assert re.fullmatch(r"100000 sums, 0 wrong; the kernel took [0-9.]+ us\n", succeeded(run_example(programs, library, url)))
    assert succeeded(run_example(programs, library, url, "1")).startswith("1 sums, 0 wrong")
    done = run_example(programs, library, url, "none")
    assert done.returncode == 1 and done.stderr == "usage: vector_add [COUNT], from 1 to 1000000\n"
    done = run_example(programs, library, "http://127.0.0.1:1")
    assert done.returncode == 1 and "127.0.0.1:1" in done.stderr and "GPUREST_URL" in done.stderr


@pytest.mark.parametrize("name", ["batches", "buffers", "clients", "faults", "kernels", "threads", "vector_add"])
def test_valgrind_has_nothing_to_say(programs, library, url, name):
    """No invalid access and no leak, but that of a batch which is forgotten on purpose. Without what takes long there."""
    if not shutil.which("valgrind") or subprocess.run(["valgrind", "--quiet", "true"], stdin=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("valgrind is not installed, or cannot run here (Debian: valgrind and libc6-dbg)")
    arguments = [] if name == "vector_add" else ["--skip", "a_forgotten_batch_does_nothing", "--skip", "a_long_buffer"]
    done = subprocess.run(["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite,indirect",
                           f"--error-exitcode={VALGRIND_FOUND}", programs[name], *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=RUN_DEADLINE_S, env={**os.environ, "LD_LIBRARY_PATH": str(library), "GPUREST_URL": url})
    succeeded(done)


def test_every_public_item_is_documented(cargo):
    succeeded(cargo("doc", "--no-deps", *LOCKED))
    assert "Buffer" in (TARGET / "doc/gpurest/index.html").read_text()


def of_debian_12(tool):
    done = subprocess.run(["cargo", tool, "--version"], capture_output=True, text=True, timeout=60) if shutil.which("cargo") else None
    versions = subprocess.run(["rustc", "--version"], capture_output=True, text=True, timeout=60).stdout if done and done.returncode == 0 else ""
    return f"rustc {DEBIAN_12}." in versions


@pytest.mark.parametrize("tool,arguments", [("fmt", ["--check"]), ("clippy", ["--all-targets", *LOCKED, "--", "-D", "warnings"])])
def test_its_style_is_that_of_the_tools(cargo, tool, arguments):
    """Each version of the tools wants something else."""
    if not of_debian_12(tool):
        pytest.skip(f"cargo {tool} of Rust {DEBIAN_12} is not installed (Debian 12: rustfmt, rust-clippy)")
    succeeded(cargo(tool, *arguments))


PROGRAM = """fn main() {
    let why = gpurest::Client::connect("http://127.0.0.1:1").unwrap_err();
    println!("{} {:?}", gpurest::library_version(), why.kind());
}
"""


def test_others_build_with_an_installed_library(cargo, executable, tmp_path):
    """By pkg-config; `cargo run` finds the library again."""
    if not shutil.which("pkg-config") or not shutil.which("cmake"):
        pytest.skip("pkg-config and cmake are not installed")
    subprocess.run(["cmake", "--install", executable.parents[1], "--prefix", tmp_path / "prefix", "--component", "sdk"], check=True, capture_output=True,
                   timeout=RUN_DEADLINE_S)
    (tmp_path / "user/src").mkdir(parents=True)
    (tmp_path / "user/src/main.rs").write_text(PROGRAM)
    (tmp_path / "user/Cargo.toml").write_text(f'[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\ngpurest = {{ path = "{CRATE}" }}\n')
    packages = str(next((tmp_path / "prefix").rglob("gpurest.pc")).parent)
    done = cargo("run", "--offline", folder=tmp_path / "user", GPUREST_LIB_DIR=None, LD_LIBRARY_PATH=None, PKG_CONFIG_PATH=packages,
                 CARGO_TARGET_DIR=str(tmp_path / "target"))
    assert succeeded(done) == "1.0.0 Connect\n"
    linked = next((tmp_path / "target").rglob("libgpurest.so.1")).resolve()
    assert tmp_path / "prefix" in linked.parents


def test_a_library_that_is_not_there_is_named(cargo, tmp_path):
    done = cargo("build", *LOCKED, GPUREST_LIB_DIR=str(tmp_path), CARGO_TARGET_DIR=str(tmp_path / "target"))
    assert done.returncode != 0 and f"gpurest: GPUREST_LIB_DIR is {tmp_path}, where libgpurest.so or libgpurest.so.1 is not" in done.stderr
