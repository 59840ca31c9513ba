"""Runs the images of docker/Dockerfile: the promises of docker/README.md. GPUREST_IMAGE, …_CPU, …_CPU_SMALL and …_VULKAN name them, in podman's
store (`make image-test` builds them and sets these). test_docker_files.py checks the files alone."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "sdk" / "shim"
sys.path.append(str(PROGRAMS))

import fatbins  # noqa: E402

DEADLINE_S = 60
SIZES_MAX_MB = {"image": 250, "image_cpu": 130, "image_cpu_small": 86, "image_vulkan": 600}  # Mesa's drivers bring a whole LLVM
# As in docker/compose.yaml.
STRICT = ["--read-only", "--tmpfs=/tmp:rw,noexec,nosuid,size=64m", "--cap-drop=all", "--security-opt=no-new-privileges"]
# Runs for a given time, not a number of turns, so that it is seen running on a slow machine, too.
SPIN = """extern "C" __global__ void spin(unsigned long long *out, unsigned long long nanoseconds)
{
    unsigned long long now, begin;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - begin < nanoseconds);
    out[0] = now - begin;
}"""
SPIN_S = (10, 25)  # less than the longest drain
VADD = """#include <cuda_fp16.h>
extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + __half2float(__float2half(b[i]));
}"""


COUNT_PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""
DOUBLE = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
void main() { x[gl_GlobalInvocationID.x] *= 2; }
"""


def podman(*arguments, check=True):
    got = subprocess.run(["podman", *arguments], capture_output=True, text=True, timeout=120)
    assert not check or got.returncode == 0, got.stderr
    return got if not check else got.stdout.strip()


def image_named(variable):
    name = os.environ.get(variable)
    if not name:
        pytest.skip(f"{variable} does not name an image: make image-test builds them")
    return name


@pytest.fixture(scope="module")
def image():
    return image_named("GPUREST_IMAGE")


@pytest.fixture(scope="module")
def image_cpu():
    return image_named("GPUREST_IMAGE_CPU")


@pytest.fixture(scope="module")
def image_cpu_small():
    return image_named("GPUREST_IMAGE_CPU_SMALL")


@pytest.fixture(scope="module")
def image_vulkan():
    return image_named("GPUREST_IMAGE_VULKAN")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Container:
    def __init__(self, image, *options, **environment):
        self.port = free_port()
        environment = {"GPUREST_LISTEN": f":{self.port}", **environment}
        variables = [f"--env={name}={value}" for name, value in environment.items()]
        begin = time.monotonic()
        self.id = podman("run", "-d", "--no-healthcheck", *variables, *options, image)
        try:
            self.pid = int(podman("inspect", "--format", "{{.State.Pid}}", self.id))
            while not self.ready():
                assert time.monotonic() - begin < DEADLINE_S and pathlib.Path(f"/proc/{self.pid}").exists(), podman("logs", self.id, check=False)
                time.sleep(0.02)
        except BaseException:
            self.remove()
            raise
        self.start_s = time.monotonic() - begin

    def ready(self):
        try:
            return self.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def request(self, method, path, body=None, content_type="application/json", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        headers |= {"Content-Type": content_type} if body is not None else {}
        connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers)
        response = connection.getresponse()
        answer = response.status, response.read()
        connection.close()
        return answer

    def run(self, *command):
        return podman("exec", self.id, *command, check=False)

    def exit_code(self):
        return int(podman("inspect", "--format", "{{.State.ExitCode}}", self.id))

    def remove(self):
        podman("rm", "-f", "-t", "0", self.id, check=False)


@pytest.fixture
def start():
    running = []

    def start_one(*arguments, **environment):
        running.append(Container(*arguments, **environment))
        return running[-1]

    yield start_one
    for one in running:
        one.remove()


@pytest.fixture(scope="module")
def strict(image):
    one = Container(image, *STRICT)
    yield one
    one.remove()


def status_of(pid):
    """The process's status, or None when it has ended meanwhile."""
    try:
        return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    except (FileNotFoundError, ProcessLookupError):
        return None


