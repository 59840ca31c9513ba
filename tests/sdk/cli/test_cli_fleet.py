"""nodes and top --fleet over a name with several addresses; tests/service/test_scaleout.py has them over routers."""
import json
import os
import shutil
import subprocess

import pytest

from fleet import free_ports
from service_under_test import Service

DEGRADED = 9
NAME = "fleet.test"


def in_namespace():
    """Whether this machine lets a process have an /etc/hosts of its own."""
    return os.geteuid() == 0 and shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture(params=["http", "https"])
def named(request, executable, tool, tmp_path):
    """named(*arguments) runs the tool where NAME has the addresses of n1, n2, and of nobody; with the services. Both have the same port."""
    if not in_namespace():
        pytest.skip("a name of its own needs root and unshare")
    (port,) = free_ports(1)
    options = ["--host", NAME]
    if request.param == "https":
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=fleet",
                        "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", "key.pem", "-out", "cert.pem"], cwd=tmp_path, check=True, capture_output=True)
        options += ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    (tmp_path / "hosts").write_text(f"127.0.0.2 {NAME}\n127.0.0.3 {NAME}\n127.0.0.4 {NAME}\n")
    services = []
    for number in (1, 2):
        (tmp_path / f"n{number}").mkdir()
        services.append(Service(executable, tmp_path / f"n{number}", "--node", f"n{number}", *options, listen=f"127.0.0.{number + 1}:{port}"))

    def run(*arguments):
        done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind hosts /etc/hosts && exec "$@"', "-", tool, *arguments], cwd=tmp_path,
                              capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "HOME": str(tmp_path), "GPUREST_URL": f"{request.param}://{NAME}:{port}", "GPUREST_CA_FILE":
                                   str(tmp_path / "cert.pem") if request.param == "https" else ""})
        return done

    run.services = services
    yield run
    for service in services:
        service.stop()


def test_a_name_with_several_addresses_is_a_fleet(named):
    (made,) = json.loads(named("nodes", "--json").stdout)["items"][:1]
    assert made["address"] == "127.0.0.2" and made["name"] == "n1"
    seen = named("top", "--fleet", "--json")
    item = json.loads(seen.stdout)["item"]
    assert [(one["name"], one["state"], one["devices"]) for one in item["nodes"]] == [("n1", "up", 1), ("n2", "up", 1), (None, "down", None)]
    assert [one["id"] for one in item["devices"]] == ["n1/cpu:0", "n2/cpu:0"]
    assert seen.returncode == DEGRADED, seen.stderr
    shown = named("top", "--fleet", "-1").stdout
    assert shown.startswith("gpurest top") and "n2/cpu:0" in shown and "SESSIONS" in shown


def test_of_one_service_it_is_the_picture_of_itself(gpurest, service):
    client = service.client()
    client.put("/v1/sessions/alone").expect(201)
    item = json.loads(gpurest("top", "--fleet", "--json").stdout)["item"]
    assert [(one["name"], one["state"]) for one in item["nodes"]] == [(None, "up")]
    assert ("alone", "cpu:0") in [(one["id"], one["device"]) for one in item["sessions"]]
    client.post("/v1/admin/drain").expect(200)
    try:
        drained = gpurest("top", "--fleet", "--json")
        (node,) = json.loads(drained.stdout)["item"]["nodes"]
        assert (drained.returncode, node["state"]) == (DEGRADED, "draining") and node["reason"]
    finally:
        client.post("/v1/admin/resume").expect(200)
        client.delete("/v1/sessions/alone").expect(204)
        client.close()
    assert gpurest("top", "--fleet", "more").returncode == 2
