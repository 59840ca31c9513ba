/* Modules: one per input, found by id, unloaded when nobody needs them, nothing left after a failure. */
#include "unit/session/session_fixture.h"

TestSuite(module, .init = fixture_usual, .fini = fixture_end);

static enum status create(const char *id, enum image_kind kind, const char *source, struct module **m, bool *created)
{
    struct module_spec spec = {.id = span_of(id), .kind = kind, .source = span_of(source)};

    return fixture_module(f.session, spec, m, created);
}

Test(module, identical_input_is_compiled_once)
{
    struct module     *a, *b;
    struct module_view va, vb;

    cr_assert_eq(create("", IMAGE_CUDA, "__global__ code", &a, &f.created), STATUS_OK, "%s", f.why.detail);
    cr_assert(f.created);
    cr_assert_eq(create("", IMAGE_CUDA, "__global__ code", &b, &f.created), STATUS_OK);
    cr_assert(!f.created);
    module_view_of(a, &va);
    module_view_of(b, &vb);
    cr_assert_str_eq(va.id, vb.id);
    cr_assert_eq(fake_compiles(), 1);
    cr_assert_eq(va.table->kernels_count, FAKE_KERNELS);
    cr_assert(span_is(va.ptx, "__global__ code"));
    cr_assert_str_eq(va.arch, "compute_75");
    cr_assert_eq(strlen(va.code_hash), 64);
    module_return(f.session, a);
    module_return(f.session, b);
}

Test(module, a_compilation_that_was_stopped_counts_as_a_fault_of_its_caller)
{
    static int          nobody;
    const struct tenant other = {&nobody, "other", 4, 1 << 30};
    struct session_spec spec = {.id = SPAN_LITERAL("o"), .memory_limit = MEMORY_LIMIT_NONE};
    struct session     *beside = NULL;
    struct module      *m;

    f.registry->config.crash_budget = 2;
    f.registry->config.crash_window_s = 3600;
    for (unsigned i = 1; i <= 2; i++) {
        cr_assert_eq(create("", IMAGE_CUDA, "endless", &m, &f.created), STATUS_COMPILE_TIMEOUT);
        cr_assert(strstr(f.why.detail, "stopped after 30 s") && strstr(f.why.detail, "counts toward the caller's crash budget"), "%s",
                  f.why.detail);
        cr_assert_eq(registry_faults_of(f.registry, &f.tenant), i);
    }
    cr_assert_eq(create("", IMAGE_CUDA, "__global__ code", &m, &f.created), STATUS_RATE_LIMITED);
    cr_assert(strstr(f.why.detail, "stopped or crashed compilations"), "%s", f.why.detail);
    cr_assert_eq(fake_compiles(), 2, "nothing is compiled for it");
    cr_assert_eq(session_create(f.registry, &other, &spec, &beside, &f.created, &f.why), STATUS_OK);
    cr_assert_eq(
        fixture_module(beside, (struct module_spec){.kind = IMAGE_CUDA, .source = SPAN_LITERAL("__global__ code")}, &m, &f.created),
        STATUS_OK, "%s", f.why.detail);
    module_return(beside, m);
    session_return(beside);
}

Test(module, an_id_means_one_input)
{
    struct module *m;

    make_module("m", "code");
    cr_assert_eq(create("m", IMAGE_PTX, "code", &m, &f.created), STATUS_OK);
    cr_assert(!f.created);
    module_return(f.session, m);
    cr_assert_eq(create("m", IMAGE_PTX, "other", &m, &f.created), STATUS_SPEC_CONFLICT);
    cr_assert_eq(create("M", IMAGE_PTX, "other", &m, &f.created), STATUS_INVALID_FIELD);
    cr_assert_eq(module_borrow(f.session, SPAN_LITERAL("n"), &m, &f.why), STATUS_MODULE_NOT_FOUND);
}

Test(module, that_does_not_compile_or_load_leaves_nothing)
{
    struct module *m;

    cr_assert_eq(create("m", IMAGE_CUDA, "a syntax error", &m, &f.created), STATUS_COMPILE_FAILED);
    cr_assert_not_null(f.why.compile_log.data);
    cr_assert_eq(create("m", IMAGE_PTX, "bad image", &m, &f.created), STATUS_MODULE_INVALID);
    cr_assert_eq(session_now().modules, 0);
    cr_assert_eq(fake_modules_loaded(), 0);
    cr_assert_eq(fake_slices_used(), 0);
    make_module("m", "code");
}

Test(module, input_is_checked)
{
    struct module_spec    spec = {.kind = IMAGE_PTX, .source = {"a\0b", 3}};
    struct compile_header header = {SPAN_LITERAL("../x.h"), SPAN_LITERAL("")};
    struct module        *m;

    fixture_start(64);
    cr_assert_eq(fixture_module(f.session, spec, &m, &f.created), STATUS_INVALID_FIELD);
    cr_assert_str_eq(f.why.field.pointer, "/source");
    cr_assert_eq(create("", IMAGE_CUDA, "", &m, &f.created), STATUS_INVALID_FIELD);
    spec = (struct module_spec){.kind = IMAGE_CUDA, .source = SPAN_LITERAL("x"), .headers = &header, .headers_count = 1};
    cr_assert_eq(fixture_module(f.session, spec, &m, &f.created), STATUS_INVALID_FIELD);
    cr_assert_str_eq(f.why.field.pointer, "/headers");
    header.name = SPAN_LITERAL("/etc/passwd");
    cr_assert_eq(fixture_module(f.session, spec, &m, &f.created), STATUS_INVALID_FIELD);
    header.name = SPAN_LITERAL("sub/x..h");
    cr_assert_eq(fixture_module(f.session, spec, &m, &f.created), STATUS_OK, "%s", f.why.detail);
    module_return(f.session, m);
    fixture_end();
}

