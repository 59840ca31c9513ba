"""The SDK on a hip device, whose library is no AMD GPU's: a code object's kernel beside NumPy, and arrays that are refused at once."""
import pathlib

import pytest

np = pytest.importorskip("numpy")
gpurest = pytest.importorskip("gpurest")
from gpurest import errors, testing  # noqa: E402

CODE = pathlib.Path(__file__).parents[2] / "unit" / "device" / "fixtures" / "sample_gfx90a.code"


def test_a_code_object_runs_and_arrays_are_refused_at_once():
    executable = testing.find_executable()
    library = pathlib.Path(executable or "/none/none/none").resolve().parents[1] / "tests" / "support" / "libamdhip64.so.6"
    if not library.exists():
        pytest.skip("the fake library is not built")
    with testing.server("--libamdhip64", str(library), "--allow-binary-images", device="hip") as one, gpurest.connect(one.url) as client, client.session() as gpu:
        a, b = np.arange(1000, dtype=np.float32), np.full(1000, 0.5, np.float32)
        c = gpu.buffer(size=a.nbytes)
        gpu.load(CODE.read_bytes()).kernel("vadd")((8,), (128,), (gpu.buffer(a), gpu.buffer(b), c, np.int32(1000)))
        assert np.array_equal(np.frombuffer(bytes(c.read()), dtype=np.float32), a + b)
        with pytest.raises(errors.ArgumentError, match="need a cuda, vulkan or cpu device.*hip:0.*modules with buffers"):
            gpurest.zeros(4, session=gpu)
