"""What people see of the tool: what kernels print, examples, completion, pipes that are closed early."""
import os
import pathlib
import re
import subprocess

import pytest

from test_cli import NOT_FOUND, OK, SAXPY, floats, npy

ROOT = pathlib.Path(__file__).resolve().parents[3]
PRINTER = 'extern "C" __global__ void hello(int *x) { *x = 7; printf("hello from %d\\n", threadIdx.x); }'
RUN_DEADLINE_S = 120


@pytest.fixture
def printer(gpurest, tmp_path):
    (tmp_path / "hello.cu").write_text(PRINTER)
    return lambda *more, out="x.bin:4": gpurest("run", "hello.cu", "hello", "--grid", "1", "--block", "2", "--out", out, *more)


# ---- printf, compile time, missing kernels ----

def test_what_a_kernel_prints_goes_to_standard_output(printer):
    done = printer()
    assert done.returncode == OK and done.stdout == b"hello from 0\nhello from 1\n", done
    assert b"(kernel " in done.stderr and b"hello" not in done.stderr


def test_unless_it_is_turned_off(printer):
    done = printer("--no-printf")
    assert done.returncode == OK and done.stdout == b"" and b"hello" not in done.stderr


def test_an_array_on_standard_output_stays_whole(printer):
    done = printer(out="-:i32[1]")
    assert done.returncode == OK and done.stdout == npy("<i4", "(1,)", (7).to_bytes(4, "little")), done
    assert b"hello from 0\nhello from 1\n" in done.stderr


def test_a_missing_kernel_says_which_there_are(gpurest, tmp_path):
    (tmp_path / "two.cu").write_text('extern "C" __global__ void one() {}\n__global__ void two() {}')
    done = gpurest("run", "two.cu", "three", "--grid", "1", "--block", "1")
    assert done.returncode == NOT_FOUND and re.search(rb"no kernel with this name; it has (one, two|two, one)", done.stderr), done.stderr


def test_the_compile_time_of_a_built_in_kernel_is_told(gpurest, tmp_path):
    (tmp_path / "x.npy").write_bytes(npy("<f4", "(4,)", floats([1, 2, 3, 4])))
    done = gpurest("run", "--builtin", "reduce_max", "--dtype", "f32", "--in", "x.npy", "--out", "m.npy:f32[1]", "--arg", "u64:4")
    told = re.search(rb"compile ([\d.]+) ms \(built-in kernels are compiled at their first use, then cached\)", done.stderr)
    assert done.returncode == OK and told and float(told[1]) > 0, done.stderr


# ---- help ----

def test_help_of_run_lists_types_and_has_examples(bare):
    text = bare("help", "run").stdout.decode()
    for name in ("f16", "bf16", "f32", "f64", "int8", "u64", "bool"):
        assert re.search(rf"\b{name}\b", text), name
    assert text.count("  gpurest run ") >= 3
    assert "gpurest run saxpy.cu" in bare("help", "--man").stdout.decode().replace("\\", "")


def examples_of_run():
    rows = (ROOT / "sdk/cli/src/commands/examples.def").read_text().splitlines()
    return [re.match(r'EXAMPLE\("run", +"([^"]+)"', row)[1] for row in rows if row.startswith('EXAMPLE("run"') and "vulkan" not in row]


@pytest.mark.parametrize("line", examples_of_run())
def test_examples_of_run_work(gpurest, tmp_path, line):
    (tmp_path / "saxpy.cu").write_text(SAXPY.replace("const float *y, float *z, int n", "float *y, int n").replace("z[i] =", "y[i] ="))
    for name in ("x.npy", "y.npy"):
        (tmp_path / name).write_bytes(npy("<f4", "(1024,)", floats([1] * 1024)))
    done = gpurest("run", *line.split())
    assert done.returncode == OK, done.stderr


# ---- pipes ----

@pytest.mark.parametrize("arguments", [["help"], ["help", "--man"], ["completion", "bash"], ["builtins"], ["builtins", "--json"], ["metrics"], ["info"], ["schema", "sessions"]])
def test_a_pipe_that_is_closed_early_is_no_error(tool, service, arguments):
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([tool, *arguments], stdout=write, stderr=subprocess.PIPE, timeout=RUN_DEADLINE_S, check=False,
                              env={**os.environ, "GPUREST_URL": f"http://127.0.0.1:{service.port}"})
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (OK, b"")


@pytest.mark.parametrize("arguments", [["stat", "-i", "1", "-c", "100000"], ["monitor", "-i", "10"]])
def test_what_never_ends_ends_with_its_reader(tool, service, arguments):
    process = subprocess.Popen([tool, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "GPUREST_URL": f"http://127.0.0.1:{service.port}"})
    assert process.stdout.readline()
    process.stdout.close()
    assert (process.wait(RUN_DEADLINE_S), process.stderr.read()) == (OK, b"")


def test_a_full_disk_is_one(tool):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([tool, "help"], stdout=full, stderr=subprocess.PIPE, timeout=RUN_DEADLINE_S, check=False)
    assert done.returncode == 1 and b"standard output cannot be written" in done.stderr


# ---- completion ----

@pytest.fixture(scope="module")
def offered(tool, tmp_path_factory):
    """offered("gpurest", "run", "--in"): what bash offers for the last word."""
    script = tmp_path_factory.mktemp("completion") / "gpurest.bash"
    script.write_bytes(subprocess.run([tool, "completion", "bash"], capture_output=True, check=True).stdout)

    def ask(*words):
        line = f"source {script}; COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _gpurest; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        return set(subprocess.run(["bash", "-c", line], capture_output=True, check=True, text=True).stdout.split())

    return ask


def test_bash_offers_commands_their_options_and_verbs(offered):
    assert offered("gpurest", "st") == {"status", "stat"}
    assert offered("gpurest", "run", "--b") == {"--block", "--builtin"}
    assert offered("gpurest", "run", "--in") == {"--in", "--inout"}
    assert offered("gpurest", "--url", "http://h:1", "connect", "n", "--me") == {"--memory-limit", "--memory-fraction"}
    assert {"ls", "get", "rm"} == offered("gpurest", "sessions", "")
    assert "--hard" in offered("gpurest", "device", "reset", "--") and "--hard" not in offered("gpurest", "sessions", "--")
    assert offered("gpurest", "dc", "--f") == {"--force", "--fields"}, "an alias"
    assert offered("gpurest", "sessions", "--output", "js") == offered("gpurest", "-o", "js") == {"json", "jsonl"}
    assert "--output" in offered("gpurest", "sessions", "--o") and "-o" in offered("gpurest", "sessions", "-")
    assert offered("gpurest", "help", "dia") == {"diag"}
    assert offered("gpurest", "run", "saxpy") == set(), "files are the shell's"


def test_no_shell_is_offered_punctuation(bare):
    for shell in ("bash", "zsh", "fish"):
        text = re.sub(r"-d '[^']*'", "", bare("completion", shell).stdout.decode())  # fish's are with their meaning
        assert not re.search(r"--?[a-z-]+[,\]\[}]", text.replace("[[", "").replace("]]", "")), shell
        assert "memory-fraction" in text and "idle-timeout" in text and "no-header" in text
