"""--config, --check-config and --man of the executable. tests/unit/config/ has the parser's cases."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from service_under_test import until


def run(executable, *arguments, **environment):
    return subprocess.run([executable, *arguments], capture_output=True, text=True, timeout=60, env=environment)


def test_check_config_prints_what_is_in_force(executable, tmp_path):
    file = tmp_path / "gpurestd.conf"
    file.write_text(f"# of a test\nthreads = 3\ndrain-timeout = 5\nlisten = 127.0.0.1:0\nlisten = unix:{tmp_path}/x\nlog_level = debug\n")
    got = run(executable, "--check-config", "--config", str(file), "--drain-timeout=7", GPUREST_LOG_LEVEL="warn")
    assert (got.returncode, got.stderr) == (0, "")
    lines = got.stdout.splitlines()
    for expected in ("threads = 3", "drain_timeout = 7", "listen = 127.0.0.1:0", f"listen = unix:{tmp_path}/x", "log_level = warn", "access_log = 0", "tokens = "):
        assert expected in lines
    assert "# host is not set" in lines


def test_what_it_prints_is_a_configuration_file(executable, tmp_path):
    first = run(executable, "--check-config", "--listen=127.0.0.1:0", "--listen=[::1]:0", "--nvidia-smi", "a b#c", "--access-log")
    file = tmp_path / "again.conf"
    file.write_text(first.stdout)
    again = run(executable, "--check-config", f"--config={file}")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.replace(f"# from {file}, the environment and the flags\n", "") == first.stdout
    assert "nvidia_smi = a b#c" in again.stdout


def test_every_option_of_help_is_a_line(executable):
    options = re.findall(r"^  --([a-z0-9-]+)", run(executable, "--help").stdout, re.M)
    names = set(re.findall(r"^(?:# )?([a-z0-9_]+) (?:=|is not set)", run(executable, "--check-config").stdout, re.M))
    assert {o.replace("-", "_") for o in options} - {"help", "version", "man", "check_config", "config"} == names


def test_a_mistake_in_the_file_has_a_place(executable, tmp_path):
    file = tmp_path / "wrong.conf"
    file.write_text("threads = 2\nthreds = 3\n")
    for more in ((), ("--check-config",)):
        got = run(executable, "--config", str(file), *more)
        assert (got.returncode, got.stdout) == (2, "")
        assert got.stderr == f'gpurestd: {file}:2: unknown setting "threds"\n'


def test_a_mistake_in_the_environment_names_the_variable(executable):
    got = run(executable, "--check-config", GPUREST_THREADS="17")
    assert got.returncode == 2
    assert got.stderr.startswith("gpurestd: GPUREST_THREADS: must be a number from 0 to ")


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
    for option in re.findall(r"^  (--[a-z0-9-]+)", run(executable, "--help").stdout, re.M):
        assert f".B {option}" in plain
        if option not in ("--help", "--version", "--man", "--check-config"):
            assert f".B GPUREST_{option[2:].replace('-', '_').upper()}\n" in plain


def test_the_manual_is_good_troff(executable):
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    source = run(executable, "--man").stdout
    got = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=source, capture_output=True, text=True, timeout=60)
    assert (got.returncode, got.stderr) == (0, "")


# ---- what settings refer to ----

def checked(executable, tmp_path, *arguments):
    """(exit code, errors, remarks) of --check-config."""
    got = subprocess.run([executable, "--check-config", *arguments], capture_output=True, text=True, timeout=60, env={}, cwd=tmp_path)
    remarks = [line for line in got.stdout.splitlines() if line.startswith("# --")]
    return got.returncode, got.stderr.splitlines(), remarks


def test_addresses_are_checked(executable, tmp_path):
    (tmp_path / "file").write_text("")
    for address, word in (("127.0.0.1:99999", "must be HOST:PORT"), ("192.0.2.1:8080", "without"), ("nowhere.invalid:1", "tokens"),
                          (f"unix:{tmp_path}/file", "another file"), ("unix:" + "x" * 200, "too long"), (":0", "without a token")):
        code, complaints, _ = checked(executable, tmp_path, "--listen", address, "--insecure-no-auth" if word == "without" else "--access-log")
        assert code == 2 and any(word in line for line in complaints), (address, complaints)
    code, complaints, _ = checked(executable, tmp_path, "--listen=192.0.2.1:8080", "--insecure-no-auth", "--allow-plaintext")
    assert code == 2 and complaints == ["gpurestd: --listen 192.0.2.1:8080: cannot be bound: Cannot assign requested address"]


def test_what_may_come_right_is_a_remark(executable, tmp_path, start):
    service = start()
    address = f"127.0.0.1:{service.port}"
    code, complaints, remarks = checked(executable, tmp_path, "--listen", address, "--listen=unix:/nonexistent/s", "--cache=/nonexistent/c",
                                        "--log-file=/nonexistent/l", "--port-file=/nonexistent/p")
    assert (code, complaints) == (0, [])
    assert remarks == [f"# --listen {address}: in use now", "# --listen unix:/nonexistent/s: its folder does not exist yet",
                       "# --cache /nonexistent/c: the folder does not exist yet", "# --log-file /nonexistent: the folder does not exist yet",
                       "# --port-file /nonexistent: the folder does not exist yet"]
    assert service.client().get("/readyz").status == 200, "the service that was there is as it was"


@pytest.mark.parametrize("flag,word", [("tokens", "tokens"), ("nvrtc", "No such file"), ("libcuda", "No such file"), ("libamdhip64", "No such file"), ("cuda-include", "No such file"),
                                       ("tls-cert", "a certificate and its key")])
def test_files_that_are_read_must_be_there(executable, tmp_path, flag, word):
    code, complaints, _ = checked(executable, tmp_path, f"--{flag}={tmp_path}/missing")
    assert code == 2 and len(complaints) == 1
    assert complaints[0].startswith(f"gpurestd: --{flag} {tmp_path}/missing: ") and word in complaints[0]


def test_every_mistake_is_told(executable, tmp_path):
    (tmp_path / "bad.pem").write_text("no certificate")
    (tmp_path / "tokens").write_text("{}")
    (tmp_path / "tokens").chmod(0o600)
    code, complaints, _ = checked(executable, tmp_path, "--tls-cert=bad.pem", "--tls-key=bad.pem", "--tokens=tokens", "--cuda-include=bad.pem",
                                  "--cache=bad.pem/below", "--listen=unix:bad.pem")
    assert code == 2
    assert [line.split()[1] for line in complaints] == ["--listen", "--tls-cert", "--tokens", "--cuda-include", "--cache"], complaints


def test_a_socket_of_a_running_service_survives_the_check(executable, tmp_path, start):
    path = tmp_path / "s"
    service = start("--listen", f"unix:{path}")
    assert checked(executable, tmp_path, "--listen", f"unix:{path}")[:2] == (0, [])
    assert path.is_socket() and service.client().get("/readyz").status == 200


def test_a_fifo_does_not_hold_up_the_start(executable, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    got = run(executable, "--check-config", "--config", str(fifo))
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr == f"gpurestd: configuration file {fifo} does not reach its end: a pipe must end within 10 s; see --help\n"


def test_what_is_no_file_is_refused(executable, tmp_path):
    got = run(executable, "--check-config", "--config", str(tmp_path))
    assert (got.returncode, got.stderr) == (2, f"gpurestd: configuration file {tmp_path} is not a file or a pipe; see --help\n")
    assert run(executable, "--check-config", "--config", "/dev/null").returncode == 0


def test_settings_from_a_pipe(executable):
    got = subprocess.run(["bash", "-c", 'exec "$0" --check-config --config <(sleep 0.3; echo threads = 3; sleep 0.3; echo node = x)', executable],
                         capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"]})
    assert (got.returncode, got.stderr) == (0, "")
    assert {"threads = 3", "node = x"} <= set(got.stdout.splitlines())


def test_an_unknown_variable_is_told(executable):
    got = run(executable, "--check-config", GPUREST_DRAIN_TIMEOT="3", GPUREST_THREADS="3", GPUREST_URL="http://x", XGPUREST_A="1")
    assert got.returncode == 0 and "threads = 3" in got.stdout.splitlines()
    assert got.stderr == ("gpurestd: warning: the environment variable GPUREST_DRAIN_TIMEOT is not a setting and is ignored; "
                          "did you mean GPUREST_DRAIN_TIMEOUT?\n")
    strange = run(executable, "--check-config", **{"GPUREST_\x1b[2J" + "x" * 200: "1"})
    assert strange.returncode == 0 and "\x1b" not in strange.stderr and strange.stderr.count("warning") == 1


def test_variables_of_the_clients_are_known(executable):
    """The variables in the sources of the SDKs and the command line."""
    sdk = pathlib.Path(__file__).resolve().parents[2] / "sdk"
    read = re.compile(r"""(?:getenv\(|environ\.get\(|environ\[)"(GPUREST_[A-Z_]+)\"""")
    names = {name for kind in ("*.c", "*.py") for file in sdk.rglob(kind) for name in read.findall(file.read_text())}
    assert {"GPUREST_URL", "GPUREST_TOKEN", "GPUREST_SESSION"} <= names
    got = run(executable, "--check-config", **{name: "x" for name in names})
    assert got.stderr == ""


def test_hangup_takes_what_can_change_from_the_file(start, tmp_path):
    file = tmp_path / "now.conf"
    file.write_text("log_level = info\nrate = 0\n")
    service = start("--config", str(file))
    client = service.client()

    def hang_up(text):
        file.write_text(text)
        service.process.send_signal(signal.SIGHUP)

    def levels():
        return client.get("/v1/admin/logging").json().get("levels", {})  # none in a refusal for the rate

    client.get("/version?seen=0")
    hang_up("log_level = debug\naccess_log = 1\nrate = 3\n")
    until(lambda: levels().get("http") == "debug")
    until(lambda: client.get("/v1/limits").json().get("limits", {}).get("requests_per_s", {}).get("max") == 3)
    until(lambda: 429 in [client.get("/version").status for _ in range(10)])
    assert "category=access" in service.logged("path=/version")
    before = until(levels)
    hang_up("log_level = inof\n")
    service.logged("none of them is taken")
    assert until(levels) == before
    client.close()
