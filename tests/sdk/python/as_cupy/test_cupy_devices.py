"""gpurest.cupy with several devices: two GPUs of the tests' driver library, which has memory and runs no kernels, and the cpu device."""
import pytest

np = pytest.importorskip("numpy")

import gpurest.cupy as cp  # noqa: E402


pytestmark = pytest.mark.usefixtures("node_client")


def test_devices_are_counted_and_chosen():
    assert cp.cuda.runtime.getDeviceCount() == 3
    cp.cuda.Device(1).use()
    assert cp.cuda.runtime.getDevice() == cp.cuda.get_device_id() == 1
    with cp.cuda.Device(2):
        assert cp.cuda.Device().id == 2 and cp.cuda.Stream().device_id == 2
    cp.cuda.runtime.setDevice(0)
    assert cp.cuda.Device() == cp.cuda.Device(0) != cp.cuda.Device(1)
    assert all(cp.cuda.runtime.deviceCanAccessPeer(one, other) == 0 for one in range(3) for other in range(3))


def test_an_array_is_made_on_the_current_device_and_knows_its_own():
    a = np.arange(6, dtype="f4")
    with cp.cuda.Device(0):
        x = cp.asarray(a)
    with cp.cuda.Device(1):
        y = cp.asarray(x)
        assert cp.asarray(y) is y
    assert (x.device, y.device) == ("cuda:0", "cuda:1") and (x.device.id, y.device.id, int(y.device)) == (0, 1, 1)
    assert y.device == cp.cuda.Device(1) and y.device != cp.cuda.Device(0) and {y.device: 1}[cp.cuda.Device(1)] == 1
    with y.device:
        assert cp.cuda.Device().id == 1
    y.device.use()
    assert cp.cuda.Device().id == 1
    y.device.synchronize()
    np.testing.assert_array_equal(y.get(), a)
    with pytest.raises(TypeError, match="cuda:0.*cuda:1"):
        x + y


def test_streams_and_pools_are_the_devices_own():
    with cp.cuda.Device(1):
        stream = cp.cuda.Stream()
        x = cp.asarray(np.zeros(1 << 18, "f4"))
        assert cp.get_default_memory_pool().used_bytes() >= 1 << 20
    with cp.cuda.Device(0):
        assert cp.get_default_memory_pool().used_bytes() < 1 << 20
        event = stream.record()
        assert cp.cuda.Device().id == 0
    assert event.done and stream.device_id == 1 and x.device.id == 1
    with cp.cuda.Device(1):
        cp.get_default_memory_pool().set_limit(1 << 24)
    with cp.cuda.Device(0):
        cp.asarray(np.zeros(3)).get()
        assert cp.get_default_memory_pool().get_limit() == 0
