"""Health, version, discovery, problem pages, devices, limits."""
import socket

import pytest

from service_under_test import until

VERSION_MEMBERS = {"server", "version", "api", "compiler", "backends"}


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/lbz"])
def test_health_answers_get_and_head(client, path):
    assert client.get(path).status == 200
    head = client.head(path)
    assert head.status == 200 and head.body == b""


def test_ready_in_detail(client):
    detail = client.get("/readyz?verbose=1").json()
    assert detail["ready"] is True and detail["draining"] is False
    assert detail["devices"][0]["state"] == "healthy"
    assert client.get("/readyz?verbose=maybe").code == "invalid_field"


def test_failures_of_the_last_minute(start):
    """What the service answers with 5xx by its own fault, and what is never answered; each may happen again when the machine was away for a minute."""
    service = start("--workers-max", "1")
    client = service.client()
    caused = []

    def failures():
        return client.get("/readyz?verbose=1").json()["failures_last_minute"]

    def cut():
        caused.append("a request")
        with socket.create_connection(("127.0.0.1", service.port)) as s:
            s.sendall(b"PUT /v1/sessions/s/buffers/b HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\nonly")

    assert client.get("/nowhere").status == 404 and client.put("/v1/sessions/s").status == 201 and failures() == 0

    def refused():
        caused.append("an answer")
        return client.put("/v1/sessions/another").code == "no_worker"

    until(lambda: (cut(), failures())[1], "a request that is cut off is not counted")
    before = failures()
    until(lambda: refused() and failures() > before, "an answer of 503 is not counted")
    assert client.delete("/v1/sessions/s").status == 204 and client.post("/v1/admin/drain", {"exit": False}).status == 200
    assert client.get("/readyz").status == 503 and client.put("/v1/sessions/s").status == 503
    # The service may notice the last of many cut requests only now.
    assert failures() <= len(caused), "a probe has its answer, and the operator wants it so"


def test_version_and_root(client):
    assert VERSION_MEMBERS <= set(client.get("/version").json())
    root = client.get("/").json()
    for path in root["links"].values():
        assert client.get(path.replace("{code}", "internal")).status == 200, path


def test_every_problem_type_has_its_page(client):
    type_of = client.get("/nowhere").json()["type"]
    page = client.get(type_of)
    assert page.status == 200 and b"404" in page.body
    assert client.get("/problems/no_such_code").code == "not_found"


def test_no_header_tells_a_version(client):
    answer = client.get("/livez")
    assert "Server" not in answer.headers
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in answer.headers["Cache-Control"]


def test_request_ids_are_echoed_or_made(client):
    assert client.get("/livez", X_Request_Id="abc-1.2_3").headers["X-Request-Id"] == "abc-1.2_3"
    made = client.get("/livez", X_Request_Id="not acceptable!").headers["X-Request-Id"]
    assert made and made != "not acceptable!"


def test_devices(client):
    listed = client.get("/v1/devices").json()
    assert listed["next_cursor"] is None and listed["items"]
    device = listed["items"][0]
    for member in ("id", "backend", "name", "uuid", "compute_capability", "state", "memory", "multiprocessors", "clock_khz", "memory_clock_khz",
                   "l2_cache_bytes", "warp_size", "max_threads_per_block", "max_shared_bytes_per_block", "unified_addressing",
                   "temperature_c", "power_w", "utilization_pct", "attributes", "unsupported"):
        assert member in device, member
    figures = [member for member in device if device[member] is None and member not in ("compiler", "ecc_uncorrected", "xid")]
    assert device["unavailable"].keys() == set(figures) and all(device["unavailable"].values())
    assert device["warp_size"] == 32 and 0 < device["memory"]["free_bytes"] <= device["memory"]["total_bytes"]
    same = client.get("/v1/devices/" + device["id"])
    assert same.status == 200 and same.json()["id"] == device["id"]
    assert client.get("/v1/devices/gpu:99").code == "device_not_found"


def test_device_pages(client):
    first = client.get("/v1/devices?limit=1").json()
    assert len(first["items"]) == 1
    for bad in ("limit=0", "limit=1001", "limit=x", "limit=1&limit=2", "cursor="):
        assert client.get("/v1/devices?" + bad).code == "invalid_field", bad
    assert client.get("/v1/devices?what=1").code == "unknown_field"
    assert client.get("/v1/devices?what=1", Prefer="handling=lenient").status == 200


def test_limits_count_use(client, session):
    limits = client.get("/v1/limits").json()["limits"]
    assert limits["sessions"]["used"] >= 1 and limits["sessions"]["max"] == 8
    assert limits["json_body_bytes"] == {"max": 1024 * 1024, "used": None}
    before = limits["caller_memory_bytes"]["used"]
    assert client.put(session + "/buffers/x", {"size": 12345}).status == 201
    assert client.get("/v1/limits").json()["limits"]["caller_memory_bytes"]["used"] == before + 12345


def test_unknown_paths_and_methods(client):
    for path in ("/nowhere", "/v1", "/v1/", "/v1/sessions/", "/v2/sessions", "/V1/sessions", "/v1//sessions", "/livez/"):
        assert client.get(path).code == "not_found", path
    wrong = client.request("DELETE", "/v1/sessions")
    assert wrong.code == "method_not_allowed"
    assert set(wrong.headers["Allow"].replace(",", " ").split()) == {"GET", "HEAD", "POST"}
    assert client.post("/livez").status in (405, 413)


def test_a_body_where_none_belongs(client, session):
    assert client.request("GET", session, b"{}", {"Content-Type": "application/json"}).status == 413
