"""The bundle, unpacked into an empty folder and started with an empty environment. GPUREST_BUNDLE names the archive (target `bundle`)."""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import pytest

DEADLINE_S = 60
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    archive = os.environ.get("GPUREST_BUNDLE")
    if not archive:
        pytest.skip("GPUREST_BUNDLE does not name a bundle: cmake --build BUILD --target bundle makes one")
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        assert all(not n.startswith("/") and ".." not in pathlib.PurePath(n).parts for n in names)
        tar.extractall(folder)
    (top,) = folder.iterdir()
    return top


class Running:
    def __init__(self, program, folder, environment, backends="cpu"):
        ports = folder / "ports"
        arguments = ["--listen=127.0.0.1:0", f"--backends={backends}", "--cache=none", "--drain-timeout=0", f"--port-file={ports}"]
        self.process = subprocess.Popen([program, *arguments], env=environment, cwd="/", stdin=subprocess.DEVNULL, stderr=(folder / "log").open("w"))
        give_up = time.monotonic() + DEADLINE_S
        while not ports.exists() or not ports.read_text().endswith("\n"):
            assert self.process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < give_up, (folder / "log").read_text()
            time.sleep(0.05)
        self.port = int(ports.read_text().split()[0].rsplit(":", 1)[1])

    def request(self, method, path, body=None, content_type="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        connection.request(method, path, body, {"Content-Type": content_type} if body else {})
        response = connection.getresponse()
        answer = response.status, json.loads(response.read() or b"null")
        connection.close()
        return answer

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@pytest.fixture
def run_bundled(tmp_path):
    running = []

    def run(program, environment, **more):
        running.append(Running(program, tmp_path, environment, **more))
        return running[-1]

    yield run
    for one in running:
        one.stop()


def children(pid):
    """Skips threads that end during the search."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            found += [int(p) for p in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def mapped(pid):
    """The shared libraries of a process; none if it has ended."""
    try:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return {pathlib.Path(p) for p in re.findall(r"(/\S+\.so[.\d]*)$", maps, re.M)}


def started(pid, service):
    """Waits for the libraries of a process: it has none until its loader has finished, nor when it has ended."""
    deadline = time.monotonic() + 60
    while not any(p.name.startswith("libmicrohttpd.so") for p in mapped(pid)):
        if pid not in [service, *children(service)]:
            return set()
        assert time.monotonic() < deadline, mapped(pid)
        time.sleep(0.02)
    return mapped(pid)


def test_it_serves_with_an_empty_environment(bundle, run_bundled):
    service = run_bundled(bundle / "bin" / "gpurestd", {})
    status, version = service.request("GET", "/version")
    assert status == 200
    assert bundle.name == f"gpurest-{version['version']}"
    assert service.request("PUT", "/v1/sessions/bundled")[0] == 201
    assert service.request("DELETE", "/v1/sessions/bundled")[0] == 204
    assert service.stop() == 0


def test_it_runs_programs_for_cuda(bundle):
    """On a service of their own; what they inherit has none of the bundle's libraries but the CUDA driver's."""
    code = ("import ctypes, os; d = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); "
            "print(d.cuInit(0), d.cuDeviceGetCount(ctypes.byref(n)), n.value, os.environ['LD_LIBRARY_PATH'])")
    done = subprocess.run([bundle / "bin" / "gpurest", "exec", "--local", "--device", "cpu:0", "--", sys.executable, "-c", code], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0 and done.stdout == f"0 0 1 {bundle}/lib/gpurest\n", (done.stdout, done.stderr)


def test_front_end_and_workers_use_the_bundles_libraries(bundle, run_bundled):
    service = run_bundled(bundle / "bin" / "gpurestd", {})
    assert service.request("PUT", "/v1/sessions/bundled")[0] == 201
    workers = children(service.process.pid)
    assert workers
    bundled = {p.name for p in (bundle / "lib").iterdir()}
    found = [libraries for pid in [service.process.pid, *workers] if (libraries := started(pid, service.process.pid))]
    assert len(found) > 1
    for libraries in found:
        elsewhere = [p for p in libraries if p.name in bundled and p.parent != bundle / "lib"]
        assert not elsewhere


def test_its_compiler_of_shaders_is_found(bundle, run_bundled):
    if not (bundle / "lib/libgpurest_shaders.so").exists():
        pytest.skip("the bundle was built without a compiler of shaders: libshaderc-dev, glslang-dev, spirv-tools")
    if not any(list(pathlib.Path(folder).glob("vulkan/icd.d/*.json")) for folder in ("/usr/share", "/etc")):
        pytest.skip("no Vulkan driver is here")
    service = run_bundled(bundle / "bin" / "gpurestd", {}, backends="vulkan,cpu")
    assert service.request("PUT", "/v1/sessions/shades", '{"device": "vulkan:0"}')[0] == 201
    status, module = service.request("PUT", "/v1/sessions/shades/modules/m", "#version 450\nvoid main() {}\n", "text/x-glsl")
    assert status == 201 and module["kernels"][0]["name"] == "main", module


def test_what_the_operator_names_comes_first(bundle, run_bundled, tmp_path):
    service = run_bundled(bundle / "bin" / "gpurestd", {"LD_LIBRARY_PATH": str(tmp_path)})
    variables = pathlib.Path(f"/proc/{service.process.pid}/environ").read_bytes().decode().split("\0")
    assert f"LD_LIBRARY_PATH={tmp_path}:{bundle}/lib" in variables


def test_a_link_from_elsewhere_works(bundle, tmp_path):
    link = tmp_path / "gpurestd"
    link.symlink_to(bundle / "bin" / "gpurestd")
    got = subprocess.run([link, "--version"], env={}, capture_output=True, text=True, timeout=DEADLINE_S)
    assert (got.returncode, got.stdout.split()[0], got.stderr) == (0, "gpurestd", "")


def test_the_command_line_tool_reaches_the_service(bundle, run_bundled):
    tool = bundle / "bin" / "gpurest"
    if not tool.exists():
        pytest.skip("the bundle was built without the command line tool")
    service = run_bundled(bundle / "bin" / "gpurestd", {})
    got = subprocess.run([tool, "--url", f"http://127.0.0.1:{service.port}", "--json", "devices"], env={}, capture_output=True, text=True, timeout=DEADLINE_S)
    assert got.returncode == 0, got.stderr
    assert "cpu:0" in got.stdout


def test_it_holds_nothing_of_the_c_library(bundle):
    names = [p.name for p in (bundle / "lib").iterdir() if p.is_file()]
    assert not [n for n in names if re.match(r"(ld-linux|lib(c|m|pthread|dl|rt|resolv))[.-]", n)]
    assert not [n for n in names if n.startswith(("libcuda", "libnvrtc", "libnvidia"))], "NVIDIA's are under terms of their own"


def test_all_that_is_needed_is_there(bundle):
    """Libraries that a machine with only a C library does not have."""
    if not shutil.which("readelf"):
        pytest.skip("readelf is not installed")
    missing = []
    beside = bundle / "lib"  # and in a library's own folder, where it says that it looks there
    for file in [*(bundle / "libexec").iterdir(), *(path for path in (bundle / "lib").rglob("*") if path.is_file())]:
        listed = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True, timeout=DEADLINE_S).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", listed)
        assert needed, file
        assert "libstdc++.so.6" not in needed, "the bundle's would take the place of the one that drivers of the machine need"
        missing += [(file.name, n) for n in needed if not (beside / n).exists() and not ("$ORIGIN]" in listed and (file.parent / n).exists()) and not re.match(r"(ld-linux|lib(c|m|pthread|dl|rt|resolv)\.)", n)]
    assert not missing


def test_it_says_what_it_is(bundle):
    assert re.search(r"glibc 2\.\d+ or newer", (bundle / "README").read_text())
    assert "Apache License" in (bundle / "LICENSE").read_text()
    assert (bundle / "share/man/man8/gpurestd.8").read_text().startswith(".TH GPURESTD 8")
    assert (bundle / "bin/gpurest").exists() == (bundle / "share/man/man1/gpurest.1").exists()
    assert (bundle / "share/systemd/gpurestd.service").is_file()


def test_what_an_operator_sees_under_load(bundle):
    """The script for a GPU, run briefly: metrics, the dashboard's sources, changes and the tool agree with the load."""
    if not os.environ.get("GPUREST_NVRTC") or not (bundle / "bin" / "gpurest").exists():
        pytest.skip("needs GPUREST_NVRTC, and a bundle with the command line tool")
    script = ROOT / "tests" / "bench" / "bundle_load.py"
    done = subprocess.run([sys.executable, script, os.environ["GPUREST_BUNDLE"], "--backend=cpu", "--seconds=2"], capture_output=True, text=True,
                          timeout=3 * DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all sources answered and agree" in done.stdout
    for shown in ('gpurest_launches_total{outcome="succeeded"}', "load-launches ready", "load-batches ready", "$ gpurest top --once   # exit status 0"):
        assert shown in done.stdout
