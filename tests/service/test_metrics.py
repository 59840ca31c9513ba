"""/metrics: the contract's names, true values, bounded labels, and a format that Prometheus's own checker accepts."""
import hashlib
import json
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import floats
from kernels import FAULTS, launch, launch_vadd
from service_under_test import until
from test_batch_async import running

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\.)*)"')
NAMES = """http_server_request_duration_seconds http_server_active_requests http_server_request_body_size_bytes gpurest_problems_total
gpurest_sessions gpurest_hibernated_bytes gpurest_hibernations_total gpurest_moves_total gpurest_launches_total gpurest_queue_depth gpurest_launch_queue_seconds gpurest_launch_exec_seconds gpurest_workers
gpurest_worker_restarts_total gpurest_worker_start_seconds gpurest_worker_end_seconds gpurest_crash_budget_refusals_total gpurest_crash_budgets_spent_total
gpurest_fault_domains gpurest_fault_domain_falls_total gpurest_mps_servers gpurest_mps_server_starts_total gpurest_mps_server_losses_total
gpurest_crash_budget_callers gpurest_compile_seconds gpurest_compile_cache_total gpurest_transfer_bytes_total
gpurest_device_memory_bytes gpurest_device_state gpurest_device_recoveries_total gpurest_device_ecc_uncorrected
gpurest_device_temperature_celsius gpurest_device_power_watts gpurest_device_utilization_percent gpurest_device_fan_percent
gpurest_log_lines_dropped_total gpurest_ready gpurest_build_info gpurest_failures_total
gpurest_caller_device_seconds_total gpurest_caller_launches_total gpurest_caller_transfer_bytes_total
process_resident_memory_bytes process_open_fds process_max_fds process_start_time_seconds process_cpu_seconds_total""".split()
MONITORING = pathlib.Path(__file__).resolve().parents[2] / "docker" / "monitoring"


class Scrape:
    def __init__(self, client):
        answer = client.get("/metrics")
        assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        self.text = answer.body.decode()
        self.samples = {}
        for line in self.text.splitlines():
            if not line.startswith("#"):
                name, labels, value = SAMPLE.fullmatch(line).groups()
                key = name, frozenset(LABEL.findall(labels or ""))
                assert key not in self.samples, line
                self.samples[key] = float(value)

    def get(self, name, **labels):
        return self.samples.get((name, frozenset(labels.items())), 0.0)


@pytest.fixture
def own(start):
    """A service with only this test's figures."""
    return start().client()


def promtool(*arguments, **more):
    tool = shutil.which("promtool")
    if not tool:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    return subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=60, **more)


def test_every_family_of_the_contract_is_there(client):
    families = re.findall(r"^# TYPE (\S+) ", Scrape(client).text, re.M)
    assert sorted(families) == sorted(NAMES)


def test_prometheus_takes_the_text(client, vadd):
    assert client.post(vadd + "/launches", launch_vadd()).status == 200
    client.get("/nowhere")
    checked = promtool("check", "metrics", input=Scrape(client).text)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_requests_are_counted_by_route_and_never_by_id(own):
    for name in ("one", "two"):
        assert own.put(f"/v1/sessions/{name}").status == 201
        assert own.get(f"/v1/sessions/{name}/buffers/none").status == 404
    own.get("/no/such/path")
    scrape = Scrape(own)
    count = "http_server_request_duration_seconds_count"
    assert scrape.get(count, method="PUT", route="/v1/sessions/{sid}", status="2xx") == 2
    assert scrape.get(count, method="GET", route="/v1/sessions/{sid}/buffers/{bid}", status="4xx") == 2
    assert scrape.get(count, method="", route="", status="4xx") == 1
    assert scrape.get("gpurest_problems_total", code="buffer_not_found") == 2
    assert scrape.get("gpurest_problems_total", code="not_found") == 1
    assert scrape.get("http_server_active_requests") == 1, "the scrape itself"
    assert "two" not in scrape.text
    own.close()


def test_body_sizes_have_buckets(own):
    assert own.put("/v1/sessions/s").status == 201
    assert own.put_octets("/v1/sessions/s/buffers/a", bytes(5000)).status == 201
    scrape = Scrape(own)
    size = {"method": "PUT", "route": "/v1/sessions/{sid}/buffers/{bid}"}
    assert scrape.get("http_server_request_body_size_bytes_sum", **size) == 5000
    assert scrape.get("http_server_request_body_size_bytes_bucket", le="4096", **size) == 0
    assert scrape.get("http_server_request_body_size_bytes_bucket", le="16384", **size) == 1
    own.close()


