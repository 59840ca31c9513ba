"""The command line tool for operators: drain, archives, schemas, the live screen; and files that must not change."""
import fcntl
import gzip
import hashlib
import io
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import termios
import time

import pytest

from test_cli import AUTH, BUSY, DEGRADED, FAILED, NOT_FOUND, OK, RUN, TWICE, UNREACHABLE, USAGE, floats, job, npy  # noqa: F401 - job is a fixture

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "service"))
from service_under_test import Service, until  # noqa: E402

WAIT_S = 60


@pytest.fixture
def own(bare, service, tmp_path_factory):
    """own(*options) starts a service for the test; returns (service, run)."""
    started = []

    def start(*options):
        one = Service(str(pathlib.Path(os.environ["GPURESTD"]).resolve()), tmp_path_factory.mktemp("own"), *options)
        started.append(one)
        return one, lambda *arguments, **more: bare(*arguments, **{"GPUREST_URL": f"http://127.0.0.1:{one.port}", **more})

    yield start
    for one in started:
        if one.process.poll() is None:
            one.stop()


# ---- drain ----


def test_drain_and_resume(own):
    service, run = own("--drain-timeout", "3600")
    assert run("drain").returncode == USAGE, "nobody can be asked here"
    assert run("connect", "stays").returncode == OK
    done = run("drain", "--yes")
    assert done.returncode == OK and done.stdout == b"draining, 1 sessions\n", done.stderr
    assert run("status").returncode == DEGRADED and run("connect", "another").returncode == BUSY
    assert run("resume").stdout == b"serving, 1 sessions\n"
    assert run("status").returncode == OK and run("connect", "another").returncode == OK
    assert run("drain", "nonsense", "--yes").returncode == USAGE
    assert run("drain", "--exit", "--yes").stdout == b"draining, 2 sessions, exits after the last or, with --state, when they are saved\n"
    assert run("resume").returncode == BUSY
    for name in ("stays", "another"):
        assert run("disconnect", name).returncode == OK
    assert service.wait() == 0


def test_drain_needs_the_right_scope(own, tmp_path):
    rows = [{"name": name, "sha256": hashlib.sha256(f"{name}-secret".encode()).hexdigest(), "scopes": scopes}
            for name, scopes in (("reader", ["read"]), ("admin", ["read", "admin"]))]
    (tmp_path / "tokens").write_text(json.dumps({"tokens": rows}))
    (tmp_path / "tokens").chmod(0o600)
    _, run = own("--tokens", str(tmp_path / "tokens"))
    assert run("drain", "--yes", GPUREST_TOKEN="reader-secret").returncode == AUTH
    assert run("drain", "--yes", GPUREST_TOKEN="admin-secret").returncode == OK


# ---- settings that change while the service runs ----


def test_config_shows_and_sets_log_levels_and_nothing_else(own):
    _, run = own()
    shown = json.loads(run("config", "--json").stdout)["item"]
    assert shown["limits"]["sessions"]["max"] > 0 and shown["clocks"][0].keys() == {"id", "clock_khz", "memory_clock_khz", "power_w", "temperature_c"}
    access = shown["logging"]["access"]
    assert run("config", "set", "log", "debug").returncode == OK
    levels = json.loads(run("config", "--json").stdout)["item"]["logging"]
    assert levels.pop("access") == access and set(levels.values()) == {"debug"}
    assert run("config", "set", "log.http", "trace").returncode == OK
    assert json.loads(run("config", "--json").stdout)["item"]["logging"]["http"] == "trace"
    for wrong in (["set", "log.nothing", "info"], ["set", "log", "loud"]):
        assert run("config", *wrong).returncode == FAILED, wrong
    for wrong in (["set"], ["set", "log"], ["set", "log.", "info"], ["set", "clock_khz", "1"], ["get"], ["set", "log", "info", "more"]):
        assert run("config", *wrong).returncode == USAGE, wrong
    assert b"CLOCK" in run("config").stdout


# ---- devices ----


