/* Expands messages.def into names and sizes. */
#include "ipc/message.h"

#include <stddef.h>

static const struct {
    const char *name;
    size_t      bytes;
} rows[] = {
#define MESSAGE(NAME, call) {#call, sizeof(struct msg_##call)},
#include "ipc/messages.def"
#undef MESSAGE
};

const char *message_name(enum message m)
{
    return (unsigned)m < MESSAGE_COUNT ? rows[m].name : "unknown";
}

size_t message_bytes(enum message m)
{
    if (m == MESSAGE_LAUNCH)
        return offsetof(struct msg_launch, params);
    return (unsigned)m < MESSAGE_COUNT ? rows[m].bytes : 0;
}
