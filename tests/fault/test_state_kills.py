"""A few kills at random moments of what --state does; by hand there are hundreds: state_kills.py."""
import os

import pytest

import state_kills


@pytest.mark.parametrize("way", state_kills.WAYS)
def test_nothing_is_lost_or_doubled(way):
    tally, found = state_kills.campaign(os.environ["GPURESTD"], way, 3, 26)
    assert not found
    assert tally["shutdown"] + tally["periodic"] > 0
