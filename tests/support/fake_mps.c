/* The fake driver as a client of a fake MPS daemon (tests/service/fake_mps.py): with CUDA_MPS_PIPE_DIRECTORY it says hello at its start, tells of
 * faults, and hears of those of other clients. */
#include "support/fake_cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MPS_RPC_FAILURE = 806, MESSAGE_BYTES = 64 };

static int  server = -1; /* the connection */
static bool told;

/* As a real driver: without a daemon it works without one. */
cuda_result fake_mps_start(void)
{
    const char        *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char               message[MESSAGE_BYTES] = "";

    if (!folder || server >= 0 || snprintf(to.sun_path, sizeof to.sun_path, "%s/control", folder) >= (int)sizeof to.sun_path)
        return CUDA_RESULT_SUCCESS;
    server = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(server, (const struct sockaddr *)&to, sizeof to)) {
        close(server);
        server = -1;
        return CUDA_RESULT_SUCCESS;
    }
    if (send(server, "hello", 5, MSG_NOSIGNAL) < 0 || recv(server, message, sizeof message - 1, 0) <= 0)
        return (cuda_result)MPS_RPC_FAILURE;
    return (cuda_result)atoi(message);
}

bool fake_mps_is_client(void)
{
    return server >= 0;
}

/* What the server has said since; 0: nothing. */
cuda_result fake_mps_heard(void)
{
    char    message[MESSAGE_BYTES] = "";
    ssize_t n = server < 0 ? 0 : recv(server, message, sizeof message - 1, MSG_DONTWAIT);

    if (server < 0 || (n < 0 && errno == EAGAIN))
        return CUDA_RESULT_SUCCESS;
    return (cuda_result)(n > 0 ? atoi(message) : MPS_RPC_FAILURE);
}

static void say(const char *message)
{
    if (server >= 0 && send(server, message, strlen(message), MSG_NOSIGNAL) < 0)
        perror("fake MPS");
}

void fake_mps_fault(cuda_result why)
{
    char message[MESSAGE_BYTES];

    if (told)
        return;
    told = true;
    snprintf(message, sizeof message, "fault %d", (int)why);
    say(message);
}

void fake_mps_busy(void)
{
    say("busy");
}
