/* Live sensors: read if possible, unknown otherwise. */
#include "device/cuda/nvml.h"
#include "unit/device/cuda/fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static struct device_info unread(const char *uuid)
{
    struct device_info info = {.clock_khz = 1, .memory_clock_khz = 2};

    span_copy(span_of(uuid), info.uuid, sizeof info.uuid);
    return info;
}

/* A copy of the fake library in a folder of its own, beside its control file. Static. */
static const char *steered_nvml(void)
{
    static char folder[] = "/tmp/gpurest-nvml-XXXXXX", path[64], command[4352];

    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/nvml.so", folder);
    snprintf(command, sizeof command, "cp '%s' '%s'", FAKE_NVML, path);
    cr_assert_eq(system(command), 0);
    nvml_library(path);
    return folder;
}

static void steer_nvml(const char *folder, const char *words)
{
    char  path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/fake-nvml", folder);
    f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(words, f);
    fclose(f);
}

static void forget_nvml(const char *folder)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
}

Test(nvml, reads_the_sensors_of_that_gpu)
{
    struct device_info info = unread("GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");

    nvml_library(FAKE_NVML);
    nvml_read(&info);
    cr_assert_eq(device_sensor(&info, DEVICE_SENSOR_TEMPERATURE_C), 41);
    cr_assert_eq(device_sensor(&info, DEVICE_SENSOR_POWER_W), 123);
    cr_assert_eq(device_sensor(&info, DEVICE_SENSOR_UTILIZATION_PCT), 57);
    cr_assert_eq(info.clock_khz, 1980000);
    cr_assert_eq(info.memory_clock_khz, 3201000);
}

