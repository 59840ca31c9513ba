"""gpurest exec: the environment, a service of its own, exit codes and signals, and what a program imports."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import named_by

ENVIRONMENT = "import os; print([os.environ.get(n) for n in ('LD_LIBRARY_PATH', 'NUMBA_CUDA_DRIVER', 'GPUREST_URL', 'GPUREST_SESSION', 'GPUREST_DEVICE', 'GPUREST_TRACE')])"


@pytest.fixture(scope="session")
def tool():
    return named_by("GPUREST_CLI", "gpurest to test")


@pytest.fixture
def programs(build):
    return build / "tests" / "sdk" / "shim" / "programs"


@pytest.fixture
def exec_(tool, tmp_path):
    """exec_(*arguments, **environment): the finished process, which leaves nothing in its folder of temporary files."""

    def run(*arguments, **environment):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "GPUREST_NVRTC", "GPUREST_CUDA_INCLUDE")}
        folder = tmp_path / "t"
        folder.mkdir(exist_ok=True)
        done = subprocess.run([tool, "exec", *map(str, arguments)], capture_output=True, text=True, timeout=400, cwd=tmp_path,
                              env={**kept, "HOME": str(tmp_path), "TMPDIR": str(folder), **environment})
        assert "Sanitizer" not in done.stderr and not list(folder.iterdir()), (done.stderr, list(folder.iterdir()))
        return done

    return run


def test_environment(exec_, library):
    done = exec_("--session", "s", "--url", "http://x:1", "--device", "cpu:0", "--trace", "--", sys.executable, "-c", ENVIRONMENT, LD_LIBRARY_PATH="/before")
    folder = library.parent.resolve()
    assert done.returncode == 0, done.stderr
    assert eval(done.stdout) == [f"{folder}:/before", f"{folder}/libcuda.so.1", "http://x:1", "s", "cpu:0", "1"]


def test_what_other_commands_use_is_passed_on(exec_, tmp_path):
    """The token that login has stored, and the session of connect; --token-file comes before a token in the environment."""
    folder = tmp_path / ".config" / "gpurest"
    folder.mkdir(parents=True)
    (folder / "token").write_text("secret\n")
    (folder / "session").write_text("mine\n")
    code = "import os; print([os.environ.get(n) for n in ('GPUREST_TOKEN', 'GPUREST_TOKEN_FILE', 'GPUREST_SESSION')])"
    assert eval(exec_("--", sys.executable, "-c", code).stdout) == [None, str(folder / "token"), "mine"]
    assert eval(exec_("--token-file", "t", "--", sys.executable, "-c", code, GPUREST_TOKEN="x", GPUREST_SESSION="s").stdout) == [None, "t", "s"]
    assert eval(exec_("--", sys.executable, "-c", code, GPUREST_TOKEN="x").stdout) == ["x", None, "mine"]


def test_program_on_a_service(exec_, programs, url):
    done = exec_("--", programs / "vector_add", GPUREST_URL=url)
    assert (done.returncode, done.stdout) == (0, "Result = PASS\n"), done.stderr


def test_program_on_a_service_of_its_own(exec_, programs):
    done = exec_("--local", "--device", "cpu:0", "--", programs / "vector_add")
    assert (done.returncode, done.stdout) == (0, "Result = PASS\n"), done.stderr


def test_program_of_the_runtime(exec_, programs):
    done = exec_("--local", "--device", "cpu:0", "--", programs / "runtime")
    assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stderr


@pytest.mark.parametrize("local", [[], ["--local", "--device", "cpu:0"]])
@pytest.mark.parametrize("command,code", [("exit 7", 7), ("exit 0", 0), ("kill -TERM $$", -signal.SIGTERM), ("kill -KILL $$", -signal.SIGKILL)])
def test_exit_codes_and_signals_are_the_programs(exec_, local, command, code):
    assert exec_(*local, "--", "sh", "-c", command).returncode == code


@pytest.mark.parametrize("local", [[], ["--local", "--device", "cpu:0"]])
def test_programs_that_cannot_run(exec_, tmp_path, local):
    (tmp_path / "text").write_text("no program")
    assert exec_(*local, "--", tmp_path / "nothing").returncode == 127
    assert exec_(*local, "--", tmp_path / "text").returncode == 126


def test_without_its_libraries_it_says_where_it_looked(tool, tmp_path):
    alone = shutil.copy2(tool, tmp_path)
    done = subprocess.run([alone, "exec", "--", "true"], capture_output=True, text=True, timeout=400)
    assert done.returncode == 1 and f"../lib/gpurest of {tmp_path}: " in done.stderr and "../shim/lib, " in done.stderr


def test_a_signal_goes_to_the_program(tool, tmp_path):
    """Its end is the end of the service, too, and the last thing the program says is heard."""
    program = subprocess.Popen([tool, "exec", "--local", "--device", "cpu:0", "--", "sh", "-c", "trap 'echo asked; exit 5' TERM; echo $GPUREST_URL; while :; do sleep 0.1; done"],
                               stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    socket = pathlib.Path(program.stdout.readline().strip().removeprefix("unix://"))
    assert socket.exists()
    program.send_signal(signal.SIGTERM)
    assert program.communicate(timeout=120)[0] == "asked\n" and program.returncode == 5
    assert not socket.parent.exists()


def test_the_service_ends_with_a_killed_tool(tool, tmp_path):
    program = subprocess.Popen([tool, "exec", "--local", "--device", "cpu:0", "--", "sh", "-c", "echo $GPUREST_URL; exec sleep 600"], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "TMPDIR": str(tmp_path)})
    socket = program.stdout.readline().strip().removeprefix("unix://")
    listed = subprocess.run(["pgrep", "-f", socket], capture_output=True, text=True).stdout.split()
    assert listed
    sleeper = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
    program.kill()
    program.wait()
    deadline = time.monotonic() + 120
    while subprocess.run(["pgrep", "-f", f"unix:{socket}"], capture_output=True).returncode == 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    for one in sleeper:
        if pathlib.Path(f"/proc/{one}").exists():
            os.kill(int(one), signal.SIGKILL)


@pytest.mark.parametrize("arguments,said", [(["--local", "true"], "unexpected argument"), (["--"], "a program"), (["--device"], "needs a value"), (["--local", "--url", "http://x", "--", "true"], "leave out"),
                                            (["--local", "--device", "nothing:0", "--", "true"], "does not start"), (["--check"], "needs a value"), (["--check", "/nothing"], "/nothing")])
def test_wrong_use(exec_, arguments, said):
    done = exec_(*arguments)
    assert done.returncode in (1, 2, 3) and said.split()[0] in done.stderr, done.stderr


def test_check(exec_, programs, tool, tmp_path):
    done = exec_("--check", programs / "vector_add")
    assert done.returncode == 0 and "16 functions of the CUDA driver are imported, 0 of them" in done.stdout
    done = exec_("--check", programs / "runtime")
    assert done.returncode == 9 and "cudaMallocManaged returns cudaErrorNotSupported" in done.stdout and "of the CUDA runtime are imported, 2 of them" in done.stdout, done.stdout
    assert exec_("--check", tool).returncode == 0
    (tmp_path / "text").write_text("x" * 100)
    assert "no program" in exec_("--check", tmp_path / "text").stderr
    whole = (programs / "vector_add").read_bytes()
    for cut in (63, 64, 100, 1000, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:cut])
        assert exec_("--check", tmp_path / "cut").returncode in (0, 1)
