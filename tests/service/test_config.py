"""--config, --check-config and --man of the executable itself; the parser's cases are in tests/unit/api/config*_test.c."""
import re
import shutil
import subprocess

import pytest


def run(executable, *arguments, **environment):
    return subprocess.run([executable, *arguments], capture_output=True, text=True, timeout=60, env=environment)


def test_check_config_prints_what_is_in_force(executable, tmp_path):
    file = tmp_path / "gpurestd.conf"
    file.write_text("# of a test\nthreads = 3\ndrain-timeout = 5\nlisten = 127.0.0.1:1\nlisten = unix:/x\nlog_level = debug\n")
    got = run(executable, "--check-config", "--config", str(file), "--drain-timeout=7", GPUREST_LOG_LEVEL="warn")
    assert (got.returncode, got.stderr) == (0, "")
    lines = got.stdout.splitlines()
    for expected in ("threads = 3", "drain_timeout = 7", "listen = 127.0.0.1:1", "listen = unix:/x", "log_level = warn", "access_log = 0", "tokens = "):
        assert expected in lines
    assert "# host is not set" in lines


def test_what_it_prints_is_a_configuration_file(executable, tmp_path):
    first = run(executable, "--check-config", "--listen=:1", "--listen=:2", "--node", "a b#c", "--access-log")
    file = tmp_path / "again.conf"
    file.write_text(first.stdout)
    again = run(executable, "--check-config", f"--config={file}")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.replace(f"# from {file}, the environment and the flags\n", "") == first.stdout
    assert "node = a b#c" in again.stdout


def test_every_option_of_help_is_a_line(executable):
    options = re.findall(r"^  --([a-z-]+)", run(executable, "--help").stdout, re.M)
    names = set(re.findall(r"^(?:# )?([a-z_]+) (?:=|is not set)", run(executable, "--check-config").stdout, re.M))
    assert {o.replace("-", "_") for o in options} - {"help", "version", "man", "check_config", "config"} == names


def test_a_mistake_in_the_file_has_a_place(executable, tmp_path):
    file = tmp_path / "wrong.conf"
    file.write_text("threads = 2\nthreds = 3\n")
    for more in ((), ("--check-config",)):
        got = run(executable, "--config", str(file), *more)
        assert (got.returncode, got.stdout) == (2, "")
        assert got.stderr == f'gpurestd: {file}:2: there is no setting "threds"\n'


def test_a_mistake_in_the_environment_names_the_variable(executable):
    got = run(executable, "--check-config", GPUREST_THREADS="0")
    assert got.returncode == 2
    assert got.stderr.startswith("gpurestd: GPUREST_THREADS: must be a number from 1 to ")


def test_the_service_obeys_the_file(start, tmp_path):
    file = tmp_path / "node.conf"
    file.write_text("node = from-the-file\n")
    service = start("--config", str(file))
    client = service.client()
    answer = client.request("POST", "/v1/sessions", {})
    client.close()
    assert answer.status == 201
    assert "from-the-file" in answer.json()["id"]


def test_the_manual_has_every_option_and_variable(executable):
    manual = run(executable, "--man")
    assert (manual.returncode, manual.stderr) == (0, "")
    plain = manual.stdout.replace("\\-", "-")
    for option in re.findall(r"^  (--[a-z-]+)", run(executable, "--help").stdout, re.M):
        assert f".B {option}" in plain
        if option not in ("--help", "--version", "--man", "--check-config"):
            assert f".B GPUREST_{option[2:].replace('-', '_').upper()}\n" in plain


def test_the_manual_is_good_troff(executable):
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    source = run(executable, "--man").stdout
    got = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=source, capture_output=True, text=True, timeout=60)
    assert (got.returncode, got.stderr) == (0, "")