def test_a_device_is_reset(own):
    _, run = own()
    assert run("connect", "held").returncode == OK
    assert run("device", "reset", "cpu:0").returncode == USAGE, "nobody can be asked here"
    done = run("device", "reset", "cpu:0", "--timeout", "5", "--yes")
    assert done.returncode == OK and done.stdout == b"cpu:0 healthy\n", done
    assert json.loads(run("sessions", "get", "held", "--json").stdout)["item"]["fault"]["code"] == "device_reset"
    assert json.loads(run("device", "reset", "cpu:0", "--yes", "--json").stdout)["item"]["id"] == "cpu:0"
    hard = run("device", "reset", "cpu:0", "--hard", "--yes")
    assert hard.returncode != OK and b"--allow-device-settings" in hard.stderr
    for wrong in (["reset"], ["reset", "cpu:0", "more", "--yes"], ["reset", "a/b", "--yes"], ["reset", "cpu:0", "--timeout", "3601", "--yes"], ["cool", "cpu:0"], []):
        assert run("device", *wrong).returncode == USAGE, wrong


def test_settings_of_a_device(own, executable_folder, tmp_path):
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        if not (executable_folder / name).exists():
            pytest.skip("the fake driver is not built")
        shutil.copy(executable_folder / name, tmp_path)
    _, run = own("--backends", "cuda", "--libcuda", str(tmp_path / "libcuda.so.1"), "--vendor-libraries", "off", "--allow-device-settings")
    done = run("device", "set", "cuda:0", "clocks_mhz", "300,1500", "power_limit_w", "300", "persistence_mode", "on", "fan_pct", "default")
    assert done.returncode == OK and done.stdout == b"cuda:0 healthy\nclocks_mhz [300,1500]\npower_limit_w 300\npersistence_mode true\n", done
    assert run("device", "set", "cuda:0", "clocks_mhz", "auto", "power_limit_w", "default", "persistence_mode", "off").stdout == b"cuda:0 healthy\npersistence_mode false\n"
    refused = run("device", "set", "cuda:0", "power_limit_w", "10")
    assert refused.returncode == FAILED and b"from 200 to 700 W" in refused.stderr
    for wrong in (["power_limit_w"], ["power_limit_w", "much"], ["clocks_mhz", "300,"], ["power_limit_w", "300", "--hard"], ["power_limit_w", "300", "--timeout", "3"], []):
        assert run("device", "set", "cuda:0", *wrong).returncode == USAGE, wrong


def test_a_lost_device_is_shown(own, executable_folder, tmp_path):
    if not (executable_folder / "libcuda.so.1").exists():
        pytest.skip("the fake driver is not built")
    shutil.copy(executable_folder / "libcuda.so.1", tmp_path)
    shown = tmp_path / "libcuda.so.1.devices"
    shown.write_text("2")
    service, run = own("--backends", "cuda", "--libcuda", str(tmp_path / "libcuda.so.1"), "--vendor-libraries", "off")
    assert run("connect", "held", "--device", "cuda:1").returncode == OK
    shown.write_text("1")
    service.process.send_signal(signal.SIGHUP)

    def states():
        return {one["id"]: one["state"] for one in json.loads(run("devices", "--json").stdout)["items"]}

    deadline = time.monotonic() + WAIT_S
    while states() != {"cuda:0": "healthy", "cuda:1": "lost"}:
        assert time.monotonic() < deadline, states()
    for command in (["devices"], ["info"], ["status"], ["top", "-1"]):
        done = run(*command)
        told = done.stdout.decode().split("cuda:1")[1]
        assert done.returncode == OK and "lost" in told.split("attributes")[0].split(), (command, done)
    refused = run("connect", "new", "--device", "cuda:1")
    assert refused.returncode != OK and b"device cuda:1 is lost" in refused.stderr
    assert run("device", "reset", "cuda:1", "--yes").returncode != OK


@pytest.fixture
def executable_folder():
    """Where the fake libraries are."""
    return pathlib.Path(os.environ["GPURESTD"]).resolve().parents[1] / "tests" / "support"


def test_status_is_one_document_and_says_why_it_is_not_ready(own):
    _, run = own()
    assert run("connect", "seen").returncode == OK
    document = json.loads(run("status", "--json").stdout)
    assert document["schema"] == "gpurest.status/1" and document["item"]["ready"] is True and document["item"]["reason"] is None
    assert document["item"]["devices"] and [one["id"] for one in document["item"]["sessions"]] == ["seen"]
    assert run("drain", "--yes").returncode == OK
    done = run("status", "--json")
    item = json.loads(done.stdout)["item"]
    assert done.returncode == DEGRADED and item["ready"] is False and item["reason"]
    assert run("status").stdout.startswith(b"not ready: " + item["reason"].encode())