def below(pid):
    """Process ids of the container in this machine's numbering; processes that end meanwhile are skipped."""
    try:
        children = [child for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return
    for child in children:
        yield int(child)
        yield from below(int(child))


def wait_until(what):
    give_up = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < give_up, "it did not come to that in time"
        time.sleep(0.05)


def workers_of(container):
    found = []
    for pid in below(container.pid):
        try:
            if "--role=worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                found.append(pid)
        except OSError:
            continue
    return found


# ---- contents of the images ----

@pytest.mark.parametrize("which", SIZES_MAX_MB)
def test_it_is_small(which, request):
    size = int(podman("inspect", "--type=image", "--format", "{{.Size}}", request.getfixturevalue(which)))
    print(f"{which}: {size / 1e6:.1f} MB")
    assert 0 < size < SIZES_MAX_MB[which] * 1000 * 1000


@pytest.mark.parametrize("which", SIZES_MAX_MB)
def test_it_says_what_it_is_and_how_it_is_run(which, request):
    config = json.loads(podman("inspect", "--type=image", request.getfixturevalue(which)))[0]
    labels = config["Labels"]
    for name in ("title", "version", "revision", "created", "licenses", "description"):
        assert labels["org.opencontainers.image." + name]
    assert labels["org.opencontainers.image.version"] != "0.0.0"
    run = config["Config"]
    assert run["User"] == "10001:10001"
    assert run["StopSignal"] == "SIGTERM"
    assert run["Entrypoint"] == ["/usr/local/bin/gpurestd"]
    assert "8080/tcp" in run["ExposedPorts"]
    assert config["Healthcheck"]["Test"] == ["CMD", "/usr/local/bin/gpurestd", "healthcheck"]
    assert not any(variable.startswith("NVIDIA_VISIBLE_DEVICES=") for variable in run["Env"])


CLIENT = {"gpurest", "libcuda.so.1", "libcudart.so.13", "libnvidia-ml.so.1"}  # the command line, and the libraries of its exec
LIBRARIES = "/usr/local/lib/gpurest"


def found(image, *names):
    """The files of these names in the image."""
    tests = [word for name in names for word in ("-o", "-name", name)][1:]
    return set(podman("run", "--rm", "--entrypoint=/usr/bin/find", image, "/usr", "/opt", "/lib", *tests).split())


def test_nvidias_driver_is_not_in_it_and_nvidias_licence_is(image, image_cpu, image_cpu_small):
    ours = {f"{LIBRARIES}/{name}" for name in CLIENT - {"gpurest"}}
    listed = found(image, "libcuda*", "libnvidia*", "NVIDIA-EULA.txt", "libnvrtc*") - ours
    names = sorted({pathlib.PurePath(path).name for path in listed})
    assert names == ["NVIDIA-EULA.txt", *[n for n in names if n.startswith("libnvrtc-builtins.so.13.")], "libnvrtc.so.13"]
    assert "/opt/nvrtc/NVIDIA-EULA.txt" in listed
    assert found(image_cpu, "libcuda*", "libnv*") == ours
    assert found(image_cpu_small, "libcuda*", "libnv*", "gpurest") == {"/usr/share/gpurest", "/usr/share/doc/gpurest"}


LLVM = {"libgpurest_llvm.so", "llvm-14-dev"}


def test_its_bill_of_materials_is_what_is_installed(image, image_cpu, image_cpu_small, image_vulkan):
    for one, extra in ((image, {"libnvrtc.so.13", "nvidia-cuda-nvrtc", *LLVM, *CLIENT}), (image_cpu, LLVM | CLIENT), (image_cpu_small, set()),
                       (image_vulkan, {"libgpurest_shaders.so", "libshaderc-dev"})):
        bill = json.loads(podman("run", "--rm", "--entrypoint=/bin/cat", one, "/usr/share/gpurest/sbom.spdx.json"))
        told = {(p["name"], p["versionInfo"]) for p in bill["packages"] if p["SPDXID"].startswith("SPDXRef-deb-")}
        asked = podman("run", "--rm", "--entrypoint=/usr/bin/dpkg-query", one, "-W", "-f", "${Package} ${Version}\\n")
        assert told == {tuple(line.split()) for line in asked.splitlines()}
        assert {"gpurestd", *extra} <= {p["name"] for p in bill["packages"]}
        (digest,) = [p["checksums"][0]["checksumValue"] for p in bill["packages"] if p["SPDXID"] == "SPDXRef-program-gpurestd"]
        assert podman("run", "--rm", "--entrypoint=/usr/bin/sha256sum", one, "/usr/local/bin/gpurestd").split()[0] == digest


# ---- running ----

def test_the_smallest_command_line_serves(start, image_cpu):
    service = start(image_cpu)
    print(f"image_cpu: ready {service.start_s:.2f} s after podman run began")
    status, devices = service.request("GET", "/v1/devices")
    assert status == 200
    assert [d["id"] for d in json.loads(devices)["items"]] == ["cpu:0"]


@pytest.mark.parametrize("which,engine", [("image_cpu", "llvm"), ("image_cpu_small", "interpreter")])
def test_kernels_are_compiled_where_the_image_has_llvm(start, which, engine, request):
    service = start(request.getfixturevalue(which), *STRICT, GPUREST_CPU_JIT="eager")
    session = "/v1/sessions/compiled"
    assert service.request("PUT", session)[0] == 201
    assert service.request("PUT", f"{session}/buffers/out", {"size": 128})[0] == 201
    assert service.request("PUT", f"{session}/modules/m", COUNT_PTX, "application/vnd.gpurest.ptx")[0] == 201
    launch = {"module": "m", "kernel": "count", "grid": [1], "block": [32], "args": [{"buf": "out"}]}
    assert service.request("POST", f"{session}/launches", launch)[0] == 200
    assert struct.unpack("<32I", service.request("GET", f"{session}/buffers/out/data")[1]) == tuple(range(32))
    (kernel,) = json.loads(service.request("GET", f"{session}/modules/m")[1])["kernels"]
    if "AVX2" in kernel["engine_reason"]:
        pytest.skip(kernel["engine_reason"])
    assert kernel["engine"] == engine and ("libgpurest_llvm.so" in kernel["engine_reason"]) == (engine == "interpreter"), kernel


def test_process_one_is_ours_and_has_no_privileges(strict):
    print(f"image: ready {strict.start_s:.2f} s after podman run began")
    first = status_of(strict.pid)
    assert first["NSpid"].split()[-1] == "1" and first["Name"] == "gpurestd"
    living = {pid: status for pid in [strict.pid, *below(strict.pid)] if (status := status_of(pid))}
    assert strict.pid in living
    for pid, status in living.items():
        assert set(status["Uid"].split()) == {"10001"}, pid
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"


def test_its_files_cannot_be_changed(strict):
    assert strict.run("sh", "-c", "echo x >/usr/local/bin/x || echo x >/etc/x").returncode != 0


def test_it_compiles_and_computes(strict):
    n = 1000
    a, b = [float(i) for i in range(n)], [0.5] * n
    session = "/v1/sessions/image"
    assert strict.request("PUT", session)[0] == 201
    for name, values in (("a", a), ("b", b)):
        assert strict.request("PUT", f"{session}/buffers/{name}", struct.pack(f"<{n}f", *values), "application/octet-stream")[0] == 201
    assert strict.request("PUT", f"{session}/buffers/c", {"size": 4 * n})[0] == 201
    status, answer = strict.request("PUT", f"{session}/modules/m", VADD.encode(), "text/x-cuda")
    assert status == 201, answer
    status, answer = strict.request("POST", f"{session}/launches", {"module": "m", "kernel": "vadd", "grid": [4], "block": [256],
                                                                    "args": [{"buf": "a"}, {"buf": "b"}, {"buf": "c"}, {"i32": n}]})
    assert status == 200, answer
    status, c = strict.request("GET", f"{session}/buffers/c/data")
    assert list(struct.unpack(f"<{n}f", c)) == [x + 0.5 for x in a]
    assert strict.request("DELETE", session)[0] == 204


def test_shaders_compute_on_lavapipe(start, image_vulkan):
    service = start(image_vulkan, *STRICT)
    print(f"image_vulkan: ready {service.start_s:.2f} s after podman run began")
    devices = json.loads(service.request("GET", "/v1/devices")[1])["items"]
    assert [d["id"] for d in devices] == ["vulkan:0", "cpu:0"] and devices[0]["compiler"] == "shaderc", devices
    session = "/v1/sessions/shades"
    assert service.request("PUT", session, {"device": "vulkan:0"})[0] == 201
    assert service.request("PUT", f"{session}/buffers/x", struct.pack("<256f", *range(256)), "application/octet-stream")[0] == 201
    status, answer = service.request("PUT", f"{session}/modules/m", DOUBLE.encode(), "text/x-glsl")
    assert status == 201, answer
    status, answer = service.request("POST", f"{session}/launches", {"module": "m", "kernel": "main", "grid": [4], "args": [{"buf": "x"}]})
    assert status == 200, answer
    assert struct.unpack("<256f", service.request("GET", f"{session}/buffers/x/data")[1]) == tuple(2 * i for i in range(256))


def test_the_health_check_tells_well_from_unwell(strict, image):
    command = json.loads(podman("inspect", "--type=image", image))[0]["Healthcheck"]["Test"][1:]
    well = strict.run(*command)
    assert (well.returncode, well.stdout.strip()) == (0, "ready")
    unwell = strict.run("/usr/local/bin/gpurestd", "healthcheck", f"127.0.0.1:{free_port()}")
    assert unwell.returncode == 1 and "cannot connect" in unwell.stderr


def test_a_killed_worker_is_replaced_and_leaves_nothing(strict):
    before = workers_of(strict)
    assert before
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: before[0] not in below(strict.pid) and len(workers_of(strict)) >= len(before))
    wait_until(strict.ready)


