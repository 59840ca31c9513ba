"""Settings of a device that operators change: nothing without the switch, nothing out of range, what the driver refuses is told, and what is
set is shown. The driver and its management library are fakes, which note what they are told."""
import pytest

from fake_gpu import device, driver, prepare, start, tool
from service_under_test import until

PATH = "/v1/admin/devices/cuda:0"
NOTHING = {"clocks_mhz": None, "memory_clocks_mhz": None, "power_limit_w": None, "persistence_mode": None, "fan_pct": None}


@pytest.fixture
def run(executable, driver, tmp_path):
    services = []

    def run(*more):
        services.append(start(executable, tmp_path, driver[1], *more))
        return services[-1].client()

    yield run
    for service in services:
        service.stop()


@pytest.fixture
def client(run):
    return run("--allow-device-settings")


@pytest.fixture
def noted(driver):
    """What the library was told so far."""
    def lines():
        file = driver[1] / "fake-nvml-set"
        return file.read_text().splitlines() if file.exists() else []

    return lines


def test_without_the_switch_nothing_is_changed(run, noted):
    client = run()
    answer = client.patch(PATH, {"settings": {"power_limit_w": 300}})
    assert answer.status == 403 and answer.code == "feature_disabled" and "--allow-device-settings" in answer.json()["detail"]
    assert device(client)["settings"] == NOTHING and noted() == []


def test_each_is_set_shown_and_given_back(client, noted):
    assert device(client)["settings"] == NOTHING and noted() == []
    wanted = {"clocks_mhz": [300, 1995], "memory_clocks_mhz": [3301, 3301], "power_limit_w": 200, "persistence_mode": True, "fan_pct": 0}
    answer = client.patch(PATH, {"settings": wanted})
    assert answer.status == 200 and answer.json()["settings"] == wanted == device(client)["settings"], answer
    assert noted() == ["nvmlDeviceSetGpuLockedClocks 300 1995", "nvmlDeviceSetMemoryLockedClocks 3301 3301",
                       "nvmlDeviceSetPowerManagementLimit 200000 0", "nvmlDeviceSetPersistenceMode 1 0",
                       "nvmlDeviceSetFanSpeed_v2 0 0", "nvmlDeviceSetFanSpeed_v2 1 0"]
    before = len(noted())
    assert client.patch(PATH, {"settings": {"power_limit_w": 700}}).json()["settings"] == {**wanted, "power_limit_w": 700}
    assert noted()[before:] == ["nvmlDeviceSetPowerManagementLimit 700000 0"], "only what is asked for is touched"
    before = len(noted())
    assert client.patch(PATH, {"settings": NOTHING}).json()["settings"] == NOTHING
    assert noted()[before:] == ["nvmlDeviceResetGpuLockedClocks 0 0", "nvmlDeviceResetMemoryLockedClocks 0 0",
                                "nvmlDeviceSetPowerManagementLimit 600000 0", "nvmlDeviceSetPersistenceMode 0 0",
                                "nvmlDeviceSetDefaultFanSpeed_v2 0 0", "nvmlDeviceSetDefaultFanSpeed_v2 1 0"]
    assert client.patch(PATH, {"settings": {}}).status == 200


@pytest.mark.parametrize("settings,tells", [
    ({"power_limit_w": 199}, "from 200 to 700 W"), ({"power_limit_w": 701}, "from 200 to 700 W"), ({"power_limit_w": 2**53 + 2}, "null"),
    ({"power_limit_w": "18446744073709551615"}, "from 200 to 700 W"), ({"power_limit_w": -1}, "null"), ({"power_limit_w": 250.5}, "null"),
    ({"clocks_mhz": [0, 900]}, "from 1 to 1995 MHz"), ({"clocks_mhz": [300, 1996]}, "from 1 to 1995 MHz"), ({"clocks_mhz": [900, 300]}, "lowest"),
    ({"clocks_mhz": 900}, "[lowest, highest]"), ({"clocks_mhz": [900]}, "[lowest, highest]"), ({"clocks_mhz": [1, 2, 3]}, "[lowest, highest]"),
    ({"memory_clocks_mhz": [1, 3302]}, "from 1 to 3301 MHz"), ({"fan_pct": 101}, "from 0 to 100 percent"), ({"persistence_mode": 1}, "true"),
])
def test_a_value_that_the_device_cannot_take_changes_nothing(client, noted, settings, tells):
    answer = client.patch(PATH, {"settings": {"clocks_mhz": [300, 900], **settings}})
    name, = settings
    assert answer.status == 400 and answer.code == "invalid_field", answer
    assert answer.json()["errors"][0]["pointer"] == "/settings/" + name and tells in answer.json()["detail"], answer
    assert noted() == [] and device(client)["settings"] == NOTHING