# ---- a session's steps ----


def test_monitor_prints_a_line_for_each_step(gpurest, tool, tmp_path, service):
    source = 'extern "C" __global__ void hi(int n) { printf("hi\\n%d\\n", n); }'
    client = service.client()
    assert gpurest("connect", "cli-monitor").returncode == OK
    assert client.put_cuda("/v1/sessions/cli-monitor/modules/m", source).status == 201
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GPUREST_URL": f"http://127.0.0.1:{service.port}"}
    watching = [subprocess.Popen([tool, "monitor", "--events", *form], stdout=subprocess.PIPE, env=environment, cwd=tmp_path) for form in ([], ["--json"])]
    try:
        for one in watching:  # launches until one of them was followed from its beginning
            os.set_blocking(one.stdout.fileno(), False)
        seen, deadline = [b"", b""], time.monotonic() + WAIT_S
        while not all(text.count(b"launch.finished") >= 2 for text in seen):
            assert time.monotonic() < deadline, seen
            assert client.post("/v1/sessions/cli-monitor/launches", {"module": "m", "kernel": "hi", "grid": [1], "block": [1], "args": [{"i32": 7}]}).status == 200
            seen = [text + (one.stdout.read() or b"") for text, one in zip(seen, watching)]
    finally:
        for one in watching:
            one.kill()
            one.wait()
            one.stdout.close()
    assert b'text="hi\\n7\\n"' in seen[0] and b"state=succeeded" in seen[0]
    documents = [json.loads(line) for line in seen[1].splitlines() if line.endswith(b"}")]
    assert {"launch.queued", "launch.finished"} <= {one["event"] for one in documents} and "hi\n7\n" in [one.get("text") for one in documents]
    client.close()
    assert gpurest("disconnect", "--force").returncode == OK
    assert gpurest("monitor", "--events", "--session", "nothing-there").returncode == 5
    for wrong in (["--seconds", "0"], ["--seconds", "3601"], ["more"]):
        assert gpurest("monitor", "--events", "--session", "any", *wrong).returncode == USAGE


# ---- figures, the link, other names of commands ----


def test_monitor_prints_figures_of_each_device_in_each_interval(gpurest):
    done = gpurest("monitor", "-i", "20", "-c", "3", "--json")
    assert done.returncode == OK, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["id"] for line in lines] == ["cpu:0"] * 3 and all(line["memory_used_bytes"] > 0 for line in lines)
    assert lines[0].keys() == {"at", "id", "temperature_c", "power_w", "clock_khz", "utilization_pct", "memory_utilization_pct", "memory_used_bytes",
                               "errors_per_s"}
    assert lines[0]["temperature_c"] is None and lines[0]["errors_per_s"] >= 0
    table = gpurest("m", "-i", "1", "-c", "2").stdout.decode().splitlines()
    assert table[0].split()[:4] == ["TIME", "DEVICE", "TEMP", "C"] and [row.split()[1] for row in table[1:]] == ["cpu:0", "cpu:0"]
    for wrong in (["-i", "0"], ["-i", "3600001"], ["more"], ["--seconds", "1"]):
        assert gpurest("monitor", *wrong).returncode == USAGE


def test_monitor_counts_the_errors_of_the_service(tool, tmp_path, service):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GPUREST_URL": f"http://127.0.0.1:{service.port}"}
    watching = subprocess.Popen([tool, "monitor", "--json", "-i", "50"], stdout=subprocess.PIPE, env=environment)
    try:
        client, deadline = service.client(), time.monotonic() + WAIT_S
        for line in watching.stdout:
            if json.loads(line)["errors_per_s"] > 0:
                break
            assert time.monotonic() < deadline
            assert client.get("/v1/sessions/nothing-there").status == 404
        client.close()
    finally:
        watching.kill()
        watching.wait()
        watching.stdout.close()


def test_status_tells_the_round_trip(gpurest):
    link = json.loads(gpurest("status", "--json").stdout)["item"]["link"]
    assert link["requests"] > 0 and link["failed"] == 0 and 0 < link["p50_us"] <= link["p99_us"]
    assert link["failures_last_minute"] >= 0
    assert b"us p99; 0 of " in gpurest("status").stdout