def test_orphans_are_reaped(strict):
    assert strict.run("sh", "-c", "sleep 0.5 >/dev/null 2>&1 &").returncode == 0
    wait_until(lambda: not any((status_of(pid) or {}).get("Name") == "sleep" for pid in below(strict.pid)))
    assert strict.ready()


# ---- programs for CUDA ----

@pytest.fixture(scope="module")
def programs(image_cpu, tmp_path_factory):
    """A folder of programs that are linked with the image's libraries, and of kernels in files for one of them."""
    if not shutil.which("gcc"):
        pytest.skip("gcc, which makes the programs, is not installed")
    folder = tmp_path_factory.mktemp("programs")
    made = podman("create", image_cpu)
    podman("cp", f"{made}:{LIBRARIES}/.", str(folder))
    podman("rm", made)
    for name, headers, libraries, more in (("vector_add", "src", ["cuda.so.1"], []), ("modules", "src", ["cuda.so.1"], []),
                                           ("runtime", "runtime", ["cudart.so.13", "cuda.so.1"], ["fatbin.c"])):
        sources = [PROGRAMS / file for file in (f"{name}.c", "kernels.c", "texels.c", *more)]
        subprocess.run(["gcc", f"-I{ROOT}/sdk/shim/{headers}", *sources, f"-L{folder}", *(f"-l:lib{one}" for one in libraries), "-o", folder / name], check=True)
    for library in folder.glob("lib*"):
        library.unlink()
    for name, data in fatbins.images().items():
        (folder / name).write_bytes(data)
    folder.chmod(0o755)
    return folder


