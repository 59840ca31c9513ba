"""The short form of gpu_full.py, on the device of the other tests."""
import io
import pathlib

import gpu_full
import pytest
from tally import Tally

NAMES = list(gpu_full.PLANS)


@pytest.mark.parametrize("name", NAMES)
def test_in_short(executable, tmp_path, name):
    words = ["--service", executable, "--counts", "short", "--seconds", "600", "--threads", "2", "--mib", "1", "--only", name]
    out = io.StringIO()
    good = gpu_full.run(gpu_full.arguments(words), pathlib.Path(tmp_path), out)
    print(out.getvalue())
    assert good, out.getvalue()


def test_a_campaign_goes_on_where_it_was_cut_off(tmp_path):
    """Faults that had not ended are injected again; losses stay counted."""
    file = tmp_path / "state.json"
    first = Tally("faults", 3, 60, file)
    assert [first.take(), first.take()] == [0, 1]
    first.end("trap", lost="answered nothing")
    first.keep()
    other = Tally("leaks", 1, 60, file)
    other.take()
    other.end("a caller", 0.5)
    other.keep()
    second = Tally("faults", 3, 60, file)
    assert (second.injected, second.survived, second.lost) == (1, 0, ["trap: answered nothing"]) and not second.is_full()
    assert [second.take(), second.take(below=2), second.take(), second.take()] == [1, None, 2, None]
    for _ in range(2):
        second.end("trap", 1.5)
    second.keep()
    third = Tally("faults", 3, 60, file)
    assert third.is_full() and third.take() is None and third.survived == 2 and third.by_kind == {"trap": [3, 2]}
    assert Tally("leaks", 1, 60, file).is_full()