def test_status_tells_what_failed_at_the_service(own, tmp_path):
    service, run = own("--workers-max", "1")

    def failures():
        return json.loads(run("status", "--json").stdout)["item"]["link"]["failures_last_minute"]

    assert run("buffers", "--session", "absent").returncode == NOT_FOUND and failures() == 0, "that is the caller's own mistake"
    assert run("connect", "first").returncode == OK and failures() == 0

    def refused():
        assert run("connect", "another").returncode == BUSY  # 503
        return failures()

    until(refused, "it is not counted")
    assert re.search(rb"\nfailures of the last minute, of all callers: \d+\n", run("status").stdout)
    tokens = tmp_path / "tokens"
    tokens.write_text(json.dumps({"tokens": [{"name": "reader", "sha256": hashlib.sha256(b"secret").hexdigest(), "scopes": ["read"]}]}))
    tokens.chmod(0o600)
    _, run = own("--tokens", str(tokens))
    assert json.loads(run("status", "--json", GPUREST_TOKEN="secret").stdout)["item"]["link"]["failures_last_minute"] is None
    assert b"told with the scope admin" in run("status", GPUREST_TOKEN="secret").stdout


def test_connect_says_whether_everything_fits(gpurest, own):
    done = gpurest("connect", "cli-fits")
    assert done.returncode == OK and b"code for compute_75: fits together" in done.stderr, done.stderr
    assert gpurest("disconnect").returncode == OK
    _, run = own("--nvrtc", "/nothing/libnvrtc.so")
    told = run("connect", "another").stderr
    assert b"does not fit together" in told and b"it takes PTX and cubins only" in told, told


@pytest.mark.parametrize("alias, command", [("i", "info"), ("s", "status"), ("d", "diag"), ("l", "logs"), ("log", "logs"), ("b", "bench"), ("c", "connect"),
                                            ("benchmark", "bench"), ("dc", "disconnect"), ("m", "monitor"), ("cf", "config"), ("r", "reset")])
def test_aliases_are_the_commands(gpurest, alias, command):
    assert gpurest("help", alias).stdout == gpurest("help", command).stdout != b""
    assert f"{alias} = {command}".encode() in gpurest("help").stdout


def test_the_tool_logs_by_level_and_category(gpurest):
    told = gpurest("devices", "--log-level", "debug").stderr
    assert b"gpurest: debug: cli: devices, as version" in told and b"gpurest: debug: transport: GET /v1/devices" in told and b"exit code 0" in told
    assert gpurest("devices", GPUREST_LOG="cli=debug").stderr.count(b"debug: ") == 2
    assert gpurest("devices").stderr == b""
    wrong = gpurest("devices", "--log-level", "loud")
    assert wrong.returncode == FAILED and b"use off, warn, info or debug" in wrong.stderr


def test_config_show_is_config(gpurest):
    assert gpurest("config", "show").stdout.split() == gpurest("cf").stdout.split()


@pytest.mark.parametrize("typed, meant", [("statsu", "status"), ("sesions", "sessions"), ("dignag", "diag"), ("xyzzy", None), ("x" * 100, None)])
def test_a_mistyped_command_is_guessed(gpurest, typed, meant):
    done = gpurest(typed)
    assert done.returncode == USAGE and (b"did you mean" in done.stderr) == bool(meant)
    assert not meant or f"did you mean {meant}?".encode() in done.stderr


# ---- diag --bundle ----


def members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive.getmembers()}


