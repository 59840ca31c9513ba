"""valgrind.py GPURESTD FOLDER TOOL: the examples and the command line tool under valgrind: no invalid access, no leak, whatever the service
answers. Skipped (77) without valgrind."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import service

FOUND = 99
SAXPY = """extern "C" __global__ void saxpy(float a, const float *x, float *y, int n)
{ int i = threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }
extern "C" __global__ void bad(int *x) { x[1ll << 40] = 1; }
"""


def run(url, folder, wanted, *command):
    """Checks the exit code, and that valgrind reports nothing."""
    log = pathlib.Path(folder) / "valgrind.log"
    done = subprocess.run(["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible", "--errors-for-leak-kinds=definite,indirect",
                           f"--error-exitcode={FOUND}", f"--log-file={log}", *command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          env={**os.environ, "GPUREST_URL": url, "HOME": folder, "XDG_CONFIG_HOME": folder}, timeout=300)
    assert done.returncode == wanted and "definitely lost" not in log.read_text(), (command, done.returncode, done.stdout, done.stderr, log.read_text())


def check_examples(url, folder, examples):
    (pathlib.Path(folder) / "in.pgm").write_bytes(b"P5\n8 8\n255\n" + bytes(range(64)))
    run(url, folder, 0, str(examples / "vector_add"), "100")
    run(url, folder, 0, str(examples / "matmul"), "8")
    run(url, folder, 0, str(examples / "pipeline"))
    run(url, folder, 0, str(examples / "picture_filter"), "blur", "in.pgm", "out.pgm")
    run("http://127.0.0.1:1", folder, 1, str(examples / "vector_add"))


def check_tool(url, folder, tool):
    here = pathlib.Path(folder)
    (here / "k.cu").write_text(SAXPY)
    (here / "wrong.cu").write_text("int x = ;")
    (here / "x.raw").write_bytes(bytes(256))
    (here / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<c8'")
    saxpy = ["run", "k.cu", "saxpy", "--grid", "1", "--block", "64", "--arg", "f32:2", "--in", "x.raw", "--inout", "x.raw:y.raw"]
    for code, *command in ((0, "status", "--json"), (0, "config"), (0, "connect", "v"), (0, "buf", "put", "a", "x.raw"), (0, "buf", "get", "a", "a.npy:f32[64]"),
                           (0, "kernels", "k.cu"), (0, "monitor", "-i", "1", "-c", "2"), (0, "monitor", "--events", "--seconds", "1"), (0, "disconnect"), (0, *saxpy, "--arg", "i32:64"), (1, *saxpy),
                           (2, *saxpy, "--in", "bad.npy"), (6, "run", "k.cu", "bad", "--grid", "1", "--block", "1", "--in", "x.raw"), (7, "compile", "wrong.cu"),
                           (5, "sessions", "get", "nothing"), (2, "nonsense"), (0, "diag", "--bundle", "state.tar.gz")):
        run(url, folder, code, tool, *command)
    run("http://127.0.0.1:1", folder, 3, tool, "status")


def main():
    executable, examples, tool = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    if not shutil.which("valgrind") or subprocess.run(["valgrind", "--quiet", "true"], stdin=subprocess.DEVNULL, check=False).returncode:
        print("valgrind is not installed, or cannot run here (Debian: valgrind and libc6-dbg)")
        sys.exit(77)
    with service.running(executable) as url, tempfile.TemporaryDirectory() as folder:
        check_examples(url, folder, examples)
        check_tool(url, folder, tool)
    print("valgrind has nothing to say")


if __name__ == "__main__":
    main()