def test_work_is_counted(own):
    s = "/v1/sessions/s"
    assert own.put(s).status == 201
    before = Scrape(own)
    assert before.get("gpurest_sessions", state="ready") == 1
    assert own.put_cuda(s + "/modules/m", FAULTS).status == 201
    for name in "abc":
        assert own.put_octets(f"{s}/buffers/{name}", floats(range(1024))).status == 201
    assert own.put_cuda(s + "/modules/v", 'extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n)'
                        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }").status == 201
    for _ in range(3):
        assert own.post(s + "/launches", launch_vadd(module="v")).status == 200
    assert len(own.get(s + "/buffers/c/data").body) == 4096
    trap = {"module": "m", "kernel": "trap", "grid": [1], "block": [1], "args": []}
    assert own.post(s + "/launches", trap).code == "kernel_fault"
    after = Scrape(own)
    assert after.get("gpurest_launches_total", outcome="succeeded") == 3
    assert after.get("gpurest_launches_total", outcome="failed") == 1
    assert after.get("gpurest_launch_exec_seconds_count") == 3 and after.get("gpurest_launch_exec_seconds_sum") > 0
    assert after.get("gpurest_launch_queue_seconds_count") == 4
    assert after.get("gpurest_compile_seconds_count") == after.get("gpurest_compile_cache_total", result="miss") == 2
    assert after.get("gpurest_compile_cache_total", result="hit") == 0
    assert after.get("gpurest_transfer_bytes_total", direction="to_device") == 3 * 4096
    assert after.get("gpurest_transfer_bytes_total", direction="from_device") == 4096
    assert after.get("gpurest_worker_restarts_total", reason="kernel_fault") == 1
    assert after.get("gpurest_sessions", state="faulted") == 1 and after.get("gpurest_sessions", state="ready") == 0
    assert after.get("gpurest_problems_total", code="kernel_fault") == 1
    own.close()


def test_what_waits_is_counted(own):
    """An endless kernel holds up the launches behind it, an endless batch the batches of its session."""
    s = "/v1/sessions/s"
    own.put(s).expect(201)
    own.put_cuda(s + "/modules/m", FAULTS).expect(201)
    own.put_octets(s + "/buffers/x", bytes(4096)).expect(201)
    assert Scrape(own).get("gpurest_queue_depth", kind="launch") == 0
    for _ in range(4):
        own.post(s + "/launches", launch("endless", {"buf": "x"}, module="m", timeout_ms=600000), Prefer="respond-async").expect(202)
    until(lambda: Scrape(own).get("gpurest_queue_depth", kind="launch") == 3)
    begun = own.put("/v1/sessions/b").expect(201) and running(own, "/v1/sessions/b/batches")
    for _ in range(2):
        own.post("/v1/sessions/b/batches", {"ops": []}, Prefer="respond-async").expect(202)
    assert own.get(begun).json()["state"] == "running" and Scrape(own).get("gpurest_queue_depth", kind="batch") == 2
    own.delete("/v1/sessions/b").expect(204)
    own.delete(s).expect(204)
    after = Scrape(own)
    assert after.get("gpurest_queue_depth", kind="launch") == after.get("gpurest_queue_depth", kind="batch") == 0
    own.close()


def test_batches_are_counted_too(own):
    source = 'extern "C" __global__ void put(int *p) { p[threadIdx.x] = 7; }'
    batch = {"module": {"source": source}, "ops": [
        {"op": "alloc", "as": "$p", "size": 128}, {"op": "launch", "kernel": "put", "grid": [1], "block": [32], "args": [{"buf": "$p"}]},
        {"op": "read", "from": "$p", "segment": "out"}]}
    assert own.post("/v1/run", batch).status == 200
    after = Scrape(own)
    assert after.get("gpurest_launches_total", outcome="succeeded") == 1
    assert after.get("gpurest_launch_exec_seconds_count") == 1
    assert after.get("gpurest_transfer_bytes_total", direction="from_device") == 128
    own.close()


def test_a_cached_compilation_is_a_hit(own):
    for name in ("one", "two"):
        assert own.put(f"/v1/sessions/{name}").status == 201
        assert own.put_cuda(f"/v1/sessions/{name}/modules/m", FAULTS).status == 201
    scrape = Scrape(own)
    assert scrape.get("gpurest_compile_cache_total", result="hit") == scrape.get("gpurest_compile_cache_total", result="miss") == 1
    own.close()


def test_devices_and_build(client):
    scrape = Scrape(client)
    device = client.get("/v1/devices").json()["items"][0]
    assert scrape.get("gpurest_device_memory_bytes", device=device["id"], kind="total") == device["memory"]["total_bytes"]
    assert 0 < scrape.get("gpurest_device_memory_bytes", device=device["id"], kind="free") <= device["memory"]["total_bytes"]
    assert scrape.get("gpurest_ready") == 1
    version = client.get("/version").json()
    assert scrape.get("gpurest_build_info", version=version["version"], compiler=version["compiler"]) == 1


def test_usage_of_a_session_is_true(client, vadd):
    assert client.get(vadd).json()["usage"] == {"device_time_us": 0, "memory_bytes": 3 * 4096, "buffers": 3, "modules": 1, "launches": 0, "launches_finished": 0}
    total = 0.0
    for _ in range(5):
        answer = client.post(vadd + "/launches", launch_vadd())
        assert answer.status == 200
        total += answer.json()["gpu_us"]
    usage = client.get(vadd).json()["usage"]
    assert usage["launches"] == 5 and abs(usage["device_time_us"] - total) <= 1
    assert client.delete(vadd + "/buffers/a").status == 204
    assert client.get(vadd).json()["usage"]["memory_bytes"] == 2 * 4096


def test_the_scope_is_needed(start, tmp_path):
    rows = [{"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "scopes": [scope]} for name, scope in (("m", "metrics"), ("r", "read"))]
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"tokens": rows}))
    path.chmod(0o600)
    service = start("--tokens", str(path))
    for headers, status in ({}, 401), ({"Authorization": "Bearer r"}, 403), ({"Authorization": "Bearer m"}, 200):
        client = service.client(**headers)
        assert client.get("/metrics").status == status
        client.close()