def test_a_bundle_holds_the_state_and_no_secrets(gpurest, tmp_path):
    secret = "token-that-nobody-may-see"
    assert gpurest("diag", "--level", "1", "--bundle", "state.tar.gz", GPUREST_TOKEN=secret).returncode == OK
    data = (tmp_path / "state.tar.gz").read_bytes()
    found = members(gzip.decompress(data))
    assert {"tool.txt", "diag.json", "version.json", "ready.json", "devices.json", "limits.json", "sessions.json", "metrics.txt", "logs.txt"} <= found.keys()
    assert [one["result"] for one in json.loads(found["diag.json"])] == ["ok", "ok"]
    assert json.loads(found["devices.json"])["items"] and b"gpurest_build_info" in found["metrics.txt"]
    assert not [name for name, content in found.items() if secret.encode() in content]
    assert gpurest("diag", "--level", "1", "--bundle", "plain.tar").returncode == OK
    assert members((tmp_path / "plain.tar").read_bytes()).keys() == found.keys()
    listed = subprocess.run(["tar", "tzf", "state.tar.gz"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(listed.stdout.split()) == found.keys() and listed.stderr == ""
    assert gpurest("diag", "--level", "1", "--bundle", "nowhere/state.tar").returncode == FAILED
    assert gpurest("diag", "--bundle").returncode == USAGE
    for level in ("0", "5"):
        assert gpurest("diag", "--level", level).returncode == USAGE


# ---- schemas ----


def test_what_json_prints_is_what_its_schema_says(gpurest):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    names = gpurest("schema").stdout.decode().split()
    assert {"devices", "sessions", "diag", "bench", "info"} <= set(names)
    assert gpurest("connect", "cli-schema").returncode == OK
    commands = {"devices": ["devices"], "sessions": ["sessions"], "buffers": ["buffers"], "launches": ["launches"], "modules": ["modules"], "memory": ["memory"],
                "info": ["info"], "version": ["version"], "config": ["config"], "status": ["status"], "latency": ["latency", "-c", "2"], "diag": ["diag", "--level", "1"],
                "bench": ["bench", "launch"]}
    for name, command in commands.items():
        schema = json.loads(gpurest("schema", name).stdout)
        document = json.loads(gpurest(*command, "--json").stdout)
        jsonschema.Draft202012Validator(schema).validate(document)
        assert schema["properties"]["schema"]["const"] == document["schema"], name
        assert not jsonschema.Draft202012Validator(schema).is_valid({**document, "schema": "gpurest.other/1"})
    for name in names:
        jsonschema.Draft202012Validator.check_schema(json.loads(gpurest("schema", name).stdout))
    assert gpurest("schema", "nothing").returncode == USAGE
    assert gpurest("disconnect").returncode == OK


# ---- the live screen ----


class Terminal:
    """The tool on a terminal."""

    def __init__(self, tool, arguments, url, folder, rows=12, columns=40):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.seen = b""
        environment = {**{k: v for k, v in os.environ.items() if k.endswith("_OPTIONS")}, "PATH": os.environ["PATH"], "HOME": str(folder), "GPUREST_URL": url,
                       "TERM": "xterm"}
        self.process = subprocess.Popen([tool, *arguments], stdin=self.slave, stdout=self.slave, stderr=self.slave, env=environment, cwd=folder)

    def until(self, text, behind=0):
        """Reads until the text appears after that many bytes of the output."""
        deadline = time.monotonic() + WAIT_S
        while text not in self.seen[behind:]:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    break
            elif self.process.poll() is not None:
                break
        assert text in self.seen[behind:], self.seen

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def echo(self):
        return bool(termios.tcgetattr(self.slave)[3] & termios.ECHO)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(tool, service, tmp_path):
    made = []

    def start(*arguments, url=None, **more):
        made.append(Terminal(tool, arguments, url or f"http://127.0.0.1:{service.port}", tmp_path, **more))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_top_has_a_screen_of_its_own_and_gives_it_back(terminal):
    top = terminal("top", "-i", "3600")
    top.until(b"DEVICES")
    assert top.seen.startswith(b"\x1b[?1049h") and b"\x1b[?1049l" not in top.seen and not top.echo()
    top.until(b"\x1b[J")
    for line in top.seen.replace(b"\r", b"").split(b"\n"):
        text = line.replace(b"\x1b[?1049h\x1b[?25l\x1b[H", b"")
        for sequence in (b"\x1b[K", b"\x1b[J", b"\x1b[32m", b"\x1b[0m"):
            text = text.replace(sequence, b"")
        assert len(text.decode()) <= 40, line
    frames = top.seen.count(b"\x1b[H")
    top.resize(3, 200)
    top.until(b"q quits")
    assert top.seen.count(b"\x1b[H") > frames and top.seen.rpartition(b"\x1b[H")[2].count(b"\n") <= 3
    os.write(top.master, b"q")
    top.until(b"\x1b[?1049l")
    assert top.process.wait(WAIT_S) == OK and top.echo()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_give_the_screen_back_too(terminal, number):
    top = terminal("top", "-i", "3600")
    top.until(b"DEVICES")
    top.process.send_signal(number)
    top.until(b"\x1b[?1049l")
    assert top.process.wait(WAIT_S) == OK and top.echo()


def test_top_says_what_went_wrong_on_the_ordinary_screen(own, terminal):
    service, _ = own("--drain-timeout", "0")
    top = terminal("top", "-i", "1", url=f"http://127.0.0.1:{service.port}")
    top.until(b"DEVICES")
    service.stop()
    top.until(b"\x1b[?1049l")
    assert top.process.wait(WAIT_S) == UNREACHABLE
    top.until(b"gpurest: ", behind=top.seen.rindex(b"\x1b[?1049l"))
    assert top.echo()


def test_top_is_plain_elsewhere(gpurest):
    done = gpurest("top")
    assert done.returncode == OK and b"\x1b" not in done.stdout and done.stdout.startswith(b"gpurest top - ")
    assert json.loads(gpurest("devices", "--json").stdout)["items"]
    assert gpurest("top", "-i", "0").returncode == USAGE


def test_a_long_transfer_is_one_line(terminal, gpurest, tmp_path):
    (tmp_path / "large").write_bytes(bytes(200 << 20))
    assert gpurest("connect", "cli-progress").returncode == OK
    put = terminal("buf", "put", "a", "large", columns=120)
    put.until(b"100 %")
    assert put.process.wait(WAIT_S) == OK
    put.until(b"\n")
    lines = put.seen.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")
    assert len(lines) == 1 and b"200.0 MiB of 200.0 MiB" in lines[0] and b"/s" in lines[0]
    assert gpurest("disconnect").returncode == OK


# ---- benchmarks ----


def test_device_copies_and_whole_jobs_are_measured_in_a_session_of_their_own(gpurest):
    assert gpurest("connect", "cli-bench").returncode == OK
    rows = json.loads(gpurest("bench", "d2d", "e2e", "--size", "1M", "--json").stdout)["items"]
    assert [(row["what"], row["unit"]) for row in rows] == [("d2d", "GB/s"), ("e2e", "us")] and all(row["value"] > 0 for row in rows)
    assert gpurest("latency", "-c", "2").returncode == OK
    assert gpurest("buffers", "-o", "name").stdout == b"", "nothing is left in the session that is connected"
    assert gpurest("disconnect").returncode == OK


# ---- files that are written, and files that are not ----


def test_devices_pipes_and_links_stay_what_they_are(gpurest, job):
    os.mkfifo(job / "pipe")
    reader = subprocess.Popen(["cat", str(job / "pipe")], stdout=subprocess.PIPE)
    assert gpurest("-q", *RUN, "--out", "pipe:4096", "--arg", "i32:1024").returncode == OK
    assert reader.communicate(timeout=WAIT_S)[0] == floats(2 * i + 1 for i in range(1024))
    assert stat.S_ISFIFO((job / "pipe").stat().st_mode)
    (job / "real").write_bytes(b"old")
    (job / "link").symlink_to("real")
    assert gpurest("-q", *RUN, "--out", "link:4096", "--arg", "i32:1024").returncode == OK
    assert (job / "link").is_symlink() and len((job / "real").read_bytes()) == 4096
    assert not [one for one in job.iterdir() if "part" in one.name]


def test_an_npy_file_stays_one_whatever_its_name(gpurest, tmp_path):
    (tmp_path / "twice.cu").write_text(TWICE)
    (tmp_path / "data").write_bytes(npy("|u1", "(8,)", bytes(range(8))))
    assert gpurest("-q", "run", "twice.cu", "twice", "--grid=1", "--block=8", "--inout=data", "--arg=i32:8").returncode == OK
    assert (tmp_path / "data").read_bytes() == npy("|u1", "(8,)", bytes(range(0, 16, 2)))


def test_a_buffer_becomes_an_npy_file_only_with_a_shape(gpurest, tmp_path):
    array = npy("<f4", "(2,4)", floats(range(8)))
    (tmp_path / "x.npy").write_bytes(array)
    assert gpurest("connect", "cli-npy").returncode == OK
    assert gpurest("buf", "put", "a", "x.npy").returncode == OK
    for name, words in (("a.npy", b"type and a shape"), ("a.npy:f4[8", b"type and a shape"), ("a.npy:f4[9]", b"32 bytes")):
        done = gpurest("buf", "get", "a", name)
        assert done.returncode == USAGE and words in done.stderr, done.stderr
    assert [one.name for one in tmp_path.iterdir() if one.suffix == ".npy"] == ["x.npy"]
    assert gpurest("buf", "get", "a", "a.npy:f4[2,4]").returncode == OK and (tmp_path / "a.npy").read_bytes() == array
    assert gpurest("buf", "get", "a", "a.raw").returncode == OK and (tmp_path / "a.raw").read_bytes() == floats(range(8))
    assert gpurest("disconnect").returncode == OK


def test_arguments_with_an_equals_sign_keep_their_order(gpurest, job):
    command = ["run", "saxpy.cu", "saxpy", "--grid=4", "--block=256", "--arg=f32:2.0", "--in=x.npy", "--in", "y.npy", "--out=z.raw:4096", "--arg", "i32:1024"]
    assert gpurest("-q", *command).returncode == OK
    assert (job / "z.raw").read_bytes() == floats(2 * i + 1 for i in range(1024))


# ---- bad input ----


@pytest.mark.parametrize("name", ["../devices", "a b", "a?x=1", "a%2f", "", "a/b", "x" * 5000])
def test_names_of_sessions_are_checked_before_they_stand_in_a_path(gpurest, tmp_path, name):
    (tmp_path / "a").write_bytes(b"a")
    for command in (["buffers"], ["memory"], ["buf", "put", "a", "a"], ["buf", "fill", "a", "u8:1"], ["events", "--seconds", "1"], ["reset", "--yes"], ["disconnect"]):
        assert gpurest(*command, GPUREST_SESSION=name).returncode == USAGE, command
        assert gpurest(*command, "--session", name).returncode == USAGE, command


def test_times_that_are_none(bare):
    for seconds in ("0", "86401", "soon"):
        done = bare("status", "--timeout-s", seconds)
        assert done.returncode == USAGE and b"timeout-s" in done.stderr
    assert bare("wait", "--timeout", "3000", "--url", "ftp://x").returncode == FAILED  # and not only after that time
    done = bare("wait", "--timeout", "1", "--url", "http://127.0.0.1:1")
    assert done.returncode == UNREACHABLE and len(done.stderr.splitlines()) == 1


def test_the_version_is_told_without_a_service(bare):
    done = bare("--version")
    assert done.returncode == OK and done.stdout.startswith(b"gpurest ") and done.stderr == b""


def test_what_to_do_is_said_in_words_of_the_tool(gpurest, bare, tmp_path):
    """Errors name no function of the library, and no session that the user never made."""
    (tmp_path / "bad.cu").write_text('extern "C" __global__ void f(int *x) { x[1ll << 40] = 1; }')
    (tmp_path / "header.cu").write_text("#include <stdio.h>\n")
    (tmp_path / "broken.cu").write_text("int x = ;")
    shape = ["--grid", "1", "--block", "1"]
    failures = {"fault": gpurest("run", "bad.cu", "f", *shape, "--out", "x.raw:64"),
                "no session": gpurest("sessions", "get", "nothing-there"),
                "header": gpurest("run", "header.cu", "f", *shape),
                "compile": gpurest("run", "broken.cu", "f", *shape),
                "no service": bare("status", "--url", "http://127.0.0.1:1")}
    for name, done in failures.items():
        assert done.returncode != OK and b"gpurest_" not in done.stderr, (name, done.stderr)
    assert b"contents are gone" not in failures["fault"].stderr + failures["no session"].stderr
    assert b"printf" in failures["header"].stderr and b"printf" not in failures["compile"].stderr
    assert b"--url" in failures["no service"].stderr


def test_long_lists_are_shown_whole(gpurest):
    device = json.loads(gpurest("devices", "--json").stdout)["items"][0]
    shown = gpurest("devices", "get", device["id"]).stdout.decode()
    assert json.dumps(device["unsupported"], separators=(",", ":")) in shown


def test_the_nodes_of_a_fleet_are_listed(gpurest):
    """Of a service without a name and a router, itself; tests/service/test_scaleout.py has three."""
    told = json.loads(gpurest("nodes", "--json").stdout)
    assert (told["schema"], [(one["name"], one["state"]) for one in told["items"]]) == ("gpurest.nodes/1", [(None, "up")])
    assert gpurest("nodes").stdout.decode().splitlines()[0].split() == ["NODE", "STATE", "ENDPOINT"]
    assert gpurest("nodes", "more").returncode == USAGE
