"""docker/compose.yaml, started as its first line says, by docker-compose over podman's socket (`make image-test`). Tested here: the file is
accepted, the service answers at the published port and nowhere else, runs a kernel, and stops when told. Additions of the engine are not
tested."""
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DEADLINE_S = 60
PROJECT = "gpuresttest"
# An engine that may not raise its hard limits must be told the limits that it would set by itself.
OVERRIDE = """services:
  gpurest:
    ulimits:
      nproc: 4096
"""
PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry seven(.param .u64 out)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 7;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


@pytest.fixture(scope="module")
def image():
    name = os.environ.get("GPUREST_IMAGE")
    if not name:
        pytest.skip("GPUREST_IMAGE does not name an image: make image-test builds it")
    if not shutil.which("docker-compose"):
        pytest.skip("docker-compose is not installed")
    return name


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """The address of podman's socket."""
    path = tmp_path_factory.mktemp("engine") / "socket"
    service = subprocess.Popen(["podman", "system", "service", "--time=0", f"unix://{path}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + DEADLINE_S
    while not path.exists():
        assert service.poll() is None and time.monotonic() < until, "podman's service does not start"
        time.sleep(0.05)
    yield f"unix://{path}"
    service.terminate()
    service.wait()


@pytest.fixture(scope="module")
def compose(image, engine, tmp_path_factory):
    """(run, port) of the running service."""
    override = tmp_path_factory.mktemp("compose") / "override.yaml"
    override.write_text(OVERRIDE)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    tag = "composetest"
    subprocess.run(["podman", "tag", image, f"localhost/gpurest:{tag}"], check=True)
    variables = {**os.environ, "DOCKER_HOST": engine, "GPUREST_TAG": tag, "GPUREST_PORT": str(port)}

    def run(*arguments):
        command = ["docker-compose", "-p", PROJECT, "-f", str(ROOT / "docker/compose.yaml"), "-f", str(override), *arguments]
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=180)

    up = run("up", "-d")
    try:
        if up.returncode != 0 and ("iptables" in up.stderr or "cni" in up.stderr.lower() or "netavark" in up.stderr):
            pytest.skip("this machine gives containers no network of their own: " + up.stderr[-300:])
        assert up.returncode == 0, up.stderr
        yield run, port
    finally:
        run("down", "-t", "2")
        subprocess.run(["podman", "rmi", f"localhost/gpurest:{tag}"], capture_output=True)


def ask(port, method, path, body=None, content_type="application/json", host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=DEADLINE_S)
    try:
        connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, {"Content-Type": content_type} if body is not None else {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def ready(port):
    try:
        return ask(port, "GET", "/readyz")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_it_comes_up_computes_and_goes_down(compose):
    run, port = compose
    until = time.monotonic() + DEADLINE_S
    while not ready(port):
        assert time.monotonic() < until, run("logs").stdout[-2000:]
        time.sleep(0.1)
    assert [d["id"] for d in json.loads(ask(port, "GET", "/v1/devices")[1])["items"]] == ["cpu:0"]
    assert ask(port, "PUT", "/v1/sessions/s")[0] == 201
    assert ask(port, "PUT", "/v1/sessions/s/modules/m", PTX, "application/vnd.gpurest.ptx")[0] == 201
    assert ask(port, "PUT", "/v1/sessions/s/buffers/x", {"size": 4})[0] == 201
    launched = ask(port, "POST", "/v1/sessions/s/launches", {"module": "m", "kernel": "seven", "grid": [1], "block": [1], "args": [{"buf": "x"}]})
    assert launched[0] == 200, launched
    assert ask(port, "GET", "/v1/sessions/s/buffers/x/data") == (200, b"\7\0\0\0")
    stopped = run("stop", "-t", "40")
    assert stopped.returncode == 0, stopped.stderr
    with pytest.raises(OSError):
        ask(port, "GET", "/livez")


def test_it_is_published_on_this_machine_alone(compose):
    published = json.loads(subprocess.run(["podman", "ps", "-a", "--filter", f"label=com.docker.compose.project={PROJECT}", "--format", "json"],
                                          check=True, capture_output=True, text=True).stdout)
    assert [p["host_ip"] for one in published for p in one["Ports"]] == ["127.0.0.1"]
