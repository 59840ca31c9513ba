"""The test's side of fault_shim.c: chooses which call fails, and counts failures."""
import contextlib
import ctypes
import errno
import mmap
import os
import pathlib
import re
import subprocess

HEADER = (pathlib.Path(__file__).parent / "fault_shim.h").read_text()
FUNCTIONS = re.findall(r"^    FUNCTION\((\w+)\)", HEADER, re.M)
SHORT = 0  # instead of an errno: fewer bytes than requested


class Control(ctypes.Structure):
    _fields_ = [("function", ctypes.c_uint32), ("error", ctypes.c_int32), ("countdown", ctypes.c_int64), ("times", ctypes.c_int64),
                ("hits", ctypes.c_int64), ("live", ctypes.c_int64), ("wall_offset_ns", ctypes.c_int64), ("shutdown_us", ctypes.c_int64),
                ("calls", ctypes.c_int64 * len(FUNCTIONS))]


def library_beside(executable):
    return pathlib.Path(executable).resolve().parents[1] / "tests" / "fault" / "libgpurest_fault.so"


def sanitizer_of(executable):
    """The sanitizer's run-time library, which must be loaded before the shim, or None."""
    linked = subprocess.run(["ldd", executable], capture_output=True, text=True, check=True).stdout
    found = re.search(r"lib[at]san\.so\.\d+ => (\S+)", linked)
    return found.group(1) if found else None


class Shim:
    def __init__(self, executable, folder):
        self.path = pathlib.Path(folder) / "faults"
        self.path.write_bytes(bytes(mmap.PAGESIZE))
        self.file = open(self.path, "r+b")  # stays open as long as the mapping
        self.memory = mmap.mmap(self.file.fileno(), mmap.PAGESIZE)
        self.control = Control.from_buffer(self.memory)
        self.sanitizer = sanitizer_of(executable)
        preloaded = [self.sanitizer] if self.sanitizer else []
        self.variables = {"LD_PRELOAD": " ".join([*preloaded, str(library_beside(executable))]), "GPUREST_FAULT_CONTROL": str(self.path)}

    def arm(self, function, after, error=errno.ENOMEM, times=1):
        """After so many successful calls, `times` calls fail."""
        c = self.control
        c.times = 0
        c.function, c.error, c.countdown, c.hits = FUNCTIONS.index(function), error, after, 0
        c.times = times

    def disarm(self):
        """Disarms, and returns how many calls failed."""
        self.control.times = 0
        return self.control.hits

    def calls(self, function):
        return self.control.calls[FUNCTIONS.index(function)]

    @property
    def live(self):
        return self.control.live

    def slow_shutdown(self, seconds):
        self.control.shutdown_us = int(seconds * 1e6)

    def jump(self, seconds):
        """Shifts the time of day from now on."""
        self.control.wall_offset_ns = int(seconds * 1e9)


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def open_sockets(pid):
    """Descriptors of TCP connections and listeners. Workers that start meanwhile have sockets, too, but not of TCP."""
    count, of_tcp = 0, set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/net/{table}") as lines:
            of_tcp |= {f"socket:[{line.split()[9]}]" for line in list(lines)[1:]}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            count += os.readlink(f"/proc/{pid}/fd/{fd}") in of_tcp
    return count
