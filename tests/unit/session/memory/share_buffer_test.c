/* Shareable buffers: memory of their own, charged with what it takes, handed out to nobody else, gone with the buffer. */
#include <sys/mman.h>
#include <unistd.h>

#include "session/memory/share.h"
#include "unit/session/session_fixture.h"

static void start_usual(void)
{
    fixture_start(8);
}

TestSuite(share_buffer, .init = start_usual, .fini = fixture_end);

enum { MIB = 1 << 20, UNIT = FAKE_SHARING_UNIT };

static enum status make(const char *id, uint64_t bytes)
{
    struct buffer_info info;

    return buffer_create(f.session, span_of(id), bytes, true, &info, &f.created, &f.why);
}

static unsigned char *map(int fd, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    cr_assert_neq(at, MAP_FAILED);
    close(fd);
    return at;
}

Test(share_buffer, of_a_host_device_the_memory_is_the_clients)
{
    struct share_view v;
    unsigned char    *at;

    cr_assert_eq(make("a", UNIT + 1), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 2 * UNIT);
    cr_assert_eq(share_open(f.session, SPAN_LITERAL("a"), &v, &f.why), STATUS_OK);
    cr_assert(v.direct);
    cr_assert_eq(v.bytes, UNIT + 1);
    cr_assert_not(v.created);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 2 * UNIT);
    at = map(v.fd, 2 * UNIT);
    at[v.offset + UNIT] = 42;
    cr_assert_eq(byte_at("a", UNIT), 42);
    cr_assert_eq(share_move(f.session, SPAN_LITERAL("a"), SHARE_TO_DEVICE, 0, UNIT + 1, &f.why), STATUS_OK);
    cr_assert_eq(share_move(f.session, SPAN_LITERAL("a"), SHARE_FROM_DEVICE, 1, UNIT + 1, &f.why), STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert_eq(byte_at("a", UNIT), 42);
    cr_assert_eq(share_close(f.session, SPAN_LITERAL("a"), &f.why), STATUS_SHARE_NOT_FOUND);
    cr_assert_eq(fake_hosts_mapped(), 0);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK);
    cr_assert_eq(at[v.offset + UNIT], 0, "its pages went back to the host");
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
    munmap(at, 2 * UNIT);
}

Test(share_buffer, of_a_drivers_device_each_export_is_the_same_memory)
{
    struct share_handle one, other;
    struct share_view   v;
    unsigned char      *a, *b;

    fake_sharing(DEVICE_SHARES_EXPORT);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(make("a", 10), STATUS_OK, "%s", f.why.detail);
    make_buffer("plain", 10);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, UNIT + 10);
    cr_assert_eq(share_export(f.session, SPAN_LITERAL("a"), &one, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(share_export(f.session, SPAN_LITERAL("a"), &other, &f.why), STATUS_OK);
    cr_assert_eq(one.bytes, 10);
    cr_assert_eq(one.taken, UNIT);
    cr_assert_eq(one.unit, UNIT);
    cr_assert_neq(one.fd, other.fd);
    a = map(one.fd, UNIT);
    b = map(other.fd, UNIT);
    a[3] = 9;
    cr_assert_eq(b[3], 9);
    cr_assert_eq(byte_at("a", 3), 9);
    cr_assert_eq(share_export(f.session, SPAN_LITERAL("plain"), &one, &f.why), STATUS_INVALID_FIELD);
    cr_assert_str_eq(f.why.field.pointer, "/as");
    cr_assert_eq(share_export(f.session, SPAN_LITERAL("nobody"), &one, &f.why), STATUS_BUFFER_NOT_FOUND);
    cr_assert_eq(share_open(f.session, SPAN_LITERAL("a"), &v, &f.why), STATUS_OK); /* the copied kind goes as well */
    cr_assert_not(v.direct);
    close(v.fd);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, UNIT + 20);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 10);
    cr_assert_eq(a[3], 9);
    munmap(a, UNIT);
    munmap(b, UNIT);
}

Test(share_buffer, is_refused_with_a_word)
{
    struct share_handle h;
    struct buffer_info  info;

    cr_assert_eq(make("a", 10), STATUS_OK);
    cr_assert_eq(share_export(f.session, SPAN_LITERAL("a"), &h, &f.why), STATUS_INVALID_FIELD);
    cr_assert_eq(buffer_create(f.session, SPAN_LITERAL("a"), 10, false, &info, &f.created, &f.why), STATUS_SPEC_CONFLICT);
    cr_assert_str_eq(f.why.field.pointer, "/shareable");
    cr_assert_eq(make("a", 11), STATUS_SPEC_CONFLICT);
    cr_assert_eq(make("a", 10), STATUS_OK);
    cr_assert_eq(make("b", 0), STATUS_INVALID_FIELD);
    cr_assert_eq(make("b", UINT64_MAX - 1), STATUS_INVALID_FIELD);
    fake_sharing(DEVICE_SHARES_NOTHING);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(make("a", 10), STATUS_INVALID_FIELD);
    cr_assert_str_eq(f.why.field.pointer, "/shareable");
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
}

/* At every call of the worker, on both kinds of devices. */
Test(share_buffer, making_it_is_all_or_nothing)
{
    static const enum device_sharing kinds[] = {DEVICE_SHARES_FILE, DEVICE_SHARES_EXPORT};
    unsigned                         before;

    fake_spare(0, 0); /* no worker starts or ends meanwhile, which has descriptors, too */
    for (unsigned k = 0; k < COUNT(kinds); k++) {
        fake_sharing(kinds[k]);
        cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
        before = open_descriptors();
        for (int n = 0;; n++) {
            enum status st;

            fake_fail_at(n, STATUS_OUT_OF_MEMORY);
            st = make("a", MIB);
            cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, st ? 0 : MIB);
            cr_assert_eq(fake_live_allocations(), st ? 0 : 1);
            if (st)
                cr_assert_eq(open_descriptors(), before);
            if (fake_fault_unused())
                break;
        }
        fake_fail_at(-1, STATUS_OK);
        cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK);
        cr_assert_eq(open_descriptors(), before);
    }
}

Test(share_buffer, a_worker_that_lies_about_its_size_is_believed_nothing)
{
    fake_script()->lies = true;
    cr_assert_eq(make("a", MIB), STATUS_WORKER_LOST);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_SESSION_FAULTED);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
}

Test(share_buffer, ends_with_reset_and_session)
{
    unsigned before;

    before = open_descriptors();
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(make("a", 50 * MIB), STATUS_OK, "%s", f.why.detail);
        if (i < 2)
            cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    }
    cr_assert_eq(session_delete(f.session, &f.why), STATUS_OK);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
    fixture_end();
    cr_assert_leq(open_descriptors(), before);
}
