"""The fake CUDA driver beside the executable under test, and the page that sets its answers."""
import mmap
import pathlib
import shutil

import pytest


class Driver:
    def __init__(self, executable, folder):
        built = pathlib.Path(executable).parents[1] / "tests/support/libcuda.so.1"
        if not built.exists():
            pytest.skip("the fake driver was not built beside GPURESTD")
        self.path = pathlib.Path(folder) / "libcuda.so.1"
        shutil.copy(built, self.path)
        script = pathlib.Path(str(self.path) + ".script")
        script.write_bytes(bytes(mmap.PAGESIZE))
        self.file = open(script, "r+b")
        self.page = mmap.mmap(self.file.fileno(), mmap.PAGESIZE)

    def says(self, text):
        data = text.encode() + b"\0"
        self.page[:len(data)] = data
