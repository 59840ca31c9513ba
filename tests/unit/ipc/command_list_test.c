/* Lists of stream commands: written entries are read back; malformed lists are detected. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "ipc/command_list.h"

static _Alignas(8) unsigned char bytes[16384];

static struct command_list list_of(size_t room)
{
    return (struct command_list){.at = bytes, .room = room};
}

static bool add_launch(struct command_list *l, uint32_t kernel, uint32_t params)
{
    static struct msg_launch m;

    m = (struct msg_launch){.kernel = kernel, .params_bytes = params};
    memset(m.params, (int)kernel, params);
    return command_list_add(l, MESSAGE_LAUNCH, &m, message_bytes(MESSAGE_LAUNCH), m.params, params);
}

static bool add_copy(struct command_list *l, uint64_t n)
{
    struct msg_mem_copy m = {.bytes = n};

    return command_list_add(l, MESSAGE_MEM_COPY, &m, sizeof m, NULL, 0);
}

/* The number of entries; SIZE_MAX when the list is malformed. */
static size_t walk(size_t size)
{
    struct run_cursor c = {bytes, size};
    bool              malformed = false;
    size_t            n = 0;

    while (command_list_next(&c, &malformed))
        n++;
    return malformed ? SIZE_MAX : n;
}

Test(command_list, entries_come_out_as_they_went_in)
{
    struct command_list     l = list_of(sizeof bytes);
    struct run_cursor       c;
    bool                    malformed = false;
    const struct run_entry *e;

    for (uint32_t i = 0; i < 20; i++)
        cr_assert(i % 3 ? add_launch(&l, i, i) : add_copy(&l, i));
    cr_assert_eq(l.count, 20);
    cr_assert_eq(l.bytes % 8, 0);
    c = (struct run_cursor){bytes, l.bytes};
    for (uint32_t i = 0; i < 20; i++) {
        e = command_list_next(&c, &malformed);
        cr_assert_not_null(e);
        if (i % 3) {
            const struct msg_launch *m = run_entry_body(e);
            cr_assert(e->message == MESSAGE_LAUNCH && m->kernel == i && m->params_bytes == i);
            cr_assert(i == 0 || m->params[i - 1] == i);
        } else {
            cr_assert(e->message == MESSAGE_MEM_COPY && ((const struct msg_mem_copy *)run_entry_body(e))->bytes == i);
        }
    }
    cr_assert_null(command_list_next(&c, &malformed));
    cr_assert_not(malformed);
}

Test(command_list, what_has_no_place_changes_nothing)
{
    struct command_list l = list_of(200);
    size_t              before;

    cr_assert(add_launch(&l, 1, 8));
    before = l.bytes;
    cr_assert_not(add_launch(&l, 2, 4096));
    cr_assert_eq(l.bytes, before);
    cr_assert_eq(l.count, 1);
    l = list_of(sizeof bytes);
    for (uint32_t i = 0; i < RUN_ITEMS_MAX; i++)
        cr_assert(add_copy(&l, i));
    cr_assert_not(add_copy(&l, 0), "more than a list may have");
}

Test(command_list, malformed_lists_are_found_out)
{
    struct command_list l = list_of(sizeof bytes);
    struct run_entry   *first = (struct run_entry *)(void *)bytes;
    size_t              whole;

    add_launch(&l, 1, 12);
    whole = l.bytes;
    add_copy(&l, 1);
    cr_assert_eq(walk(l.bytes), 2);
    cr_assert_eq(walk(0), 0);
    for (size_t cut = 1; cut < l.bytes; cut++)
        cr_assert_eq(walk(cut), cut == whole ? 1 : SIZE_MAX, "cut at %zu", cut);
    for (uint32_t m = 0; m <= MESSAGE_COUNT; m++) {
        first->message = m;
        cr_assert_eq(walk(l.bytes), m == MESSAGE_LAUNCH ? 2 : SIZE_MAX, "message %u", m);
    }
    first->message = MESSAGE_LAUNCH;
    for (uint32_t n = 0; n < 200; n++) {
        first->bytes = n;
        cr_assert(n == message_bytes(MESSAGE_LAUNCH) + 12 || walk(l.bytes) == SIZE_MAX, "%u bytes", n);
    }
    first->bytes = UINT32_MAX;
    cr_assert_eq(walk(l.bytes), SIZE_MAX);
}