def tool(image, *arguments, folder=None):
    """The command line as process 1 of a container that may do as little as the service's, without a network."""
    mounted = [f"--volume={folder}:/work:ro", "--workdir=/tmp"] if folder else []
    return podman("run", "--rm", "--no-healthcheck", "--network=none", *STRICT, *mounted, "--entrypoint=gpurest", image, *arguments, check=False)


LOCAL = ["exec", "--local", "--device", "cpu:0"]


@pytest.mark.parametrize("which", ["image_cpu", "image"])
@pytest.mark.parametrize("program,printed", [(["vector_add"], "Result = PASS\n"), (["runtime"], "PASS\n"), (["modules", "plain", "lz4", "zstd"], "PASS\n")])
def test_a_program_for_cuda_runs_without_a_gpu(which, program, printed, programs, request):
    """Compressed kernels are unpacked by libraries of the image."""
    done = tool(request.getfixturevalue(which), *LOCAL, "--", *(f"/work/{name}" for name in program), folder=programs)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_a_programs_memory_is_checked(image_cpu, programs):
    done = tool(image_cpu, *LOCAL, "--memcheck", "--", "/work/vector_add", folder=programs)
    report = "========= GPUREST MEMCHECK\nResult = PASS\n========= ERROR SUMMARY: 0 errors\n"
    assert (done.returncode, done.stdout) == (0, report), done.stderr


