"""libnvidia-ml.so.1: what tools read of devices, of the service and of one that answers with known figures."""
import ctypes
import http.server
import importlib.util
import json
import os
import subprocess
import sys
import threading

import pytest

from conftest import ROOT, named_by

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_SIZE, NOT_LOADED, LOST = 0, 1, 2, 3, 6, 7, 9, 15
VERSION = {"server": "gpurestd", "version": "1.0.0", "instance": "i", "api": {"least": "v1", "most": "v1"}, "compiler": None, "backends": []}
GPU = {"id": "cuda:0", "name": "NVIDIA Test", "uuid": "GPU-00112233-4455-6677-8899-aabbccddeeff", "memory": {"total_bytes": 1 << 40, "free_bytes": 1 << 39},
       "clock_khz": 1980000, "memory_clock_khz": 2619000, "clock_max_khz": 2100000, "memory_clock_max_khz": None, "temperature_c": 41, "temperature_max_c": 87, "power_w": 117,
       "power_limit_w": 700, "power_limit_min_w": 200, "power_limit_max_w": 700, "performance_state": 0, "fan_pct": None, "utilization_pct": 93, "memory_utilization_pct": 7,
       "encoder_utilization_pct": 1, "decoder_utilization_pct": 2, "pcie_generation": 5, "pcie_generation_max": 5, "pcie_width": 16, "pcie_width_max": 16, "ecc_uncorrected": 3,
       "settings": {"persistence_mode": True},
       "attributes": {"compute_capability_major": 9, "compute_capability_minor": 0, "pci_domain_id": 1, "pci_bus_id": 0xAB, "pci_device_id": 2, "global_memory_bus_width": 5120}}


def run(library, url, code, **environment):
    """What a program prints that has the library as n; call(name, *arguments) is a result, and out(name, *arguments) that and a number."""
    head = (f"import ctypes\nfrom ctypes import *\nn = CDLL({str(library.with_name('libnvidia-ml.so.1'))!r})\n"
            "def call(name, *a): return getattr(n, name)(*a)\n"
            "def out(name, *a):\n    v = c_uint(77)\n    return call(name, *a, byref(v)), v.value\n"
            "def handle(i=0):\n    h = c_void_p()\n    assert call('nvmlDeviceGetHandleByIndex_v2', i, byref(h)) == 0\n    return h\n")
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "LD_PRELOAD")}
    done = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, timeout=120, env={**kept, "GPUREST_URL": url, **environment})
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def known_devices():
    """known_devices.items: what a service answers; .url."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = json.dumps(VERSION if self.path == "/version" else {"items": server.items}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.items, server.url = [GPU], f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_only_names_of_nvml_are_visible(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library.with_name("libnvidia-ml.so.1")], capture_output=True, text=True, check=True).stdout
    visible = {line.split()[-1] for line in listed.splitlines()}
    assert all(name.startswith("nvml") for name in visible) and len(visible) >= 50
    header = ROOT / "docs" / "howto" / "cuda-programs.md"
    assert "libnvidia-ml.so.1" in header.read_text()


def test_figures(library, known_devices):
    done = run(library, known_devices.url, """
print(call("nvmlInit_v2"), out("nvmlDeviceGetCount_v2"))
h = handle()
text = create_string_buffer(96)
print(call("nvmlDeviceGetName", h, text, 96), text.value, call("nvmlDeviceGetUUID", h, text, 96), text.value, call("nvmlDeviceGetUUID", h, text, 8))
print([out(name, h) for name in ("nvmlDeviceGetPowerUsage", "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetFanSpeed", "nvmlDeviceGetPerformanceState",
      "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetPersistenceMode", "nvmlDeviceGetMemoryBusWidth", "nvmlDeviceGetArchitecture", "nvmlDeviceGetIndex")])
print([out("nvmlDeviceGetClockInfo", h, kind) for kind in (0, 1, 2, 3, 4)], [out("nvmlDeviceGetMaxClockInfo", h, kind) for kind in (0, 2)])
print(out("nvmlDeviceGetTemperature", h, 0), out("nvmlDeviceGetTemperatureThreshold", h, 1), out("nvmlDeviceGetTemperatureThreshold", h, 0))
memory, rates, capability = (c_ulonglong * 3)(), (c_uint * 2)(), (c_int * 2)()
print(call("nvmlDeviceGetMemoryInfo", h, memory), list(memory), call("nvmlDeviceGetUtilizationRates", h, rates), list(rates))
print(call("nvmlDeviceGetCudaComputeCapability", h, byref(capability), byref(capability, 4)), list(capability))
errors = c_ulonglong()
print(call("nvmlDeviceGetTotalEccErrors", h, 1, 0, byref(errors)), errors.value, call("nvmlDeviceGetTotalEccErrors", h, 0, 0, byref(errors)))
pci = create_string_buffer(68)
print(call("nvmlDeviceGetPciInfo_v3", h, pci), pci.raw[:12], pci.raw[36:52])
found = c_void_p()
print(call("nvmlDeviceGetHandleByUUID", b"GPU-00112233-4455-6677-8899-aabbccddeeff", byref(found)), found.value == h.value,
      call("nvmlDeviceGetHandleByUUID", b"GPU-0", byref(found)), call("nvmlDeviceGetHandleByPciBusId_v2", b"0001:ab:02.0", byref(found)),
      call("nvmlDeviceGetHandleByPciBusId", b"0:0:0", byref(found)), call("nvmlDeviceGetHandleByPciBusId", b"x", byref(found)))
