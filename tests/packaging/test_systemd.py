"""The systemd unit and the example configuration file agree with the executable and with each other. GPURESTD names the executable."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "systemd"


@pytest.fixture(scope="module")
def executable():
    path = os.environ.get("GPURESTD")
    if not path:
        pytest.skip("GPURESTD does not name a gpurestd to test")
    return str(pathlib.Path(path).resolve())


@pytest.fixture(scope="module")
def unit():
    """Option -> its last value."""
    return dict(re.findall(r"^(\w+)=(.*)$", (FOLDER / "gpurestd.service").read_text(), re.M))


def settings_of(executable, path):
    got = subprocess.run([executable, "--check-config", "--config", str(path)], env={}, capture_output=True, text=True, timeout=60)
    assert (got.returncode, got.stderr) == (0, "")
    return dict(re.findall(r"^(\w+) = (.*)$", got.stdout, re.M))


def test_the_example_is_a_good_configuration_file(executable):
    assert settings_of(executable, FOLDER / "gpurestd.conf")["cache"] == "/var/cache/gpurest"


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl, which makes the test's certificate, is not installed")
def test_the_examples_comments_are_settings_too(executable, tmp_path):
    text = re.sub(r"^# (\w+ = )", r"\1", (FOLDER / "gpurestd.conf").read_text(), flags=re.M)
    assert "tokens = /etc/gpurest/tokens" in text
    text = text.replace("/etc/gpurest", str(tmp_path))
    (tmp_path / "tokens").write_text('{"tokens":[{"name":"ann","sha256":"%s","scopes":["read"]}]}' % ("0" * 64))
    (tmp_path / "tokens").chmod(0o600)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-keyout", "key.pem", "-out", "cert.pem"], cwd=tmp_path,
                   check=True, capture_output=True, timeout=60)
    full = tmp_path / "full.conf"
    full.write_text(text)
    assert settings_of(executable, full)["tokens"] == f"{tmp_path}/tokens"


def test_systemd_waits_longer_than_the_drain(executable, unit):
    assert int(unit["TimeoutStopSec"]) > int(settings_of(executable, FOLDER / "gpurestd.conf")["drain_timeout"])


def test_only_the_front_end_is_told_to_stop(unit):
    assert unit["KillMode"] == "mixed"


def test_the_folders_of_the_example_are_the_units(executable, unit):
    assert settings_of(executable, FOLDER / "gpurestd.conf")["cache"] == f"/var/cache/{unit['CacheDirectory']}"
    assert f"/run/{unit['RuntimeDirectory']}/" in (FOLDER / "gpurestd.conf").read_text()


def test_systemd_finds_nothing_wrong(executable, tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / "gpurestd.service"
    copy.write_text((FOLDER / "gpurestd.service").read_text().replace("/usr/bin/gpurestd", executable))
    got = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60)
    assert got.returncode == 0, got.stderr
    complaints = [line for line in got.stderr.splitlines() if "gpurestd" in line]
    assert not complaints


def test_the_account_can_be_made():
    if not shutil.which("systemd-sysusers"):
        pytest.skip("systemd-sysusers is not installed")
    got = subprocess.run(["systemd-sysusers", "--dry-run", str(FOLDER / "gpurest.sysusers.conf")], capture_output=True, text=True, timeout=60)
    assert got.returncode == 0, got.stderr


def members_of(group, found=None):
    """System calls of a systemd group and the groups in it."""
    found = set() if found is None else found
    listed = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True, timeout=60).stdout
    for word in re.findall(r"^\s+(@?[a-z0-9_-]+)$", listed, re.M):
        if word.startswith("@"):
            members_of(word, found)
        else:
            found.add(word)
    return found


def permitted():
    """The system calls that the lines of SystemCallFilter allow, applied in order."""
    calls = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", (FOLDER / "gpurestd.service").read_text(), re.M):
        named = set().union(*(members_of(word) if word.startswith("@") else {word} for word in line.lstrip("~").split()))
        calls = calls - named if line.startswith("~") else calls | named
    return calls


@pytest.mark.skipif(not shutil.which("strace") or not shutil.which("systemd-analyze"), reason="strace and systemd-analyze are needed")
def test_all_that_the_service_calls_is_permitted(executable, tmp_path):
    """A whole run, with a compilation, a launch and the workers' jails, traced from outside."""
    trace = tmp_path / "trace"
    environment = dict(os.environ, ONCE="1", PORT="0", XDG_CACHE_HOME=str(tmp_path))
    wrapper = tmp_path / "gpurestd"
    wrapper.write_text(f"#!/bin/sh\nexec strace -D -f -qq -o {trace} {executable} \"$@\"\n")
    wrapper.chmod(0o755)
    job = subprocess.run([FOLDER.parents[1] / "scripts/run.sh"], env=dict(environment, GPURESTD=str(wrapper), FILE=str(FOLDER / "gpurestd.conf")),
                         capture_output=True, text=True, timeout=120)
    if "ptrace" in job.stderr and job.returncode:
        pytest.skip("this machine does not let processes be traced")
    assert job.returncode == 0, job.stdout + job.stderr
    called = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(errors="replace"), re.M))
    assert {"execve", "prctl", "sendmsg", "memfd_create"} <= called, "that was no whole life"
    # The filter applies to the front-end and its workers; jails do without unshare, chroot and mount where these are refused.
    assert called - permitted() - {"unshare", "chroot", "mount", "umount2", "pivot_root", "setns"} == set()
