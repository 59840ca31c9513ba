/* The service's side of the service manager's notification socket, without libsystemd. */
#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/log/log.h"

static struct sockaddr_un manager; /* sun_family 0: no manager */
static socklen_t          manager_bytes;
static char               manager_name[sizeof manager.sun_path];

void notify_begin(void)
{
    const char *name = getenv("NOTIFY_SOCKET");
    size_t      bytes = name ? strlen(name) : 0;

    if (bytes && (name[0] == '/' || name[0] == '@') && bytes < sizeof manager.sun_path) {
        manager.sun_family = AF_UNIX;
        memcpy(manager.sun_path, name, bytes);
        memcpy(manager_name, name, bytes + 1);
        if (name[0] == '@')
            manager.sun_path[0] = '\0'; /* the abstract namespace */
        manager_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    } else if (bytes)
        log_warn("frontend", "NOTIFY_SOCKET is not a socket path; the service manager is not notified");
    unsetenv("NOTIFY_SOCKET");
}

bool notify_hand_over(void)
{
    return !manager.sun_family || setenv("NOTIFY_SOCKET", manager_name, 1) == 0;
}

void notify(const char *state)
{
    int fd;

    if (!manager.sun_family)
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&manager, manager_bytes) < 0)
        log_warn("frontend", "cannot notify the service manager: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
}

void notify_reloading(void)
{
    char text[64];

    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(now_ns() / NS_PER_US));
    notify(text);
}
