"""A few system calls that fail within moves, saves, loads, upgrades, snapshots and hibernation; by hand there are thousands: outlive_faults.py."""
import os

import pytest

import outlive_faults
from shim import library_beside


@pytest.mark.parametrize("scene", outlive_faults.SCENES)
def test_one_of_both_is_whole(scene):
    if not library_beside(os.environ["GPURESTD"]).exists():
        pytest.skip("the fault shim was not built beside GPURESTD")
    tried, met, _, found, tally = outlive_faults.campaign(os.environ["GPURESTD"], scene, most=4, seed=26)
    assert not found
    assert tried == 4 and met > 0 and tally