def test_what_is_no_setting_is_refused(client, noted):
    assert client.patch(PATH, {"settings": {"voltage": 1}}).code == "unknown_field"
    assert client.patch(PATH, {"settings": 7}).code == "invalid_field"
    assert client.patch(PATH, {}).code == "invalid_field"
    assert client.patch(PATH, {"settings": {}, "reset": True}).code == "unknown_field"
    assert client.patch("/v1/admin/devices/cuda:9", {"settings": {}}).code == "device_not_found"
    assert noted() == []


def test_what_the_driver_says_is_told(client, driver, noted):
    steer, _ = driver
    for error, status, code, tells in ((4, 403, "feature_disabled", "only root"), (3, 400, "invalid_field", "does not offer"), (2, 400, "invalid_field", "does not accept"),
                                       (999, 500, "internal", "error 999"), (15, 500, "internal", "error 15")):
        steer(f"nvmlDeviceSetPowerManagementLimit:fails={error}")
        answer = client.patch(PATH, {"settings": {"clocks_mhz": [300, 900], "power_limit_w": 300, "fan_pct": 50}})
        assert (answer.status, answer.code) == (status, code) and tells in answer.json()["detail"], answer
        assert device(client)["settings"] == {**NOTHING, "clocks_mhz": [300, 900]}, "what was set before stays, what comes behind is not tried"
    assert set(noted()) == {"nvmlDeviceSetGpuLockedClocks 300 900"}
    assert device(client)["state"] == "healthy"


def test_a_device_without_a_fan(run, driver, noted):
    (driver[1] / "libcuda.so.1.devices").write_text("2")
    client = run("--allow-device-settings")
    answer = client.patch("/v1/admin/devices/cuda:1", {"settings": {"fan_pct": 50}})
    assert answer.status == 400 and "does not offer" in answer.json()["detail"]
    assert client.patch(PATH, {"settings": {"fan_pct": 50}}).status == 200
    settings = {d["id"]: d["settings"]["fan_pct"] for d in client.get("/v1/devices").json()["items"]}
    assert settings == {"cuda:0": 50, "cuda:1": None}


def test_the_cpu_device_has_no_settings(executable, tmp_path):
    from service_under_test import Service
    service = Service(executable, tmp_path, "--backends", "cpu", "--allow-device-settings")
    try:
        answer = service.client().patch("/v1/admin/devices/cpu:0", {"settings": {"power_limit_w": 300}})
        assert answer.status == 400 and answer.code == "invalid_field" and "no settings" in answer.json()["detail"]
        hard = service.client().post("/v1/admin/devices/cpu:0/reset", {"kind": "hard"})
        assert hard.status == 400 and hard.json()["errors"][0]["pointer"] == "/kind"
    finally:
        service.stop()


def test_a_setting_that_cannot_be_set_again_is_no_longer_shown(run, driver):
    steer, _ = driver
    client = run("--allow-device-settings")
    client.timeout = 300
    assert client.patch(PATH, {"settings": {"power_limit_w": 300, "clocks_mhz": [300, 900]}}).status == 200
    steer("nvmlDeviceSetPowerManagementLimit:fails=4")
    assert client.post(PATH + "/reset", {"kind": "soft"}).status == 200
    until(lambda: device(client)["settings"] == {**NOTHING, "clocks_mhz": [300, 900]}, "it claims what is not so")


def test_settings_outlive_a_reset(run, tmp_path, noted):
    client = run("--allow-device-settings", "--nvidia-smi", str(tool(tmp_path, "exit 0")))
    client.timeout = 300
    assert client.patch(PATH, {"settings": {"power_limit_w": 300}}).status == 200
    assert client.post(PATH + "/reset", {"kind": "hard"}).status == 200
    until(lambda: noted() == 2 * ["nvmlDeviceSetPowerManagementLimit 300000 0"], noted)
    assert device(client)["settings"]["power_limit_w"] == 300
    assert prepare(client, "/v1/sessions/s")