print(call("nvmlDeviceGetHandleByIndex", 1, byref(found)), out("nvmlDeviceGetPowerUsage", c_void_p(8)), call("nvmlDeviceGetName", h, None, 9),
      out("nvmlDeviceGetComputeRunningProcesses_v3", h)[0] if 0 else call("nvmlDeviceGetComputeRunningProcesses_v3", h, byref(c_uint()), None))
print(call("nvmlShutdown"), call("nvmlShutdown"), out("nvmlDeviceGetCount_v2")[0])
""").stdout.splitlines()
    assert done == [
        "0 (0, 1)", "0 b'NVIDIA Test' 0 b'GPU-00112233-4455-6677-8899-aabbccddeeff' 7",
        "[(0, 117000), (0, 700000), (3, 77), (0, 0), (0, 5), (0, 16), (0, 1), (0, 5120), (0, 9), (0, 0)]",
        "[(0, 1980), (0, 1980), (0, 2619), (3, 77), (2, 77)] [(0, 2100), (3, 77)]", "(0, 41) (0, 87) (3, 77)",
        f"0 [{1 << 40}, {1 << 39}, {1 << 39}] 0 [93, 7]", "0 [9, 0]", "0 3 3", "0 b'0001:AB:02.0' b'00000001:AB:02.0'", "0 True 6 0 6 2", "2 (2, 77) 2 3", "0 1 1"]


def test_devices_that_come_and_go(library, known_devices):
    """A handle stays its device's; one that is gone says so; every figure is of an answer that is at most 100 ms old."""
    known_devices.items = [GPU, {**GPU, "id": "cuda:1", "power_w": 5}]
    program = subprocess.Popen([sys.executable, "-c", f"""
from ctypes import *
n = CDLL({str(library.with_name('libnvidia-ml.so.1'))!r})
h, v = c_void_p(), c_uint()
assert n.nvmlInit_v2() == 0 and n.nvmlDeviceGetHandleByIndex_v2(1, byref(h)) == 0
while True:
    print(n.nvmlDeviceGetPowerUsage(h, byref(v)), v.value, flush=True)
    input()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "GPUREST_URL": known_devices.url})

    def until(wanted):
        for line in program.stdout:
            if line.strip() == wanted:
                return
            program.stdin.write("\n")
            program.stdin.flush()
        raise AssertionError(f"the program ends before it says {wanted}")

    until("0 5000")
    known_devices.items = [GPU]
    program.stdin.write("\n")
    program.stdin.flush()
    until(f"{LOST} 5000")
    known_devices.items = [{**GPU, "id": "cuda:1", "power_w": 6}, GPU]
    program.stdin.write("\n")
    program.stdin.flush()
    until("0 6000")
    program.kill()
    program.communicate()


def test_without_a_service(library, tmp_path):
    done = run(library, f"unix://{tmp_path}/nobody", "print(call('nvmlInit_v2'), out('nvmlDeviceGetCount_v2')[0]); n.nvmlErrorString.restype = c_char_p; print(n.nvmlErrorString(9))")
    assert done.stdout.startswith(f"{NOT_LOADED} {UNINITIALIZED}\n") and b"reached" in eval(done.stdout.splitlines()[1])
    assert done.stderr.count("GPUREST_URL names the service") == 1


def test_the_structs_have_nvmls_form():
    """Sizes as in NVIDIA's own binding, where it is installed."""
    if not importlib.util.find_spec("pynvml"):
        pytest.skip("nvidia-ml-py is not installed: pip install -r tests/requirements.txt")
    import pynvml
    assert [ctypes.sizeof(getattr(pynvml, name)) for name in ("nvmlPciInfo_t", "c_nvmlMemory_t", "c_nvmlMemory_v2_t", "c_nvmlUtilization_t")] == [68, 24, 40, 8]


def test_pynvml_with_a_cpu_device(url):
    if not importlib.util.find_spec("pynvml"):
        pytest.skip("nvidia-ml-py is not installed: pip install -r tests/requirements.txt")
    code = """
import pynvml as p
p.nvmlInit()
h = p.nvmlDeviceGetHandleByIndex(0)
memory = p.nvmlDeviceGetMemoryInfo(h)
assert p.nvmlDeviceGetName(h) and memory.total >= memory.used > 0 or memory.total > 0
p.nvmlDeviceGetMemoryInfo(h, p.nvmlMemory_v2)
p.nvmlDeviceGetPciInfo(h)
try:
    p.nvmlDeviceGetPowerUsage(h)
except p.NVMLError_NotSupported:
    print("N/A")
p.nvmlShutdown()
"""
    done = subprocess.run([named_by("GPUREST_CLI", "gpurest to test"), "exec", "--", sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "GPUREST_URL": url, "GPUREST_DEVICE": "cpu:0"})
    assert (done.returncode, done.stdout) == (0, "N/A\n"), done.stderr