Test(nvml, reads_every_sensor_or_says_why_not)
{
    static const struct {
        enum device_sensor sensor;
        int32_t            value;
    } rows[] = {{DEVICE_SENSOR_TEMPERATURE_MAX_C, 90},
                {DEVICE_SENSOR_POWER_LIMIT_W, 650},
                {DEVICE_SENSOR_POWER_LIMIT_MIN_W, 200},
                {DEVICE_SENSOR_POWER_LIMIT_MAX_W, 700},
                {DEVICE_SENSOR_CLOCK_MAX_KHZ, 1995000},
                {DEVICE_SENSOR_MEMORY_CLOCK_MAX_KHZ, 3301000},
                {DEVICE_SENSOR_PERFORMANCE_STATE, 2},
                {DEVICE_SENSOR_FAN_PCT, 35},
                {DEVICE_SENSOR_MEMORY_UTILIZATION_PCT, 12},
                {DEVICE_SENSOR_ENCODER_UTILIZATION_PCT, 3},
                {DEVICE_SENSOR_PCIE_GENERATION, 1},
                {DEVICE_SENSOR_PCIE_GENERATION_MAX, 5},
                {DEVICE_SENSOR_PCIE_WIDTH, 8},
                {DEVICE_SENSOR_PCIE_WIDTH_MAX, 16}};
    struct device_info info = unread("GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    const char        *folder = steered_nvml();

    steer_nvml(folder, "nvmlDeviceGetFanSpeed:fails=0");
    nvml_read(&info);
    for (size_t i = 0; i < COUNT(rows); i++)
        cr_expect_eq(device_sensor(&info, rows[i].sensor), rows[i].value, "row %zu", i);
    cr_expect_eq(info.sensors[DEVICE_SENSOR_DECODER_UTILIZATION_PCT].state, SENSOR_NOT_SUPPORTED);
    steer_nvml(folder, "nvmlDeviceGetFanSpeed:fails=4 nvmlDeviceGetPerformanceState:fails=999");
    nvml_read(&info);
    cr_expect_eq(info.sensors[DEVICE_SENSOR_FAN_PCT].state, SENSOR_NOT_ALLOWED);
    cr_expect_eq(info.sensors[DEVICE_SENSOR_PERFORMANCE_STATE].state, SENSOR_FAILED);
    forget_nvml(folder);
}

/* The table against the most important numbers of the catalogue, one of each kind. */
Test(nvml, errors_of_the_hardware_ask_for_what_the_table_says)
{
    static const struct {
        const char        *xid;
        enum device_action action;
    } rows[] = {{"xid=13", DEVICE_ACTION_NONE}, {"xid=31", DEVICE_ACTION_NONE},   {"xid=43", DEVICE_ACTION_NONE},
                {"xid=94", DEVICE_ACTION_NONE}, {"xid=119", DEVICE_ACTION_DRAIN}, {"xid=45", DEVICE_ACTION_DRAIN},
                {"xid=79", DEVICE_ACTION_END},  {"xid=64", DEVICE_ACTION_END}};
    struct device_info info = unread("GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    const char        *folder = steered_nvml();

    for (size_t i = 0; i < COUNT(rows); i++) { /* the most severe one stays */
        steer_nvml(folder, rows[i].xid);
        nvml_read(&info);
        cr_expect_eq(info.health.action, rows[i].action, "%s: %u", rows[i].xid, info.health.action);
    }
    cr_assert_eq(info.health.xid, 79);
    cr_assert_eq(info.health.watched, 1);
    cr_assert_eq(device_sensor(&info, DEVICE_SENSOR_TEMPERATURE_MAX_C), 90);
    cr_assert_eq(info.health.ecc_uncorrected, 0);
    forget_nvml(folder);
}

Test(nvml, a_gpu_that_is_lost_ends_everything)
{
    struct device_info info = unread("GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    const char        *folder = steered_nvml();

    steer_nvml(folder, "ecc=3");
    nvml_read(&info);
    cr_assert_eq(info.health.ecc_uncorrected, 3);
    cr_assert_eq(info.health.action, DEVICE_ACTION_NONE);
    steer_nvml(folder, "lost=1");
    nvml_read(&info);
    cr_assert_eq(info.health.action, DEVICE_ACTION_END);
    forget_nvml(folder);
}

Test(nvml, one_unreadable_sensor_leaves_the_others)
{
    struct device_info info = unread("GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");

    setenv("FAKE_NVML_WITHOUT", "power", 1);
    nvml_library(FAKE_NVML);
    nvml_read(&info);
    cr_assert_eq(device_sensor(&info, DEVICE_SENSOR_POWER_W), DEVICE_SENSOR_UNKNOWN);
    cr_assert_eq(device_sensor(&info, DEVICE_SENSOR_TEMPERATURE_C), 41);
}

Test(nvml, another_gpu_stays_unread)
{
    struct device_info info = unread("GPU-00000000-0000-0000-0000-000000000000");

    nvml_library(FAKE_NVML);
    nvml_read(&info);
    cr_assert_eq(device_sensor(&info, DEVICE_SENSOR_TEMPERATURE_C), DEVICE_SENSOR_UNKNOWN);
    cr_assert_eq(info.clock_khz, 1);
}

Test(nvml, a_missing_library_is_no_failure)
{
    struct device_info info = unread("GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");

    nvml_library("/nowhere/libnvidia-ml.so.1");
    nvml_read(&info);
    cr_assert_eq(device_sensor(&info, DEVICE_SENSOR_TEMPERATURE_C), DEVICE_SENSOR_UNKNOWN);
    cr_assert_eq(info.memory_clock_khz, 2);
}

Test(nvml, is_found_beside_the_driver)
{
    static struct device_info info;
    struct device            *d = fixture_open();

    cr_assert_eq(device_cuda.info(d, &info), STATUS_OK);
    cr_assert_eq(device_sensor(&info, DEVICE_SENSOR_TEMPERATURE_C), 41);
    device_cuda.close(d);
}

/* What the library was told last; static. */
static const char *last_noted(const char *folder)
{
    static char line[128];
    char        path[64];
    FILE       *f;

    snprintf(path, sizeof path, "%s/fake-nvml-set", folder);
    f = fopen(path, "r");
    cr_assert_not_null(f);
    while (fgets(line, sizeof line, f))
        continue;
    fclose(f);
    return line;
}

Test(nvml, sets_what_is_asked_and_translates_what_the_driver_says)
{
    static const char                 uuid[] = "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff";
    const struct device_setting_value watts = {.set = 1, .low = 300}, most = {.set = 1, .low = UINT32_MAX}, own = {0};
    const char                       *folder = steered_nvml();
    struct problem                    why = {0};

    steer_nvml(folder, "");
    cr_assert_eq(nvml_set(uuid, DEVICE_SETTING_POWER_LIMIT, &watts, &why), STATUS_OK, "%s", why.detail);
    cr_assert_str_eq(last_noted(folder), "nvmlDeviceSetPowerManagementLimit 300000 0\n");
    cr_assert_eq(nvml_set(uuid, DEVICE_SETTING_POWER_LIMIT, &own, &why), STATUS_OK, "%s", why.detail);
    cr_assert_str_eq(last_noted(folder), "nvmlDeviceSetPowerManagementLimit 600000 0\n");
    cr_assert_eq(nvml_set(uuid, DEVICE_SETTING_POWER_LIMIT, &most, &why), STATUS_INVALID_FIELD, "milliwatts would overflow");
    cr_assert_eq(nvml_set("GPU-00", DEVICE_SETTING_POWER_LIMIT, &watts, &why), STATUS_INVALID_FIELD);
    steer_nvml(folder, "nvmlDeviceGetPowerManagementDefaultLimit:fails=3");
    cr_assert_eq(nvml_set(uuid, DEVICE_SETTING_POWER_LIMIT, &own, &why), STATUS_NOT_IMPLEMENTED);
    steer_nvml(folder, "nvmlDeviceSetPersistenceMode:fails=4");
    cr_assert_eq(nvml_set(uuid, DEVICE_SETTING_PERSISTENCE_MODE, &watts, &why), STATUS_FEATURE_DISABLED);
    steer_nvml(folder, "nvmlDeviceGetHandleByUUID:fails=15");
    cr_assert_eq(nvml_set(uuid, DEVICE_SETTING_CLOCKS, &own, &why), STATUS_INTERNAL);
    forget_nvml(folder);
}
