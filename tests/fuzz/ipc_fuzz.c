/* What front-end and workers read of each other: a kernel table, a list of runs, a message's body, and a ring with any contents. The
 * first byte chooses. */
#include <stdlib.h>

#include "ipc/command_list.h"
#include "ipc/kernel_table.h"
#include "ipc/message.h"
#include "ipc/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { POPS = RING_SLOTS + 2 };

static void fuzz_table(struct span s)
{
    struct kernel_table t;

    kernel_table_init(&t);
    kernel_table_decode(s, &t);
    kernel_table_finish(&t);
}

/* An entry's whole body is inside the list. */
static void fuzz_list(const uint8_t *data, size_t bytes)
{
    static _Alignas(64) unsigned char list[1 << 16];
    size_t                            whole = bytes < sizeof list ? bytes : sizeof list;
    struct run_cursor                 c = {list, whole};
    const struct run_entry           *e;
    bool                              malformed = false;

    memcpy(list, data, whole);
    while ((e = command_list_next(&c, &malformed)) != NULL) {
        const unsigned char *body = run_entry_body(e);

        if (body < list || body + e->bytes > list + whole)
            abort();
    }
}

static void fuzz_message(const uint8_t *data, size_t bytes)
{
    static union message_body body;
    uint32_t                  message;

    if (bytes < sizeof message || bytes - sizeof message > sizeof body)
        return;
    memcpy(&message, data, sizeof message);
    memset(&body, 0, sizeof body);
    memcpy(&body, data + sizeof message, bytes - sizeof message);
    message_fits(message, &body, bytes - sizeof message);
}

/* Repeats a short input, so that it sets indices and lengths alike. */
static void repeat(const uint8_t *data, size_t bytes, unsigned char *to, size_t room)
{
    size_t have = bytes < room ? bytes : room;

    memset(to, 0, room);
    if (have)
        memcpy(to, data, have);
    while (have && have < room) {
        size_t n = have < room - have ? have : room - have;

        memcpy(to + have, to, n);
        have += n;
    }
}

static void fuzz_ring(const uint8_t *data, size_t bytes)
{
    static _Alignas(RING_LINE_BYTES) unsigned char memory[RING_SLOTS * (sizeof(struct completion) + 2 * RING_LINE_BYTES)];
    static unsigned char                           slot[sizeof(struct completion)];
    size_t                                         all = ring_bytes(sizeof(struct completion)), n;
    struct ring                                    r;

    if (all > sizeof memory)
        abort();
    repeat(data, bytes, memory, all);
    ring_init(&r, memory, sizeof(struct completion));
    for (int i = 0; i < POPS && ring_pop(&r, slot, &n) == STATUS_OK; i++)
        if (n > sizeof slot)
            abort();
    ring_init(&r, memory, sizeof(struct completion));
    ring_push(&r, slot, sizeof slot);
    ring_ready(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *rest = data + (size > 0);
    size_t         bytes = size - (size > 0);

    switch (size ? data[0] % 4 : 0) {
    case 0:
        fuzz_table((struct span){(const char *)rest, bytes});
        break;
    case 1:
        fuzz_list(rest, bytes);
        break;
    case 2:
        fuzz_message(rest, bytes);
        break;
    default:
        fuzz_ring(rest, bytes);
        break;
    }
    return 0;
}
