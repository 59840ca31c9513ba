"""A few kills at random moments of moves; by hand there are hundreds: move_kills.py."""
import os

import pytest

import move_kills


@pytest.mark.parametrize("victim", move_kills.VICTIMS)
def test_nothing_is_lost_or_doubled(victim):
    tally, found = move_kills.campaign(os.environ["GPURESTD"], victim, 2, 26)
    assert not found
    assert tally["moved"] + tally["stayed"] == 3
