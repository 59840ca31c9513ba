/* Live sensors: read when they can be, unknown otherwise. */
#include "cuda_fixture.h"
#include "device/nvml.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct device_info unread(const char *uuid)
{
    struct device_info info = {.clock_khz = 1, .memory_clock_khz = 2};

    info.temperature_c = info.power_w = info.utilization_pct = DEVICE_SENSOR_UNKNOWN;
    span_copy(span_of(uuid), info.uuid, sizeof info.uuid);
    return info;
}

Test(nvml, reads_the_sensors_of_that_gpu)
{
    struct device_info info = unread("GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");

    nvml_library(FAKE_NVML);
    nvml_read(&info);
    cr_assert_eq(info.temperature_c, 41);
    cr_assert_eq(info.power_w, 123);
    cr_assert_eq(info.utilization_pct, 57);
    cr_assert_eq(info.clock_khz, 1980000);
    cr_assert_eq(info.memory_clock_khz, 3201000);
}

Test(nvml, one_unreadable_sensor_leaves_the_others)
{
    struct device_info info = unread("GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");

    setenv("FAKE_NVML_WITHOUT", "power", 1);
    nvml_library(FAKE_NVML);
    nvml_read(&info);
    cr_assert_eq(info.power_w, DEVICE_SENSOR_UNKNOWN);
    cr_assert_eq(info.temperature_c, 41);
}

Test(nvml, another_gpu_stays_unread)
{
    struct device_info info = unread("GPU-00000000-0000-0000-0000-000000000000");

    nvml_library(FAKE_NVML);
    nvml_read(&info);
    cr_assert_eq(info.temperature_c, DEVICE_SENSOR_UNKNOWN);
    cr_assert_eq(info.clock_khz, 1);
}

Test(nvml, a_missing_library_is_no_failure)
{
    struct device_info info = unread("GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");

    nvml_library("/nowhere/libnvidia-ml.so.1");
    nvml_read(&info);
    cr_assert_eq(info.temperature_c, DEVICE_SENSOR_UNKNOWN);
    cr_assert_eq(info.memory_clock_khz, 2);
}

Test(nvml, is_found_beside_the_driver)
{
    static struct device_info info;
    struct device            *d = fixture_open();

    cr_assert_eq(device_cuda.info(d, &info), STATUS_OK);
    cr_assert_eq(info.temperature_c, 41);
    device_cuda.close(d);
}
