/* Where MPS is looked for, and the folder of its servers. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/files/folder.h"
#include "pool/domains/find.h"
#include "pool/domains/server.h"

static char folder[64];

static void put(const char *name, mode_t mode)
{
    char  path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "w");
    cr_assert_not_null(f);
    fclose(f);
    chmod(path, mode);
}

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/mps-find-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    cr_assert(folder_remove(folder));
    cr_assert_not(folder_remove(folder));
}

TestSuite(mps_find, .init = make_folder, .fini = remove_folder);

Test(mps_find, both_programs_must_lie_in_the_folder)
{
    char           control[MPS_PATH_BYTES], expected[128];
    struct problem why = {0};

    cr_assert_eq(mps_find(folder, control, &why), STATUS_INVALID_FIELD);
    cr_assert_str_eq(why.detail, "the folder has no program nvidia-cuda-mps-server");
    put("nvidia-cuda-mps-server", 0755);
    put("nvidia-cuda-mps-control", 0644);
    cr_assert_eq(mps_find(folder, control, &why), STATUS_INVALID_FIELD);
    cr_assert_str_eq(why.detail, "the folder has no program nvidia-cuda-mps-control");
    put("nvidia-cuda-mps-control", 0755);
    cr_assert_eq(mps_find(folder, control, &why), STATUS_OK);
    snprintf(expected, sizeof expected, "%s/nvidia-cuda-mps-control", folder);
    cr_assert_str_eq(control, expected);
    cr_assert_eq(mps_find("/nowhere/at/all", control, &why), STATUS_INVALID_FIELD);
    cr_assert_eq(mps_find("off", control, &why), STATUS_FEATURE_DISABLED);
}

Test(mps_find, auto_takes_the_first_folder_of_the_path_that_has_both)
{
    char           control[MPS_PATH_BYTES], path[128];
    struct problem why = {0};

    snprintf(path, sizeof path, "relative::/nowhere:%s", folder);
    setenv("PATH", path, 1);
    cr_assert_eq(mps_find("auto", control, &why), STATUS_NOT_FOUND);
    put("nvidia-cuda-mps-server", 0755);
    put("nvidia-cuda-mps-control", 0755);
    cr_assert_eq(mps_find("auto", control, &why), STATUS_OK);
    unsetenv("PATH");
    cr_assert_eq(mps_find("auto", control, &why), STATUS_NOT_FOUND);
}

Test(mps_find, a_base_folder_is_private_locked_and_gone_in_the_end)
{
    char        first[SERVER_PATH_BYTES], second[SERVER_PATH_BYTES], inside[SERVER_PATH_BYTES + 8];
    struct stat st;
    int         first_fd, second_fd;

    cr_assert(mps_base_create(first, &first_fd));
    cr_assert_eq(stat(first, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0700);
    snprintf(inside, sizeof inside, "%s/1", first);
    cr_assert_eq(mkdir(inside, 0700), 0);
    cr_assert(mps_base_create(second, &second_fd));
    cr_assert_eq(stat(inside, &st), 0, "one that is in use stays");
    descriptor_close(&first_fd); /* as when its process was killed */
    mps_base_remove(second, &second_fd);
    cr_assert(mps_base_create(second, &second_fd));
    cr_assert_neq(stat(first, &st), 0, "one that was left goes");
    mps_base_remove(second, &second_fd);
    cr_assert_neq(stat(second, &st), 0);
    mps_base_remove(second, &second_fd);
}
