"""A gpurestd on the cpu device for the scripts here."""
import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time

START_DEADLINE_S = 60


@contextlib.contextmanager
def running(executable, *arguments):
    """Yields the service's URL."""
    with tempfile.TemporaryDirectory(prefix="gpurest_sdk_") as folder:
        ports = pathlib.Path(folder) / "ports"
        command = [os.environ.get("GPURESTD", executable), "--listen", "127.0.0.1:0", "--port-file", str(ports), "--backends", "cpu",
                   "--drain-timeout", "0", "--no-warm-compiler", "--staging-mib", "16",
                   "--cache", folder + "/cache", "--log-level", "warn", *arguments]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=folder)
        try:
            deadline = time.monotonic() + START_DEADLINE_S
            while not ports.exists():
                assert process.poll() is None, "gpurestd ended at once"
                assert time.monotonic() < deadline, "gpurestd does not serve"
                time.sleep(0.01)
            yield "http://" + ports.read_text().split()[0]
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
        assert code == 0, f"gpurestd ended with {code}"
