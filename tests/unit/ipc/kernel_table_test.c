/* The serialized kernel table: writing and reading are inverse, and malformed bytes are refused. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "ipc/kernel_table.h"

static void table_fill(struct kernel_table *t)
{
    struct kernel_desc   *k;
    struct kernel_global *g;

    kernel_table_init(t);
    k = kernel_table_add(t, span_of("vadd"), 2);
    k->registers = 12;
    k->shared_bytes = 64;
    k->max_threads = 1024;
    k->params_bytes = 12;
    k->params[0] = (struct kernel_param){0, 8, "u64"};
    k->params[1] = (struct kernel_param){8, 4, "f32"};
    cr_assert_not_null(kernel_table_add(t, span_of("_Z5emptyv"), 0));
    g = kernel_table_add_global(t, span_of("table"));
    g->address = 0x7000;
    g->bytes = 256;
    g->constant = 1;
}

static void encode(struct buf *out)
{
    struct kernel_table t;

    table_fill(&t);
    buf_init(out, KERNEL_TABLE_BYTES_MAX);
    cr_assert_eq(kernel_table_encode(&t, out), STATUS_OK);
    kernel_table_finish(&t);
}

Test(kernel_table, comes_back_as_it_was)
{
    struct kernel_table t;
    struct buf          b;

    encode(&b);
    cr_assert_eq(kernel_table_decode(buf_span(&b), &t), STATUS_OK);
    cr_assert_eq(t.kernels_count, 2);
    cr_assert_str_eq(t.kernels[0].name, "vadd");
    cr_assert_eq(t.kernels[0].registers, 12);
    cr_assert_eq(t.kernels[0].shared_bytes, 64);
    cr_assert_eq(t.kernels[0].max_threads, 1024);
    cr_assert_eq(t.kernels[0].params_bytes, 12);
    cr_assert_eq(t.kernels[0].params[1].offset, 8);
    cr_assert_eq(t.kernels[0].params[1].size, 4);
    cr_assert_str_eq(t.kernels[0].params[1].type, "f32");
    cr_assert_eq(t.kernels[1].params_count, 0);
    cr_assert_eq(t.globals_count, 1);
    cr_assert_str_eq(t.globals[0].name, "table");
    cr_assert_eq(t.globals[0].address, 0x7000);
    cr_assert_eq(t.globals[0].constant, 1);
    cr_assert_eq(kernel_table_find(&t, span_of("_Z5emptyv")), 1);
    cr_assert_eq(kernel_table_find(&t, span_of("_Z5empty")), -1);
    kernel_table_finish(&t);
    buf_finish(&b);
}

Test(kernel_table, every_truncation_and_every_tail_is_refused)
{
    struct kernel_table t;
    struct buf          b;

    encode(&b);
    for (size_t n = 0; n < b.bytes; n++) {
        char *copy = malloc(n ? n : 1); /* of exactly that size, so that reads past it are detected */

        memcpy(copy, b.data, n);
        cr_assert_eq(kernel_table_decode((struct span){copy, n}, &t), STATUS_INTERNAL, "cut to %zu bytes", n);
        cr_assert_eq(t.kernels_count, 0);
        free(copy);
    }
    buf_add(&b, "x", 1);
    cr_assert_eq(kernel_table_decode(buf_span(&b), &t), STATUS_INTERNAL);
    buf_finish(&b);
}

/* Whichever byte is changed: no crash, and an accepted table keeps the bounds that its readers rely on. */
Test(kernel_table, changed_bytes_never_break_the_bounds)
{
    struct kernel_table t;
    struct buf          b;

    encode(&b);
    for (size_t i = 0; i < b.bytes; i++) {
        char was = b.data[i];

        for (unsigned bit = 0; bit < 8; bit++) {
            b.data[i] = (char)(was ^ (1 << bit));
            if (kernel_table_decode(buf_span(&b), &t) != STATUS_OK)
                continue;
            for (uint32_t k = 0; k < t.kernels_count; k++) {
                cr_assert_leq(t.kernels[k].params_bytes, KERNEL_PARAM_BYTES_MAX);
                for (uint32_t p = 0; p < t.kernels[k].params_count; p++) {
                    cr_assert_leq((uint64_t)t.kernels[k].params[p].offset + t.kernels[k].params[p].size, t.kernels[k].params_bytes);
                    cr_assert_not_null(memchr(t.kernels[k].params[p].type, 0, sizeof t.kernels[k].params[p].type));
                }
            }
            kernel_table_finish(&t);
        }
        b.data[i] = was;
    }
    buf_finish(&b);
}

Test(kernel_table, limits_hold)
{
    struct kernel_table t;
    struct buf          b;
    char                name[32];

    kernel_table_init(&t);
    cr_assert_null(kernel_table_add(&t, span_of("k"), KERNEL_PARAMS_MAX + 1));
    cr_assert_null(kernel_table_add(&t, span_of(""), 0));
    for (unsigned i = 0; i < KERNELS_PER_MODULE_MAX; i++) {
        snprintf(name, sizeof name, "k%u", i);
        cr_assert_not_null(kernel_table_add(&t, span_of(name), 0));
    }
    cr_assert_null(kernel_table_add(&t, span_of("one_more"), 0));
    cr_assert_eq(kernel_table_find(&t, span_of("k4095")), 4095);
    buf_init(&b, 1000);
    cr_assert_eq(kernel_table_encode(&t, &b), STATUS_OUT_OF_MEMORY);
    buf_finish(&b);
    kernel_table_finish(&t);
}
