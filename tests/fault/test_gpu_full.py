"""The short form of gpu_full.py, on the device of the other tests."""
import io
import pathlib

import gpu_full
import pytest

NAMES = list(gpu_full.PLANS)


@pytest.mark.parametrize("name", NAMES)
def test_in_short(executable, tmp_path, name):
    words = ["--service", executable, "--counts", "short", "--seconds", "120", "--threads", "2", "--mib", "1", "--only", name]
    out = io.StringIO()
    good = gpu_full.run(gpu_full.arguments(words), pathlib.Path(tmp_path), out)
    print(out.getvalue())
    assert good, out.getvalue()