def test_a_programs_end_is_that_of_the_container(image_cpu):
    """Process 1 cannot be killed by its own signal: its exit code tells of the program's."""
    assert tool(image_cpu, *LOCAL, "--", "sh", "-c", "exit 7").returncode == 7
    assert tool(image_cpu, *LOCAL, "--", "sh", "-c", "kill -SEGV $$").returncode == 128 + signal.SIGSEGV


def test_a_program_is_checked(image_cpu, programs):
    assert tool(image_cpu, "--version").stdout.startswith("gpurest ")
    done = tool(image_cpu, "exec", "--check", "/work/vector_add", folder=programs)
    assert done.returncode == 0 and ", 0 of them" in done.stdout, (done.stdout, done.stderr)


@pytest.mark.parametrize("which", ["image_cpu", "image"])
def test_only_programs_of_exec_find_the_cuda_libraries(which, request):
    """Elsewhere they would hide NVIDIA's, which the container toolkit puts into the image and looks for anew with ldconfig."""
    image = request.getfixturevalue(which)
    listed = podman("run", "--rm", "--user=0", "--entrypoint=/bin/sh", image, "-c", "ldconfig && ldconfig -p")
    assert "libgpurest_llvm.so" in listed and not [line for line in listed.splitlines() if "libcuda" in line or "libnvidia" in line or LIBRARIES in line]
    alone = podman("run", "--rm", "--no-healthcheck", *STRICT, image, "--backends=cuda", "--listen=unix:/tmp/socket", check=False)
    assert alone.returncode != 0 and "cannot load a CUDA driver library" in alone.stderr, alone.stderr


# ---- stopping ----

def launch_for_a_while(service, seconds):
    session = "/v1/sessions/last"
    assert service.request("PUT", session)[0] == 201
    assert service.request("PUT", f"{session}/buffers/out", {"size": 8})[0] == 201
    assert service.request("PUT", f"{session}/modules/m", SPIN.encode(), "text/x-cuda")[0] == 201
    answers = []
    body = {"id": "spin", "module": "m", "kernel": "spin", "grid": [1], "block": [1], "args": [{"buf": "out"}, {"u64": seconds * 10**9}],
            "timeout_ms": 60000}
    thread = threading.Thread(target=lambda: answers.append(service.request("POST", f"{session}/launches", body, Prefer="wait=60")))
    thread.start()
    wait_until(lambda: answers or b'"running"' in service.request("GET", f"{session}/launches/spin")[1])
    assert not answers, f"the kernel of {seconds} s was never seen running: {answers}"
    return session, thread, answers


def stop_beside_a_launch(service, seconds):
    """True when it was stopped during the launch; it must end well in any case."""
    session, thread, answers = launch_for_a_while(service, seconds)
    stopping = subprocess.Popen(["podman", "stop", "-t", "50", service.id], stdout=subprocess.DEVNULL)
    wait_until(lambda: not service.ready())
    under_way = thread.is_alive()
    thread.join(DEADLINE_S)
    assert answers and answers[0][0] == 200, answers
    assert service.request("DELETE", session)[0] == 204
    assert stopping.wait(DEADLINE_S) == 0
    assert service.exit_code() == 0
    return under_way


def test_stopping_lets_the_request_under_way_end(start, image):
    """If the machine stalls between the two commands, a longer kernel gets another try."""
    assert any(stop_beside_a_launch(start(image, *STRICT), seconds) for seconds in SPIN_S), "no kernel was under way when the service was told to stop"


def test_a_stop_shorter_than_the_drain_cuts_sessions_off(start, image_cpu):
    """The reason for --stop-timeout in docker/README.md."""
    service = start(image_cpu)
    assert service.request("PUT", "/v1/sessions/kept")[0] == 201
    podman("stop", "-t", "1", service.id)
    assert service.exit_code() == 137
