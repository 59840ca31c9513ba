"""The main task of `make run`, on the executable under test: a newcomer's first run must end with every answer right."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DAEMON = os.environ.get("GPURESTD")


def run(tmp_path, **environment):
    if not DAEMON:
        pytest.skip("GPURESTD does not name a gpurestd to test")
    env = dict(os.environ, ONCE="1", PORT="0", GPURESTD=DAEMON, XDG_CACHE_HOME=str(tmp_path), **environment)
    return subprocess.run([ROOT / "scripts/run.sh"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)


def test_the_main_job_runs_and_every_answer_is_right(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "vadd: 1,000,000 sums, all bit for bit" in done.stdout
    assert "all 256 counts as the host's" in done.stdout
    assert "every answer was right" in done.stdout


def test_the_user_may_name_a_file_of_his_own(tmp_path):
    mine = tmp_path / "my file.bin"
    mine.write_bytes(bytes(range(256)) * 3 + b"\0")
    done = run(tmp_path, FILE=str(mine))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"769 bytes of {mine} counted" in done.stdout


def test_a_file_that_is_not_there_is_one_clear_line(tmp_path):
    done = run(tmp_path, FILE=str(tmp_path / "missing"))
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == f"gpurest: FILE={tmp_path}/missing cannot be read"


def test_the_hosts_check_can_fail(tmp_path):
    """A wrong sum and a wrong count must be detected, or the task above proves nothing."""
    check = ["python3", str(ROOT / "scripts/job/check.py")]
    subprocess.run([*check, "make", str(tmp_path), "64"], check=True)
    (tmp_path / "c.f32").write_bytes(bytes(256))
    done = subprocess.run([*check, "vadd", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode != 0 and "64 of 64 sums are wrong" in done.stderr
    (tmp_path / "counts.u32").write_bytes(bytes(1024))
    done = subprocess.run([*check, "histogram", str(tmp_path), str(tmp_path / "c.f32")], capture_output=True, text=True)
    assert done.returncode != 0 and "wrong counts for byte values [0]" in done.stderr


FAKE_DRIVER = pathlib.Path(DAEMON or "/none/none/none").resolve().parents[1] / "tests" / "support" / "libcuda.so.1"


def gpu_test(tmp_path, **environment):
    if not FAKE_DRIVER.exists():
        pytest.skip("the driver library of the tests is not built beside GPURESTD")
    env = dict(os.environ, BUILD=str(FAKE_DRIVER.parents[2]), OUT=str(tmp_path / "report.txt"), **environment)
    return subprocess.run([ROOT / "scripts/gpu-test.sh"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)


def test_the_gpu_tests_write_a_report(tmp_path):
    """Runs against a fake driver: the measurements mean nothing, but must be printed."""
    done = gpu_test(tmp_path, LIBCUDA=str(FAKE_DRIVER), STEPS="local_launch latency")
    assert done.returncode == 0, done.stdout + done.stderr
    report = (tmp_path / "report.txt").read_text()
    assert report.endswith("passed: local_launch latency\nfailed: none\n")
    assert "local_launch_sync: p50_us=" in report and "http_launch: p50_us=" in report
    assert "5200 of 5200" in (tmp_path / "latency.log").read_text()


def test_a_failing_gpu_test_is_named(tmp_path):
    done = gpu_test(tmp_path, LIBCUDA="/dev/null", STEPS="local_launch")
    assert done.returncode == 1 and "passed: none\nfailed: local_launch\n" in done.stdout


def test_a_gpu_test_that_is_none(tmp_path):
    done = gpu_test(tmp_path, LIBCUDA=str(FAKE_DRIVER), STEPS="contract nonsense")
    assert done.returncode == 1 and done.stderr == "gpurest: there is no step nonsense; STEPS=list names them\n"


@pytest.mark.skipif(any(pathlib.Path(folder, "libcuda.so.1").exists() for folder in
                        ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")), reason="this machine has a driver")
def test_without_a_driver_the_gpu_tests_are_skipped(tmp_path):
    done = gpu_test(tmp_path)
    assert done.returncode == 0 and "skipped: no driver library" in done.stdout


def test_a_part_of_the_fresh_test_that_is_none():
    done = subprocess.run([ROOT / "scripts/fresh-test.sh"], env=dict(os.environ, PART="quick"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr == "gpurest: PART is all or short, not quick\n"
