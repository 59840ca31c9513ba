"""The definition of the Apptainer image. Apptainer is not in Debian 12, so its sections are run as they stand, by the shell, in a mount namespace
where /opt and /usr/local/bin are empty. GPUREST_BUNDLE names the bundle that goes into the image."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFINITION = ROOT / "deploy" / "slurm" / "gpurest.def"


def sections():
    """{name: lines}; "" is the head."""
    found, name = {"": []}, ""
    for line in DEFINITION.read_text().splitlines():
        begin = re.fullmatch(r"%(\w+)", line)
        if begin:
            name = begin.group(1)
            found[name] = []
        elif line.strip() and not line.startswith("#"):
            found[name].append(line.strip())
    return found


def test_the_definition_says_what_apptainer_reads():
    parts = sections()
    assert dict(line.split(": ") for line in parts[""]) == {"Bootstrap": "docker", "From": "debian:12-slim"}
    assert set(parts) == {"", "files", "post", "environment", "runscript", "test", "labels"}
    assert all(len(line.split()) == 2 for line in parts["files"])
    for name in ("post", "environment", "runscript", "test"):
        subprocess.run(["sh", "-n"], input="\n".join(parts[name]), text=True, check=True)


def test_its_sections_make_a_service_that_starts():
    bundle = os.environ.get("GPUREST_BUNDLE")
    if not bundle:
        pytest.skip("GPUREST_BUNDLE does not name a bundle: cmake --build BUILD --target bundle makes one")
    if os.geteuid() != 0 or not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a mount namespace needs root")
    parts = sections()
    wanted = {line.split()[0]: line.split()[1] for line in parts["files"]}
    assert wanted.pop(".nvrtc") == "/opt/nvrtc"
    ((of, to),) = wanted.items()
    assert of == "build/release/gpurest-bundle.tar.gz"
    # What apptainer build and apptainer run do, in their order. Without the compiler, which is not fetched here: so not its variables.
    script = ["set -eu", "mount -t tmpfs none /opt", "mount -t tmpfs none /usr/local/bin", f'cp "$BUNDLE" {to}', *parts["post"], *parts["test"],
              "set -- --version", *parts["runscript"]]
    done = subprocess.run(["unshare", "-m", "sh"], input="\n".join(script), text=True, capture_output=True, check=False,
                          env={"PATH": os.environ["PATH"], "BUNDLE": str(pathlib.Path(bundle).resolve())})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("gpurestd "), done.stdout
