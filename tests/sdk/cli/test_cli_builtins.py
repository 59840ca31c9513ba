"""The service's built-in kernels on the command line: listed, described, run on files; and how nested values are printed."""
import json
import os
import pathlib

from test_cli import NOT_FOUND, OK, USAGE, floats, npy

SUM = ["run", "--builtin", "reduce_sum", "--dtype", "f32", "--in", "x.npy", "--out", "sum.npy:f4[1]", "--arg", "u64:4"]


def test_they_are_listed(gpurest):
    done = gpurest("builtins")
    head, *rows = done.stdout.decode().splitlines()
    assert done.returncode == OK and head.split() == ["NAME", "FAMILY", "WHAT", "LIBRARY"]
    assert any(row.split()[:2] == ["softmax", "softmax"] for row in rows)
    listed = json.loads(gpurest("builtins", "ls", "--json").stdout)
    assert listed["schema"] == "gpurest.builtins/1"
    names = [item["name"] for item in listed["items"]]
    assert len(names) == len(rows) > 100 and len(set(names)) == len(names), "every page of the list"


def test_one_is_described_for_people_and_for_programs(gpurest):
    done = gpurest("builtins", "get", "softmax")
    text = done.stdout.decode()
    assert done.returncode == OK and "PARAMETER  ACCESS" in text and "elements of a row" in text and "__global__" not in text
    assert "Method:" in text, "the notes, with their lines"
    item = json.loads(gpurest("builtins", "get", "softmax", "--json").stdout)
    assert item["schema"] == "gpurest.builtin/1" and "template" in item["item"]["source"]
    assert gpurest("builtins", "get", "nothing").returncode == NOT_FOUND
    assert gpurest("builtins", "get", "../sessions").returncode == USAGE
    assert gpurest("builtins", "rm", "softmax").returncode == USAGE


def test_they_run_on_files(gpurest, tmp_path):
    (tmp_path / "x.npy").write_bytes(npy("<f4", "(4,)", floats([1, 2, 3, 4.5])))
    done = gpurest(*SUM)
    assert done.returncode == OK, done.stderr
    assert (tmp_path / "sum.npy").read_bytes() == npy("<f4", "(1,)", floats([10.5]))


def test_what_cannot_be_run_says_why(gpurest, tmp_path):
    (tmp_path / "x.npy").write_bytes(npy("<f4", "(4,)", floats([1, 2, 3, 4.5])))
    without_type = gpurest("run", "--builtin", "reduce_sum")
    assert without_type.returncode == USAGE and b"--dtype is required" in without_type.stderr
    with_file = gpurest("run", "--builtin", "reduce_sum", "--dtype", "f32", "x.cu")
    assert with_file.returncode == USAGE and b"unexpected argument" in with_file.stderr
    assert gpurest("run", "--builtin", "nothing", "--dtype", "f32").returncode == NOT_FOUND
    library = gpurest(*SUM, "--engine", "vendor")
    assert library.returncode != OK and b"/engine" in library.stderr
    assert not (tmp_path / "sum.npy").exists()


def test_what_is_missing_is_said(bare):
    done = bare("kernels")
    assert done.returncode == USAGE and done.stderr.startswith(b"gpurest: kernels takes FILE.cu | FILE.ptx")


def test_lists_within_an_answer_are_readable(gpurest):
    device = os.environ.get("GPUREST_TEST_BACKENDS", "cpu").split(",")[0] + ":0"
    lines = gpurest("info").stdout.decode().splitlines()
    at = lines.index("devices 0")
    assert lines[at + 1].split() == ["id", device]
    assert not any("{" in line for line in lines), "no JSON for people"
