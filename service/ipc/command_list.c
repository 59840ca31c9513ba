/* Lists of stream commands as bytes. */
#include "ipc/command_list.h"

enum { RUN_ALIGN_BYTES = 8 };

static_assert(sizeof(struct run_entry) % RUN_ALIGN_BYTES == 0, "a body is aligned as its entry is");

static size_t padded_bytes(size_t bytes)
{
    return (bytes + RUN_ALIGN_BYTES - 1) / RUN_ALIGN_BYTES * RUN_ALIGN_BYTES;
}

bool command_list_add(struct command_list *l, enum message m, const void *head, size_t head_bytes, const void *tail, size_t tail_bytes)
{
    struct run_entry entry = {(uint32_t)m, (uint32_t)(head_bytes + tail_bytes)};
    size_t           all = sizeof entry + padded_bytes(head_bytes + tail_bytes);
    unsigned char   *to = l->at + l->bytes;

    if (l->count == RUN_ITEMS_MAX || all > l->room - l->bytes)
        return false;
    memcpy(to, &entry, sizeof entry);
    memcpy(to + sizeof entry, head, head_bytes);
    if (tail_bytes)
        memcpy(to + sizeof entry + head_bytes, tail, tail_bytes);
    l->bytes += all;
    l->count++;
    return true;
}

static bool is_listable(uint32_t message)
{
    return message == MESSAGE_LAUNCH || message == MESSAGE_MEM_COPY || message == MESSAGE_MEM_FILL || message == MESSAGE_EVENT_RECORD ||
           message == MESSAGE_EVENT_WAIT;
}

const struct run_entry *command_list_next(struct run_cursor *c, bool *malformed)
{
    const struct run_entry *e = (const struct run_entry *)(const void *)c->at;
    size_t                  all;

    if (c->left == 0)
        return NULL;
    all = c->left < sizeof *e || e->bytes > c->left - sizeof *e ? SIZE_MAX : sizeof *e + padded_bytes(e->bytes);
    if (all > c->left || !is_listable(e->message) || !message_fits(e->message, e + 1, e->bytes)) {
        *malformed = true;
        return NULL;
    }
    c->at += all;
    c->left -= all;
    return e;
}
