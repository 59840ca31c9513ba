"""The README keeps its word: its curl session runs literally, and the two commands that it names exist."""
import array
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def blocks():
    return re.findall(r"^```sh\n(.*?)^```$", README, re.M | re.S)


def test_the_curl_session_runs_literally(service, tmp_path):
    session = next(block for block in blocks() if "sessions/demo" in block)
    session = session.replace("http://127.0.0.1:8080", f"http://{service.host}:{service.port}")
    script = "set -e\ncurl() { command curl --silent --show-error --fail-with-body \"$@\"; }\n" + session
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    c = array.array("f")
    c.frombytes((tmp_path / "c.f32").read_bytes())
    assert list(c) == [i + 0.5 for i in range(1024)]


def test_every_command_block_is_one_that_is_run_somewhere():
    commands = {block.strip() for block in blocks() if "sessions/demo" not in block}
    assert commands == {"make run", "make test"}  # tests/layout/test_commands.py runs the first; you are running the second
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^run:", makefile, re.M) and re.search(r"^test:", makefile, re.M)
