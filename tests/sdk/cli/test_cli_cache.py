"""The cache of compiled code on the command line: shown, emptied, filled ahead of use."""
import json
import os

import pytest

from service_under_test import Service
from test_cli import COMPILE, NOT_FOUND, OK, USAGE

SOURCE = 'extern "C" __global__ void put(int *p) { *p = 3; }'


@pytest.fixture
def cached(bare, tmp_path):
    """As gpurest, with a service whose cache is empty."""
    if not os.environ.get("GPURESTD"):
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    (tmp_path / "service").mkdir()
    one = Service(os.environ["GPURESTD"], tmp_path / "service", "--cache", str(tmp_path / "cache"))
    yield lambda *arguments: bare(*arguments, GPUREST_URL=f"http://127.0.0.1:{one.port}")
    one.stop()


def shown(cached):
    done = cached("cache", "--json")
    assert done.returncode == OK, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "gpurest.cache/1"
    return document["item"]


def test_it_is_filled_shown_and_emptied(cached, tmp_path):
    (tmp_path / "k.cu").write_text(SOURCE)
    assert shown(cached)["entries"] == 0
    done = cached("cache", "warm", "axpy", "cbrt", "k.cu", "--dtype", "f32", "--dtype", "f64", "--output", "json")
    assert done.returncode == OK, done.stderr
    items = json.loads(done.stdout)["items"]
    assert [(item.get("kernel"), item.get("dtype"), item["state"]) for item in items] == [
        ("axpy", "f32", "succeeded"), ("axpy", "f64", "succeeded"), ("cbrt", "f32", "succeeded"), ("cbrt", "f64", "succeeded"), (None, None, "succeeded")]
    assert shown(cached)["entries"] == 1 and shown(cached)["all"]["entries"] == 5
    assert "entries" in cached("cache", "show").stdout.decode()
    asked = cached("cache", "clear")
    assert asked.returncode == USAGE and b"--yes" in asked.stderr
    assert cached("cache", "clear", "--older-than", "7d", "--yes").stdout.startswith(b"removed 0 entries")
    assert cached("cache", "clear", "--yes").stdout.startswith(b"removed 1 entries")
    cleared = json.loads(cached("cache", "clear", "--all", "--yes", "--json").stdout)
    assert cleared["schema"] == "gpurest.cache_cleared/1" and cleared["item"]["removed_entries"] == 4


def test_a_table_of_what_is_compiled(cached):
    lines = cached("cache", "warm", "axpy", "--dtype", "f32").stdout.decode().splitlines()
    assert lines[0].split() == ["KERNEL", "DTYPE", "DEVICE", "STATE", "PROBLEM"] and lines[1].split()[:2] == ["axpy", "f32"]
    assert lines[1].split()[3] == "succeeded"


def test_failures_have_their_codes(cached, tmp_path):
    (tmp_path / "bad.cu").write_text("this is no C")
    done = cached("cache", "warm", "bad.cu")
    assert done.returncode == COMPILE and b"1 of 1 failed" in done.stderr and b"kernel.cu" in done.stdout
    assert cached("cache", "warm", "nonesuch").returncode == NOT_FOUND
    assert cached("cache", "warm").returncode == USAGE
    assert cached("cache", "warm", "axpy", "--dtype").returncode == USAGE
    assert cached("cache", "melt").returncode == USAGE
    assert cached("cache", "show", "more").returncode == USAGE
    for age in ("x", "1w", "-1", "", "99999999999999999999d", "213503982334602d"):
        assert cached("cache", "clear", f"--older-than={age}", "--yes").returncode == USAGE, age


def test_it_goes_on_without_the_tool(cached):
    done = cached("cache", "warm", "axpy", "--dtype", "f32", "--no-wait", "--json")
    assert done.returncode == OK and json.loads(done.stdout)["items"][0]["state"] in ("queued", "running", "succeeded")
