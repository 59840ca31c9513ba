"""The whole main task with curl, as in the contract."""
import shutil
import subprocess

import pytest

from conftest import VADD, floats

SESSION = """set -e
B=$1/v1/sessions/demo
curl -X PUT $B
curl -X PUT $B/buffers/a -H 'Content-Type: application/octet-stream' --data-binary @a.f32
curl -X PUT $B/buffers/b -H 'Content-Type: application/octet-stream' --data-binary @b.f32
curl -X PUT $B/buffers/c -H 'Content-Type: application/json' -d '{"size":4096}'
curl -X PUT $B/modules/m -H 'Content-Type: text/x-cuda' --data-binary @vadd.cu
curl -X POST $B/launches -H 'Content-Type: application/json' -d '{"module":"m","kernel":"vadd","grid":[4],"block":[256],
     "args":[{"buf":"a"},{"buf":"b"},{"buf":"c"},{"i32":1024}]}'
curl $B/buffers/c/data -o c.f32
curl -X DELETE $B
"""


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_main_job(service, tmp_path):
    (tmp_path / "a.f32").write_bytes(floats(range(1024)))
    (tmp_path / "b.f32").write_bytes(floats(3 * i for i in range(1024)))
    (tmp_path / "vadd.cu").write_text(VADD)
    script = SESSION.replace("curl ", "curl -sS --fail-with-body ")
    done = subprocess.run(["sh", "-c", script, "sh", f"http://127.0.0.1:{service.port}"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "c.f32").read_bytes() == floats(4 * i for i in range(1024))
