/* The three system calls of Landlock; the attributes grow with the kernel's ABI, whose bits have no names in older headers. */
#include "worker/jail/landlock.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RIGHTS_OF_ABI_1 = 13, REFER = 13, TRUNCATE = 14, IOCTL_DEV = 15, TCP = 3, PEERS = 3 };

/* The rights that a rule on a file may have; the others are for folders. */
static const uint64_t file_rights =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | 1ull << TRUNCATE | 1ull << IOCTL_DEV;

static long abi_version(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

static uint64_t rights_known(long abi)
{
    uint64_t rights = (1ull << RIGHTS_OF_ABI_1) - 1;

    rights |= abi >= 2 ? 1ull << REFER : 0;
    rights |= abi >= 3 ? 1ull << TRUNCATE : 0;
    rights |= abi >= 5 ? 1ull << IOCTL_DEV : 0;
    return rights;
}

int landlock_create(enum landlock_reach reach)
{
    long abi = abi_version();
    struct {
        uint64_t files, net, scoped;
    } attributes = {
        .files = rights_known(abi),
        .net = abi >= 4 ? TCP : 0,
        .scoped = abi >= 6 && reach == LANDLOCK_AND_PEERS ? PEERS : 0,
    };

    if (abi < 1)
        return -1;
    return (int)syscall(SYS_landlock_create_ruleset, &attributes, abi >= 6 ? 24 : abi >= 4 ? 16 : 8, 0);
}

bool landlock_allow_at(int ruleset, int fd, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights & rights_known(abi_version()), .parent_fd = fd};

    return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

bool landlock_allow(int ruleset, const char *path, uint64_t rights)
{
    int         fd = open(path, O_PATH | O_CLOEXEC);
    struct stat st;
    bool        ok;

    if (fd < 0)
        return false;
    ok = fstat(fd, &st) == 0 && landlock_allow_at(ruleset, fd, S_ISDIR(st.st_mode) ? rights : rights & file_rights);
    close(fd);
    return ok;
}

bool landlock_enter(int ruleset)
{
    bool ok = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;

    close(ruleset);
    return ok;
}
