/* Variables of modules: buffers under names of their own, which live as long as their module. */
#include "unit/session/session_fixture.h"

#include <unistd.h>

TestSuite(global, .init = fixture_usual, .fini = fixture_end);

static enum status id_of(const char *name, char id[ID_BYTES])
{
    return global_id_of(f.session, SPAN_LITERAL("m"), span_of(name), id, &f.why);
}

Test(global, has_several_names)
{
    static const char *const names[] = {"ns::table", "_ZN2ns5tableE", "1"};
    char                     id[ID_BYTES];

    make_module("m", "code");
    for (size_t i = 0; i < COUNT(names); i++) {
        cr_assert_eq(id_of(names[i], id), STATUS_OK, "%s", names[i]);
        cr_assert_str_eq(id, "m:1");
    }
    cr_assert_eq(id_of("counter", id), STATUS_OK);
    cr_assert_str_eq(id, "m:0");
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(id_of((const char *[]){"table", "2", "", "18446744073709551616"}[i], id), STATUS_GLOBAL_NOT_FOUND);
    cr_assert_eq(global_id_of(f.session, SPAN_LITERAL("none"), SPAN_LITERAL("counter"), id, &f.why), STATUS_MODULE_NOT_FOUND);
}

Test(global, is_a_buffer)
{
    struct buffer_info info, other;

    make_module("m", "code");
    make_buffer("b", FAKE_GLOBAL_BYTES);
    cr_assert_eq(buffer_info_of(f.session, SPAN_LITERAL("m:counter"), &info, &f.why), STATUS_OK);
    cr_assert_eq(info.bytes, FAKE_GLOBAL_BYTES);
    cr_assert_str_eq(info.id, "m:0");
    cr_assert_eq(buffer_info_of(f.session, SPAN_LITERAL("m:1"), &other, &f.why), STATUS_OK);
    cr_assert_neq(info.contents.buffer, other.contents.buffer, "each has entity tags of its own");
    cr_assert_eq(byte_at("m:counter", 3), 4);
    upload("m:0", (struct span){(char[FAKE_GLOBAL_BYTES]){9, 8, 7}, FAKE_GLOBAL_BYTES});
    cr_assert_eq(byte_at("m:counter", 2), 7);
    cr_assert_eq(buffer_copy(f.session, SPAN_LITERAL("b"), 1, SPAN_LITERAL("m:0"), 0, 2, (struct span){0}, &f.why), STATUS_OK);
    cr_assert_eq(byte_at("b", 2), 8);
    cr_assert_eq(buffer_fill(f.session, SPAN_LITERAL("m:1"), 60, 4, 5, 1, (struct span){0}, &f.why), STATUS_OK);
    cr_assert_eq(byte_at("m:ns::table", 63), 5);
    cr_assert_eq(buffer_fill(f.session, SPAN_LITERAL("m:1"), 60, 5, 5, 1, (struct span){0}, &f.why), STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert_eq(buffer_info_of(f.session, SPAN_LITERAL("m:1"), &info, &f.why), STATUS_OK);
    cr_assert_neq(info.contents.epoch, other.contents.epoch, "a write changes the tag");
}

Test(global, is_not_freed_by_itself)
{
    struct buffer_info info;
    bool               created;

    make_module("m", "code");
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("m:0"), NULL, &f.why), STATUS_INVALID_REQUEST);
    cr_assert_eq(buffer_create(f.session, SPAN_LITERAL("m:7"), 4, false, &info, &created, &f.why), STATUS_INVALID_FIELD);
    cr_assert_eq(session_now().memory_bytes, 0, "it is charged to nobody");
    cr_assert_eq(byte_at("m:0", 0), 1);
}

Test(global, keeps_its_module_loaded_while_it_is_used)
{
    struct transfer *t;
    char             got[FAKE_GLOBAL_BYTES];
    size_t           bytes = 0;

    make_module("m", "code");
    cr_assert_eq(transfer_read_begin(f.session, SPAN_LITERAL("m:0"), 0, FAKE_GLOBAL_BYTES, &t, &f.why), STATUS_OK);
    cr_assert_eq(module_delete(f.session, SPAN_LITERAL("m"), &f.why), STATUS_OK);
    cr_assert_eq(buffer_info_of(f.session, SPAN_LITERAL("m:0"), &(struct buffer_info){0}, &f.why), STATUS_BUFFER_NOT_FOUND);
    cr_assert_eq(fake_modules_loaded(), 1);
    cr_assert_eq(transfer_read_wait(t, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(transfer_read(t, got, sizeof got, &bytes, NULL), STATUS_OK);
    cr_assert_eq(got[FAKE_GLOBAL_BYTES - 1], FAKE_GLOBAL_BYTES);
    transfer_destroy(t);
    while (fake_modules_loaded())
        usleep(1000);
}

Test(global, a_transfer_may_outlive_the_session)
{
    struct transfer *t;

    make_module("m", "code");
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("m:1"), 0, FAKE_GLOBAL_BYTES, NULL, &t, &f.why), STATUS_OK);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(buffer_info_of(f.session, SPAN_LITERAL("m:0"), &(struct buffer_info){0}, &f.why), STATUS_BUFFER_NOT_FOUND);
    transfer_destroy(t);
}
