"""The files in docker/: all that can be checked without building an image. test_image.py runs the images."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docker"


@pytest.fixture(scope="module")
def dockerfile():
    return (FOLDER / "Dockerfile").read_text()


def compose(name):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load((FOLDER / name).read_text())["services"]["gpurest"]


def stages(text):
    return re.findall(r"^FROM (\S+) AS (\S+)$", text, re.M)


def test_nothing_needs_buildkit(dockerfile):
    """buildah of Debian 12 and docker's classic builder support neither mounts nor here-documents."""
    assert not re.search(r"^RUN\s+--|^COPY\s+--(?!from=)|<<", dockerfile, re.M)
    assert not dockerfile.startswith("# syntax")


def test_the_image_without_nvrtc_is_built_without_fetching_it(dockerfile):
    """Docker's classic builder builds every stage above its target."""
    names = [name for _, name in stages(dockerfile)]
    assert names.index("runtime-cpu-small") < names.index("runtime-cpu") < names.index("runtime-vulkan") < names.index("nvrtc") < names.index("runtime")
    assert dict((name, base) for base, name in stages(dockerfile))["runtime"] == "runtime-cpu"


def test_the_smallest_image_is_built_without_the_client(dockerfile):
    names = [name for _, name in stages(dockerfile)]
    assert names.index("runtime-cpu-small") < names.index("build-client") < names.index("runtime-cpu")


def test_every_stage_is_made_of_one_base(dockerfile):
    names = {name for _, name in stages(dockerfile)}
    assert {base for base, _ in stages(dockerfile)} - names == {"${BASE_IMAGE}"}


def test_everything_that_is_copied_is_there_and_not_ignored(dockerfile):
    ignored = (ROOT / ".dockerignore").read_text().split()
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.M):
        for source in sources.split():
            path = pathlib.PurePath(source)
            assert (ROOT / source).exists() and not {str(one) for one in (path, *path.parents)} & set(ignored), source


def test_everything_that_the_service_is_made_of_is_copied(dockerfile):
    """Folders that the build files refer to from the project's root; a missing one shows only when an image is built."""
    build_files = [ROOT / "CMakeLists.txt", *(ROOT / "service").rglob("CMakeLists.txt"), *(ROOT / "scripts/cmake").iterdir()]
    named = {name for file in build_files for name in re.findall(r"\$\{PROJECT_SOURCE_DIR\}/(\w+)/", file.read_text())}
    copied = set(re.findall(r"^COPY (\w+) \w+$", dockerfile, re.M))
    assert {"openapi", "kernels"} <= named
    assert named <= copied


def test_everything_that_the_client_is_made_of_is_copied(dockerfile):
    """The folders of its build files, and those that they refer to."""
    folders = set(re.findall(r"^ +add_subdirectory\((sdk/\w+)\)$", (ROOT / "CMakeLists.txt").read_text(), re.M))
    named = {name for folder in folders for name in re.findall(r"\$\{PROJECT_SOURCE_DIR\}/(sdk/\w+)/", (ROOT / folder / "CMakeLists.txt").read_text())}
    assert "sdk/shim" in folders and "sdk/c" in named
    assert folders | named <= set(re.findall(r"^COPY (\S+) \1$", dockerfile, re.M))


def test_the_cuda_libraries_are_where_exec_looks_and_the_loader_does_not(dockerfile):
    """In a folder that the loader searches they would hide NVIDIA's, which the container toolkit puts into the image."""
    copied = dict(re.findall(r"^COPY --from=build-client (\S+) (\S+)$", dockerfile, re.M))
    assert copied["/out/client"] == "/usr/local" and "-t /out/client/lib/gpurest libcuda.so.1 " in dockerfile
    assert '"../lib/gpurest"' in (ROOT / "sdk/cli/src/commands/work/exec.c").read_text()


def test_packages_leave_no_lists_behind(dockerfile):
    for step in re.findall(r"^RUN (.*?[^\\])$", dockerfile, re.M | re.S):
        assert ("apt-get update" in step) == ("/var/lib/apt/lists/*" in step), step


def test_compose_stops_later_than_the_service_drains():
    service = compose("compose.yaml")
    assert int(service["stop_grace_period"].rstrip("s")) > int(service["environment"]["GPUREST_DRAIN_TIMEOUT"])


def test_compose_gives_no_more_than_is_needed():
    service = compose("compose.yaml")
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert not {"privileged", "network_mode", "pid", "ipc", "volumes"} & service.keys()


def test_gpus_are_all_that_the_second_file_adds():
    service = compose("compose.gpu.yaml")
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert set(service) == {"deploy", "read_only"}


def test_what_is_built_is_what_compose_names(dockerfile):
    build = compose("compose.yaml")["build"]
    assert build["target"] in [name for _, name in stages(dockerfile)]
    assert (FOLDER / build["context"] / build["dockerfile"]).resolve() == FOLDER / "Dockerfile"


@pytest.mark.parametrize("script", ["docker/take-nvrtc.sh", "packaging/needed-packages.sh", "docker/podman.sh", "scripts/image-test.sh", "deploy/slurm/gpurest.sbatch",
                                    "deploy/slurm/epilog.sh"])
def test_scripts_are_good_shell(script):
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    got = subprocess.run(["shellcheck", "-S", "warning", "-s", "sh" if "/bin/sh" in (ROOT / script).read_text() else "bash", script], cwd=ROOT, capture_output=True, text=True)
    assert got.returncode == 0, got.stdout
