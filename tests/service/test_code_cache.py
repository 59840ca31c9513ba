"""Compiled code that is kept is given back only for the same source, compiler and headers, to whom it belongs."""
import os
import pathlib
import shutil

import pytest

from kernels import launch

S = "/v1/sessions/s"
SOURCE = '#include <answer.h>\nextern "C" __global__ void answer(unsigned *p) { *p = ANSWER; }\n'


@pytest.fixture
def ask(start, tmp_path):
    """ask(*arguments): the kernel's answer by a service of its own, and whether its code was there already. All have one cache."""
    def ask_one(*arguments):
        service = start("--cache", str(tmp_path / "kept"), *arguments)
        client = service.client()
        assert client.put(S).status == 201
        module = client.put_cuda(S + "/modules/m", SOURCE)
        assert module.status == 201, module
        assert client.put(S + "/buffers/p", {"size": 4}).status == 201
        assert client.post(S + "/launches", launch("answer", {"buf": "p"}, module="m")).status == 200
        answer = int.from_bytes(client.get(S + "/buffers/p/data").body, "little")
        service.stop()
        return answer, module.json()["cached"]

    return ask_one


def headers(folder, answer):
    folder.mkdir(exist_ok=True)
    (folder / "answer.h").write_text(f"#define ANSWER {answer}\n")
    return str(folder)


def test_code_is_of_its_headers(ask, tmp_path):
    one, other = headers(tmp_path / "one", 41), headers(tmp_path / "other", 42)
    assert ask("--cuda-include", one) == (41, False)
    assert ask("--cuda-include", one) == (41, True)
    assert ask("--cuda-include", other) == (42, False), "another folder"
    assert ask("--cuda-include", one) == (41, True), "both are kept"
    headers(tmp_path / "one", 43)
    assert ask("--cuda-include", one) == (43, False), "the same folder, changed"


def test_a_header_that_is_changed_at_the_same_size_and_second_is_another(ask, tmp_path):
    folder = headers(tmp_path / "one", 41)
    assert ask("--cuda-include", folder) == (41, False)
    headers(tmp_path / "one", 42)
    assert ask("--cuda-include", folder) == (42, False)


def test_code_is_of_its_compiler(ask, tmp_path):
    library = os.environ.get("GPUREST_NVRTC")
    if not library:
        pytest.skip("GPUREST_NVRTC names no NVRTC library to copy")
    folder = headers(tmp_path / "one", 41)
    assert ask("--cuda-include", folder, "--nvrtc", library) == (41, False)
    assert ask("--cuda-include", folder, "--nvrtc", library) == (41, True)
    real = pathlib.Path(library).resolve()
    copies = tmp_path / "copies"
    copies.mkdir()
    for file in real.parent.glob("libnvrtc*.so*"):
        if ".alt." not in file.name:
            shutil.copy(file, copies / file.name)
    copy = copies / pathlib.Path(library).name
    change_build_id(copy)
    assert ask("--cuda-include", folder, "--nvrtc", str(copy)) == (41, False), "another build of the same version"


def change_build_id(path):
    """Its last byte, in the GNU note; a library without one is told by its size and time."""
    data = bytearray(path.read_bytes())
    at = data.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
    if at < 0:
        path.write_bytes(data + b"\0")
        return
    data[at + 16 + 19] ^= 1
    path.write_bytes(data)