Test(module, the_same_input_in_another_spelling_is_the_same_module)
{
    struct span           short_form[] = {SPAN_LITERAL("-DN=4"), SPAN_LITERAL("-std=c++17")};
    struct span           long_form[] = {SPAN_LITERAL("--define-macro"), SPAN_LITERAL("N=4"), SPAN_LITERAL("--std=c++17")};
    struct compile_header headers[] = {{SPAN_LITERAL("a.h"), SPAN_LITERAL("1")}, {SPAN_LITERAL("b.h"), SPAN_LITERAL("2")}};
    struct compile_header turned[] = {headers[1], headers[0]};
    struct module_spec    spec = {.kind = IMAGE_CUDA,
                                  .source = SPAN_LITERAL("code"),
                                  .options = short_form,
                                  .options_count = COUNT(short_form),
                                  .headers = headers,
                                  .headers_count = 2};
    struct module        *a, *b;

    fixture_start(64);
    cr_assert_eq(fixture_module(f.session, spec, &a, &f.created), STATUS_OK, "%s", f.why.detail);
    cr_assert(f.created);
    spec.options = long_form;
    spec.options_count = COUNT(long_form);
    spec.headers = turned;
    cr_assert_eq(fixture_module(f.session, spec, &b, &f.created), STATUS_OK, "%s", f.why.detail);
    cr_assert(!f.created);
    cr_assert_eq(a, b);
    module_return(f.session, a);
    module_return(f.session, b);
    fixture_end();
}

/* SHA-256 of "code": what was loaded is the source itself, which is hashed once. */
Test(module, ptx_is_known_by_its_own_hash)
{
    struct module     *m;
    struct module_view v;

    fixture_start(64);
    cr_assert_eq(create("", IMAGE_PTX, "code", &m, &f.created), STATUS_OK);
    module_view_of(m, &v);
    cr_assert_str_eq(v.code_hash, "5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b");
    module_return(f.session, m);
}

Test(module, larger_than_staging_travels_in_pieces)
{
    static char    source[3 * STAGING_SLICE_BYTES + 7];
    struct module *m;

    fixture_start(2);
    memset(source, 'x', sizeof source - 1);
    cr_assert_eq(create("m", IMAGE_PTX, source, &m, &f.created), STATUS_OK, "%s", f.why.detail);
    module_return(f.session, m);
    cr_assert_eq(fake_slices_used(), 0);
}

Test(module, deleted_stays_whole_for_its_borrower)
{
    struct module     *m, *other;
    struct module_view v;

    make_module("m", "code");
    cr_assert_eq(module_borrow(f.session, SPAN_LITERAL("m"), &m, &f.why), STATUS_OK);
    cr_assert_eq(module_delete(f.session, SPAN_LITERAL("m"), &f.why), STATUS_OK);
    cr_assert_eq(module_borrow(f.session, SPAN_LITERAL("m"), &other, &f.why), STATUS_MODULE_NOT_FOUND);
    module_view_of(m, &v);
    cr_assert(span_is(v.ptx, "code"));
    cr_assert_eq(fake_modules_loaded(), 1);
    module_return(f.session, m);
}

Test(module, borrowed_over_a_reset_and_a_delete_of_the_session)
{
    struct module     *m;
    struct module_view v;

    make_module("m", "code");
    cr_assert_eq(module_borrow(f.session, SPAN_LITERAL("m"), &m, &f.why), STATUS_OK);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(session_delete(f.session, &f.why), STATUS_OK);
    module_view_of(m, &v);
    cr_assert_str_eq(v.id, "m");
    module_return(f.session, m);
}

static void *create_cuda(void *out)
{
    struct module_spec spec = {.id = SPAN_LITERAL("slow"), .kind = IMAGE_CUDA, .source = SPAN_LITERAL("slow code")};
    struct arena       arena;
    struct problem     why;
    struct module     *m;
    bool               created;

    arena_init(&arena, 1 << 20);
    cr_assert_eq(module_spec_check(&spec, &arena, &why), STATUS_OK);
    *(enum status *)out = module_create(f.session, &spec, &arena, &m, &created, &why);
    arena_finish(&arena);
    return NULL;
}

Test(module, a_reset_does_not_wait_for_a_compile)
{
    enum status    st = STATUS_OK;
    pthread_t      thread;
    struct module *m;

    fake_script()->held = true;
    pthread_create(&thread, NULL, create_cuda, &st);
    fake_await_compiling();
    cr_assert_eq(module_borrow(f.session, SPAN_LITERAL("slow"), &m, &f.why), STATUS_MODULE_NOT_FOUND);
    cr_assert_eq(create("slow", IMAGE_CUDA, "slow code", &m, &f.created), STATUS_SESSION_BUSY);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    fake_script()->held = false;
    pthread_join(thread, NULL);
    cr_assert_eq(st, STATUS_SESSION_BUSY);
    cr_assert_eq(fake_modules_loaded(), 0);
}
