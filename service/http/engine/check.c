/* What can be said of a server's configuration without serving: addresses that could be bound, TLS files that fit each other,
 * networks of trusted proxies. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/engine/address.h"
#include "http/engine/internal.h"

/* errno, or 0. */
static int try_bind(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1, error = 0;

    if (fd < 0)
        return errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) || bind(fd, a->ai_addr, a->ai_addrlen))
        error = errno;
    close(fd);
    return error;
}

static enum address_verdict bad(struct problem *why, const char *what, int error)
{
    problem_set(why, STATUS_INVALID_REQUEST, "%s: %s", what, strerror(error));
    return ADDRESS_BAD;
}

static enum address_verdict check_tcp(const char *address, struct problem *why)
{
    struct addrinfo *found;
    bool             any;
    int              error;

    if (address_resolve(address, true, &found, &any, why))
        return ADDRESS_BAD;
    error = try_bind(found);
    freeaddrinfo(found);
    if (error == EADDRINUSE)
        return ADDRESS_IN_USE;
    return error == 0 || (any && error == EAFNOSUPPORT) ? ADDRESS_GOOD : bad(why, "cannot be bound", error);
}

/* Looks at the folder alone: the name itself is made, or taken over, when the server starts. */
static enum address_verdict check_unix(const char *address, struct problem *why)
{
    struct sockaddr_un a;
    struct stat        what;
    char              *slash;

    if (address_unix(address, &a, why))
        return ADDRESS_BAD;
    if (lstat(a.sun_path, &what) == 0 && !S_ISSOCK(what.st_mode))
        return bad(why, "another file is at this path", EEXIST);
    slash = strrchr(a.sun_path, '/');
    if (slash)
        slash[slash == a.sun_path] = '\0';
    if (access(slash ? a.sun_path : ".", W_OK | X_OK) == 0)
        return ADDRESS_GOOD;
    return errno == ENOENT ? ADDRESS_NO_FOLDER : bad(why, "folder", errno);
}

enum address_verdict server_check_address(const char *address, struct problem *why)
{
    return address_is_unix(address) ? check_unix(address, why) : check_tcp(address, why);
}

enum status server_check_tls(const struct server_config *config, struct problem *why)
{
    struct tls *tls;
    enum status st = tls_create(&tls, config, why);

    tls_destroy(tls);
    return st;
}

enum status server_check_proxy(const char *text, struct problem *why)
{
    struct networks one = {.count = 0};

    return networks_add(&one, text, why);
}
