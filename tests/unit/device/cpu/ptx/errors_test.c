/* Errors are refused with their line, and hostile text does no harm. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/cpu/interp/variants.h"
#include "device/cpu/runtime/launch.h"
#include "unit/device/cpu/ptx/fixture.h"

static void refused(const char *text, struct ptx_module *m, const struct problem *why, const char *expected)
{
    cr_expect_null(m, "%s", text);
    cr_expect_eq(why->status, STATUS_MODULE_INVALID, "%s", text);
    cr_expect_not_null(strstr(why->detail, expected), "%s: %s", text, why->detail);
    ptx_module_destroy(m);
}

Test(ptx_errors, bodies_are_refused_with_their_line)
{
    static const struct {
        const char *body, *why;
    } rows[] = {
        {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2}];", "`t` is not declared, PTX line 6"},
        {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2};", "expected `]`"},
        {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1], {%f1, %f2};", "expected coordinates behind the texture"},
        {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%rd1, %f2}];", "is a register of the wrong width"},
        {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {_, %f2}];", "must be coordinates"},
        {"tex.2d.v4.f32.f32 {%f1, %f2, %f3}, [%rd1, {%f1, %f2}];", "is a vector of the wrong length"},
        {"tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];", "has too few operands"},
        {"tex.2d.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];", "is not supported"},
        {"add.volatile.s32 %r1, %r2, %r3;", "`add.volatile.s32` is not supported"},
        {"add.s32 %r1, %r2;", "`add.s32` has too few operands, PTX line 6"},
        {"add.s32 %r1, %r2, %r3, %r4;", "has too many operands"},
        {"add.s32 %r1, %rd2, %r3;", "operand 2 of `add.s32` is a register of the wrong width"},
        {"add.s32 %r1, %p2, %r3;", "must not be a predicate"},
        {"add.s32 5, %r2, %r3;", "operand 1 of `add.s32` must be a register"},
        {"add %r1, %r2, %r3;", "`add` needs a type"},
        {"mov %r1, 5;", "`mov` needs a type"},
        {"cvt.s64 %rd1, %r2;", "needs a second type"},
        {"mov.u32 %r1, %nothing;", "`%nothing` is not declared, PTX line 6"},
        {"mov.u32 %r1000, 1;", "`%r1000` is not declared"},
        {"mov.s32 %r1, 0f3F800000;", "is not a value of type .s32"},
        {"ld.global.v2.f32 {%f1, %f2, %f3}, [%rd1];", "is a vector of the wrong length"},
        {"ld.global.f32 %f1, %rd1;", "must be an address"},
        {"bra nowhere;", "label `nowhere` is not defined, PTX line 6"},
        {"x: x: ret;", "label `x` is defined twice"},
        {"brx.idx %r1, nowhere;", "is not a list of `.branchtargets`"},
        {"@%r1 bra x; x:", "a guard must be a predicate"},
        {"call nothing, ();", "`nothing` is not declared"},
        {".reg .b32 %r<3>;", "`%r` is declared twice"},
        {".reg .v4 .f32 %v; mov.f32 %f1, %v.q;", "`%v.q` is not declared"},
        {".reg .v2 .f32 %v; mov.f32 %f1, %v.z;", "`%v.z` is not declared"},
        {".reg .v2 .f32 %v; mov.f32 %f1, %v;", "has an element of the wrong width"},
        {".reg .v2 .pred %v;", "a vector of registers must have at most 32 bytes"},
        {"add.f32 %f1, %f2+4, %f3;", "a register of integers only"},
        {"add.s32 %r1+4, %r2, %r3;", "expected `,`"},
        {".reg .b32 %x<4000000000>;", "is too large"},
        {"ret", "expected an operand"},
        {"mov.u32 %r1, 99999999999999999999;", "expected an operand"},
        {".local .b8 big[99999999];", "is too large"},
        {"mul.wide.u64 %rd1, %rd2, %rd3;", "not supported on device cpu"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct problem     why;
        struct ptx_module *m = parse_body(rows[i].body, &why);

        refused(rows[i].body, m, &why, rows[i].why);
    }
}

/* Features that `GET /v1/devices` lists as unsupported, with an instruction of each kind. */
static const struct {
    const char *kind, *body, *named;
} absent[] = {
    {"texture_references", ".reg .texref %t;", "`.texref` is not supported on device cpu: texture references"},
    {"texture_references", ".reg .surfref %t;", "`.surfref` is not supported on device cpu: surface references"},
    {"mip_levels", "tex.base.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];", "`tex.base.2d.v4.f32.f32`"},
    {"surface_atomics", "sured.b.add.1d.u32.trap [%rd1, {%r2}], %r1;", "`sured.b.add.1d.u32.trap`"},
    {"cluster_launch_control", "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %rd1;", "`clusterlaunchcontrol."},
    {"asynchronous_stores", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%rd1], %r1, [%rd2];",
     "is not supported on device cpu: stores that an mbarrier waits for"},
    {"asynchronous_stores", "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%rd1], %r1, [%rd2];",
     "is not supported on device cpu: stores that an mbarrier waits for"},
    {"wgmma", "wgmma.fence.sync.aligned;", "`wgmma.fence.sync.aligned` is not supported on device cpu: wgmma"},
    {"bulk_copies", "cp.async.bulk.commit_group;", "`cp.async.bulk.commit_group` is not supported on device cpu: TMA"},
    {"bulk_copies", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%rd2], 16;", "`cp.reduce.async.bulk"},
    {"bulk_copies", "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%rd2], 16;", "`mbarrier.arrive.expect_tx.shared.b64`"},
    {"bulk_copies", "mbarrier.complete_tx.shared.b64 [%rd2], 16;", "`mbarrier.complete_tx.shared.b64`"},
    {"fp8_matrices",
     "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
     "`mma.sync"},
    {"fp6_and_fp4", "cvt.rn.satfinite.e2m1x2.f32 %rs1, %f1, %f2;", "`cvt.rn.satfinite.e2m1x2.f32`"},
    {"sparse_matrices", "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1,%r2}, {%r3,%r4}, {%r5,%r6}, {%r1,%r2}, %r7, 0;",
     "`mma.sp"},
    {"tensor_memory", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", "`tcgen05."},
    {"multimem", "multimem.ld_reduce.global.add.u32 %r1, [%rd1];", "`multimem.ld_reduce.global.add.u32`"},
    {"register_reallocation", "setmaxnreg.inc.sync.aligned.u32 64;", "`setmaxnreg.inc.sync.aligned.u32`"},
    {"packed_f32", "add.rn.f32x2 %rd1, %rd2, %rd3;", "`add.rn.f32x2`"},
    {"mixed_precision_add", "add.f32.f16 %f1, %rs1, %f2;", "`add.f32.f16`"},
    {"redux_f32", "redux.sync.min.f32 %f1, %f2, -1;", "`redux.sync.min.f32`"},
    {"128_bit_registers", "ld.global.b128 %rd1, [%rd2];", "`ld.global.b128`"},
    {"128_bit_registers", "atom.global.exch.b128 %rd1, [%rd2], %rd3;", "`atom.global.exch.b128`"},
};

Test(ptx_errors, what_the_device_lacks_is_refused_by_name)
{
    for (size_t i = 0; i < COUNT(absent); i++) {
        struct problem     why;
        struct ptx_module *m = parse_body(absent[i].body, &why);

        if (m) { /* then the interpreter refuses it */
            cr_expect_neq(cpu_code_load_as(m, NULL, 0, &why), STATUS_OK, "%s", absent[i].body);
            ptx_module_destroy(m);
            m = NULL;
        }
        refused(absent[i].body, m, &why, absent[i].named);
        cr_expect_not_null(strstr(why.detail, "line 6"), "%s: %s", absent[i].body, why.detail);
    }
}

/* Dynamic parallelism calls functions that no module defines. */
Test(ptx_errors, every_kind_that_the_device_lacks_is_tried)
{
    static const char *const kinds[] = {
#define UNSUPPORTED(word) word,
#include "device/cpu/ptx/tables/unsupported.def"
#undef UNSUPPORTED
    };
    struct problem     why;
    struct ptx_module *m = parse_text(".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);\n"
                                      ".entry k() { .param .b32 r; .param .b64 p; call (r), cudaLaunchDeviceV2, (p, p); }",
                                      &why);

    if (m) {
        cr_expect_neq(cpu_code_load_as(m, NULL, 0, &why), STATUS_OK);
        ptx_module_destroy(m);
    }
    cr_expect_not_null(strstr(why.detail, "cudaLaunchDeviceV2"), "%s", why.detail);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        bool tried = strcmp(kinds[k], "dynamic_parallelism") == 0;

        for (size_t i = 0; i < COUNT(absent); i++)
            tried = tried || strcmp(absent[i].kind, kinds[k]) == 0;
        cr_expect(tried, "%s", kinds[k]);
    }
}

Test(ptx_errors, modules_are_refused)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {".version nothing", "expected a version such as 7.8, got `nothing`, PTX line 1"},
        {".version 8.0 .target sm_75\n.address_size 32", "line 2"},
        {".version 5.1 .target sm_75\n", "PTX has no version 5.1"},
        {".version 9.9 .target sm_75\n", "PTX has no version 9.9"},
        {".version 0.9 .target sm_75\n", "PTX has no version 0.9"},
        {".version 1e0 .target sm_75\n", "PTX has no version 1e0"},
        {"nonsense", "`.func` or `.entry`, got `nonsense`, PTX line 4"},
        {".tex .u64 t;", "`.tex` is not supported on device cpu: texture references"},
        {".global .u32 a; .global .u32 a;", "`a` is declared twice"},
        {".global .u32 a[2] = {1, 2, 3};", "larger than its variable"},
        {".global .u32 a = {{{1}}};", "nested deeper"},
        {".global .u64 a = b;", "`b` is not a variable or function"},
        {".global .u8 a = f(1);", "an address needs"},
        {".global .u32 a[99999999999][99999999999];", "too large"},
        {".global .align 3 .u32 a;", "power of two"},
        {".extern .global .u32 a;", "but not defined"},
        {".shared .b8 a[70000];", "is too large"},
        {".entry k() { ret; } .entry k() { ret; }", "declared twice"},
        {".func f(.param .u32 a); .func f(.param .u64 a) { ret; }", "with another signature"},
        {".func f(.param .u32 a) { ret; } .entry k() { call f, (); }", "the call has 0 arguments, the function 1"},
        {".func f(.param .b64 a) { ret; } .entry k() { .param .b32 x; call f, (x); }", "has 4 bytes, the function's has 8"},
        {".entry k(.param .b8 a[32765]) { ret; }", "parameters of k exceed 32764 bytes"},
        {".entry k() .maxntid 64, 64 { ret; }", "1 to 1024 threads"},
        {".entry k() {", "got the end of the text"},
        {"\x01", "expected a variable"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct problem     why;
        struct ptx_module *m = parse_text(rows[i].text, &why);

        refused(rows[i].text, m, &why, rows[i].why);
    }
}

Test(ptx_errors, an_empty_text_lacks_its_version)
{
    struct ptx_module *m = NULL;
    struct problem     why = {0};

    cr_expect_eq(ptx_parse((struct span){"", 0}, &m, &why), STATUS_MODULE_INVALID);
    cr_expect_str_eq(why.detail, "expected `.version`, got the end of the text, PTX line 1");
}

Test(ptx_errors, deep_scopes_end_at_their_limit)
{
    char               body[4096];
    struct problem     why;
    struct ptx_module *m;

    memset(body, '{', 2000);
    body[2000] = '\0';
    m = parse_body(body, &why);
    refused("braces", m, &why, "scopes are nested too deeply");
}

/* Every prefix of a real text either parses or is refused; the sanitizers watch. */
Test(ptx_errors, cut_texts_do_no_harm)
{
    static char    text[64 * 1024];
    FILE          *f = fopen(PTX_FOLDER "/devfunc.ptx", "r");
    size_t         n;
    struct problem why;

    cr_assert_not_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    for (size_t cut = 0; cut < n; cut += 7) {
        struct ptx_module *m = NULL;
        char              *copy = strndup(text, cut);
        enum status        st = ptx_parse((struct span){copy, cut}, &m, &why);

        cr_expect(st == STATUS_OK || st == STATUS_MODULE_INVALID, "%zu", cut);
        ptx_module_destroy(m);
        free(copy);
    }
}
