/* Argument packing, launch configuration, kernel names: pure functions. */
#include <criterion/criterion.h>

#include "session/code/kernel_name.h"
#include "session/launch/check.h"
#include "session/launch/params.h"

static struct kernel_param params[8];
static struct problem      why;
static struct packed       out;
static char                kernel_name[] = "saxpy";

static bool lookup(void *context, struct span id, uint64_t *address, uint64_t *bytes)
{
    (void)context;
    *address = 0x1000;
    *bytes = 256;
    return span_is(id, "a");
}

static enum status pack(unsigned params_count, const struct launch_arg *args, unsigned count)
{
    struct kernel_desc k = {.name = kernel_name, .params = params, .params_count = params_count};

    return params_pack(&k, &(struct launch_spec){.args = args, .args_count = count}, lookup, NULL, &out, &why);
}

/* All parameters at once. */
static enum status pack_block(unsigned params_bytes, struct span block)
{
    struct kernel_desc k = {.name = kernel_name, .params = params, .params_count = 2, .params_bytes = params_bytes};

    why = (struct problem){0};
    return params_pack(&k, &(struct launch_spec){.params = block}, lookup, NULL, &out, &why);
}

Test(check, takes_all_parameters_as_they_are)
{
    static const unsigned char block[16] = {1, 2, 3, 4, 5, 6, 7, 0xff, 9, 10, 11, 12, 13, 14, 15, 16};

    params[0] = (struct kernel_param){0, 8, "u64"};
    params[1] = (struct kernel_param){8, 4, "f32"};
    cr_assert_eq(pack_block(12, (struct span){(const char *)block, 12}), STATUS_OK);
    cr_assert(out.bytes == 12 && memcmp(out.data, block, 12) == 0);
    for (unsigned bytes = 0; bytes <= sizeof block; bytes++) {
        if (bytes == 12)
            continue;
        cr_assert_eq(pack_block(12, (struct span){(const char *)block, bytes}), STATUS_ARGUMENT_MISMATCH, "%u", bytes);
        cr_assert(strcmp(why.field.pointer, "/args") == 0 && strcmp(why.field.code, "size") == 0, "%u", bytes);
    }
    cr_assert_eq(pack_block(0, (struct span){(const char *)block, 4}), STATUS_ARGUMENT_MISMATCH);
    cr_assert(pack_block(0, (struct span){(const char *)block, 0}) == STATUS_OK && out.bytes == 0);
    cr_assert_eq(pack_block(KERNEL_PARAM_BYTES_MAX + 1, (struct span){(const char *)block, 4}), STATUS_INTERNAL);
}

static enum status pack_one(uint32_t size, struct launch_arg arg)
{
    params[0] = (struct kernel_param){0, size, ""};
    return pack(1, &arg, 1);
}

static struct launch_arg scalar(unsigned bytes, uint64_t value)
{
    return (struct launch_arg){.kind = ARG_SCALAR, .scalar_bytes = bytes, .value = value};
}

static struct launch_arg buffer(const char *id, uint64_t offset)
{
    return (struct launch_arg){.kind = ARG_BUFFER, .buffer = span_of(id), .offset = offset};
}

static struct launch_arg structure(const struct launch_arg *members, unsigned count)
{
    return (struct launch_arg){.kind = ARG_STRUCT, .members = members, .members_count = count};
}

Test(check, packs_scalars_little_endian_at_their_offsets)
{
    struct launch_arg   args[] = {scalar(1, 0x11), scalar(8, 0x8877665544332211), scalar(4, 0xaabbccdd), scalar(2, 0x1234)};
    const unsigned char want[] = {0x11, 0,    0,    0,    0,    0,    0,    0,    0x11, 0x22, 0x33,
                                  0x44, 0x55, 0x66, 0x77, 0x88, 0xdd, 0xcc, 0xbb, 0xaa, 0x34, 0x12};

    params[0] = (struct kernel_param){0, 1, ""};
    params[1] = (struct kernel_param){8, 8, ""};
    params[2] = (struct kernel_param){16, 4, ""};
    params[3] = (struct kernel_param){20, 2, ""};
    cr_assert_eq(pack(4, args, 4), STATUS_OK);
    cr_assert_eq(out.bytes, sizeof want);
    cr_assert_arr_eq(out.data, want, sizeof want);
}

Test(check, cuts_no_scalar_and_pads_none)
{
    cr_assert_eq(pack_one(4, scalar(8, 1)), STATUS_ARGUMENT_MISMATCH);
    cr_assert_str_eq(why.field.pointer, "/args/0");
    cr_assert_str_eq(why.detail, "argument 0 of saxpy takes 4 bytes, got 8");
    cr_assert_eq(pack_one(8, scalar(4, 1)), STATUS_ARGUMENT_MISMATCH);
    cr_assert_eq(pack_one(3, scalar(3, 1)), STATUS_ARGUMENT_MISMATCH);
    cr_assert_eq(pack_one(0, scalar(0, 1)), STATUS_ARGUMENT_MISMATCH);
    cr_assert_eq(pack_one(16, scalar(16, 1)), STATUS_ARGUMENT_MISMATCH);
}

Test(check, wants_exactly_as_many_arguments_as_there_are_parameters)
{
    struct launch_arg args[2] = {scalar(4, 1), scalar(4, 2)};

    params[0] = (struct kernel_param){0, 4, ""};
    cr_assert_eq(pack(1, args, 2), STATUS_ARGUMENT_MISMATCH);
    cr_assert_str_eq(why.field.pointer, "/args");
    cr_assert_eq(pack(1, args, 0), STATUS_ARGUMENT_MISMATCH);
    cr_assert_eq(pack(0, args, 0), STATUS_OK);
    cr_assert_eq(out.bytes, 0);
}

Test(check, turns_buffers_into_addresses)
{
    uint64_t address;

    cr_assert_eq(pack_one(8, buffer("a", 16)), STATUS_OK);
    memcpy(&address, out.data, 8);
    cr_assert_eq(address, 0x1010);
    cr_assert_eq(pack_one(8, buffer("a", 256)), STATUS_OK, "one behind the end is a legal pointer");
    cr_assert_eq(pack_one(8, buffer("a", 257)), STATUS_ARGUMENT_MISMATCH);
    cr_assert_str_eq(why.field.pointer, "/args/0");
    cr_assert_eq(pack_one(8, buffer("a", UINT64_MAX)), STATUS_ARGUMENT_MISMATCH);
    cr_assert_eq(pack_one(4, buffer("a", 0)), STATUS_ARGUMENT_MISMATCH);
    cr_assert_eq(pack_one(8, buffer("b", 0)), STATUS_BUFFER_NOT_FOUND);
    cr_assert_str_eq(why.field.pointer, "/args/0");
}

Test(check, copies_bytes_as_they_are)
{
    struct launch_arg a = {.kind = ARG_BYTES, .bytes = SPAN_LITERAL("abc")};

    cr_assert_eq(pack_one(3, a), STATUS_OK);
    cr_assert_arr_eq(out.data, "abc", 3);
    cr_assert_eq(pack_one(4, a), STATUS_ARGUMENT_MISMATCH);
    a.bytes.bytes = SIZE_MAX;
    cr_assert_eq(pack_one(3, a), STATUS_ARGUMENT_MISMATCH);
}

Test(check, lays_structs_out_as_c_does)
{
    struct inner {
        char  c;
        short s;
    };
    struct outer {
        char         c;
        uint64_t     pointer;
        struct inner inner;
        char         last;
    };
    struct launch_arg inner[] = {scalar(1, 0x55), scalar(2, 0x6677)};
    struct launch_arg members[] = {scalar(1, 0x11), buffer("a", 0), structure(inner, 2), scalar(1, 0x22)};
    struct outer      want;

    memset(&want, 0, sizeof want);
    want.c = 0x11;
    want.pointer = 0x1000;
    want.inner.c = 0x55;
    want.inner.s = 0x6677;
    want.last = 0x22;
    cr_assert_eq(pack_one(sizeof want, structure(members, 4)), STATUS_OK, "%s", why.detail);
    cr_assert_arr_eq(out.data, &want, sizeof want);
    cr_assert_eq(pack_one(sizeof want - 1, structure(members, 4)), STATUS_ARGUMENT_MISMATCH);
}

Test(check, names_the_member_of_a_struct_that_is_wrong)
{
    struct launch_arg members[] = {scalar(4, 1), buffer("nobody", 0)};

    cr_assert_eq(pack_one(16, structure(members, 2)), STATUS_BUFFER_NOT_FOUND);
    cr_assert_str_eq(why.field.pointer, "/args/0/struct/1");
}

Test(check, survives_structs_that_are_deep_huge_or_empty)
{
    static struct launch_arg deep[64], many[KERNEL_PARAM_BYTES_MAX + 1];

    for (unsigned i = 0; i < 63; i++)
        deep[i] = structure(&deep[i + 1], 1);
    deep[63] = scalar(4, 1);
    cr_assert_eq(pack_one(4, deep[0]), STATUS_ARGUMENT_MISMATCH);
    for (unsigned i = 0; i < COUNT(many); i++)
        many[i] = scalar(1, i);
    cr_assert_eq(pack_one(KERNEL_PARAM_BYTES_MAX, structure(many, KERNEL_PARAM_BYTES_MAX)), STATUS_OK);
    cr_assert_eq(pack_one(KERNEL_PARAM_BYTES_MAX + 1, structure(many, KERNEL_PARAM_BYTES_MAX + 1)), STATUS_ARGUMENT_MISMATCH);
    cr_assert_eq(pack_one(1, structure(NULL, 0)), STATUS_ARGUMENT_MISMATCH);
}

Test(check, refuses_a_kernel_table_whose_parameters_lie_outside_the_block)
{
    struct launch_arg a = scalar(8, 1);

    params[0] = (struct kernel_param){KERNEL_PARAM_BYTES_MAX - 4, 8, ""};
    cr_assert_eq(pack(1, &a, 1), STATUS_INTERNAL);
    params[0] = (struct kernel_param){UINT32_MAX, 8, ""};
    cr_assert_eq(pack(1, &a, 1), STATUS_INTERNAL);
}

/* ---- kinds of numbers ---- */

static struct launch_arg typed(const char *type, unsigned bytes)
{
    return (struct launch_arg){.kind = ARG_SCALAR, .scalar_bytes = bytes, .value = 1, .type = type};
}

static enum status pack_as(const char *declared, uint32_t size, struct launch_arg arg)
{
    why = (struct problem){0};
    params[0] = (struct kernel_param){.size = size};
    cr_assert(span_copy(span_of(declared), params[0].type, sizeof params[0].type));
    return pack(1, &arg, 1);
}

static void refuses(const char *declared, uint32_t size, struct launch_arg arg)
{
    cr_assert_eq(pack_as(declared, size, arg), STATUS_ARGUMENT_MISMATCH, "%s", declared);
    cr_assert_str_eq(why.field.pointer, "/args/0");
    cr_assert_str_eq(why.field.code, "type");
}

Test(check, takes_no_number_of_another_kind)
{
    refuses("f32", 4, typed("i32", 4));
    cr_assert_str_eq(why.detail,
                     "argument 0 of saxpy is i32, the parameter is f32: send {\"f32\": ...}, or {\"bytes\": ...} for raw bytes");
    refuses("f32", 4, typed("u32", 4));
    refuses("u32", 4, typed("f32", 4));
    cr_assert_str_eq(why.detail,
                     "argument 0 of saxpy is f32, the parameter is u32: send {\"u32\": ...}, or {\"bytes\": ...} for raw bytes");
    refuses("s32", 4, typed("f32", 4));
    refuses("f64", 8, typed("i64", 8));
    refuses("f64", 8, buffer("a", 0));
    refuses("u64", 8, typed("f64", 8));
    cr_assert_not_null(strstr(why.detail, "{\"buf\": ...}"));
    refuses("u16", 2, typed("f16", 2));
    refuses("u16", 2, typed("bf16", 2));
    refuses("f16", 2, typed("bf16", 2));
    refuses("bf16", 2, typed("f16", 2));
    refuses("f16", 2, typed("u16", 2));
    refuses("f32", 4, structure((struct launch_arg[]){typed("i32", 4)}, 1));
    refuses("f64", 8, structure((struct launch_arg[]){typed("f32", 4), typed("f32", 4)}, 2));
}

Test(check, takes_numbers_of_the_kind_whatever_their_sign)
{
    struct launch_arg raw = {.kind = ARG_BYTES, .bytes = SPAN_LITERAL("abcd")};

    cr_assert_eq(pack_as("u32", 4, typed("i32", 4)), STATUS_OK);
    cr_assert_eq(pack_as("s32", 4, typed("u32", 4)), STATUS_OK);
    cr_assert_eq(pack_as("u8", 1, typed("bool", 1)), STATUS_OK);
    cr_assert_eq(pack_as("f32", 4, typed("f32", 4)), STATUS_OK);
    cr_assert_eq(pack_as("bf16", 2, typed("bf16", 2)), STATUS_OK);
    cr_assert_eq(pack_as("u64", 8, buffer("a", 0)), STATUS_OK);
    cr_assert_eq(pack_as("u64", 8, typed("i64", 8)), STATUS_OK);
    cr_assert_eq(pack_as("f32", 4, raw), STATUS_OK);
    cr_assert_eq(pack_as("u32", 4, raw), STATUS_OK);
    cr_assert_eq(pack_as("f32", 4, structure((struct launch_arg[]){typed("f32", 4)}, 1)), STATUS_OK);
    cr_assert_eq(pack_as("u64", 8, structure((struct launch_arg[]){typed("u32", 4), typed("i32", 4)}, 2)), STATUS_OK);
    cr_assert_eq(pack_as("f32", 4, scalar(4, 1)), STATUS_OK, "of our own making");
}

Test(check, knows_no_kind_where_the_table_tells_none)
{
    cr_assert_eq(pack_as("", 4, typed("i32", 4)), STATUS_OK);
    cr_assert_eq(pack_as("b32", 4, typed("f32", 4)), STATUS_OK);
    cr_assert_eq(pack_as("b8", 2, typed("f16", 2)), STATUS_OK);
    cr_assert_eq(pack_as("b8", 8, buffer("a", 0)), STATUS_OK);
    cr_assert_eq(pack_as("f32", 8, structure((struct launch_arg[]){typed("u32", 4), typed("u32", 4)}, 2)), STATUS_OK, "an array of two");
}

static const struct device_facts device = {.max_threads_per_block = 1024,
                                           .max_block = {1024, 1024, 64},
                                           .max_grid = {0x7fffffff, 65535, 65535},
                                           .max_shared_bytes_per_block = 49152};

static enum status config(struct kernel_desc k, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                          uint32_t shared)
{
    return check_config(&k, &device, (uint32_t[]){gx, gy, gz}, (uint32_t[]){bx, by, bz}, shared, &why);
}

Test(check, configuration_against_the_device)
{
    struct kernel_desc k = {.max_threads = 1024};

    cr_assert_eq(config(k, 0x7fffffff, 65535, 65535, 1024, 1, 1, 49152), STATUS_OK);
    cr_assert_eq(config(k, 1, 1, 1, 16, 1, 64, 0), STATUS_OK);
    cr_assert_eq(config(k, 0, 1, 1, 1, 1, 1, 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_str_eq(why.field.pointer, "/grid");
    cr_assert_eq(config(k, 1, 65536, 1, 1, 1, 1, 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_str_eq(why.field.pointer, "/grid");
    cr_assert_eq(config(k, 1, 1, 1, 1, 0, 1, 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_str_eq(why.field.pointer, "/block");
    cr_assert_eq(config(k, 1, 1, 1, 1, 1, 65, 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_str_eq(why.detail, "block dimension 2 is 65, the device allows 64");
    cr_assert_eq(config(k, 1, 1, 1, 1024, 2, 1, 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(config(k, 1, 1, 1, 1024, 1024, 64, 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(config(k, 1, 1, 1, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_str_eq(why.field.pointer, "/block");
}

Test(check, configuration_against_the_kernel)
{
    cr_assert_eq(config((struct kernel_desc){.max_threads = 64}, 1, 1, 1, 65, 1, 1, 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(config((struct kernel_desc){.max_threads = 64}, 1, 1, 1, 64, 1, 1, 0), STATUS_OK);
    cr_assert_eq(config((struct kernel_desc){.shared_bytes = 1}, 1, 1, 1, 1, 1, 1, 49152), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_str_eq(why.field.pointer, "/shared_bytes");
    cr_assert_eq(config((struct kernel_desc){.shared_bytes = UINT32_MAX}, 1, 1, 1, 1, 1, 1, UINT32_MAX), STATUS_LAUNCH_CONFIG_INVALID);
}

Test(check, grid_from_a_number_of_threads)
{
    uint32_t grid[3];

    cr_assert_eq(check_grid_of(1000, (uint32_t[]){128, 1, 1}, &device, grid, &why), STATUS_OK);
    cr_assert_eq(grid[0], 8);
    cr_assert_eq(grid[1] * grid[2], 1);
    cr_assert_eq(check_grid_of(1024, (uint32_t[]){16, 16, 2}, &device, grid, &why), STATUS_OK);
    cr_assert_eq(grid[0], 2);
    cr_assert_eq(check_grid_of(0, (uint32_t[]){128, 1, 1}, &device, grid, &why), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(check_grid_of(UINT64_MAX, (uint32_t[]){1, 1, 1}, &device, grid, &why), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(check_grid_of(UINT64_MAX, (uint32_t[]){UINT32_MAX, UINT32_MAX, UINT32_MAX}, &device, grid, &why),
                 STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(check_grid_of(5, (uint32_t[]){0, 1, 1}, &device, grid, &why), STATUS_LAUNCH_CONFIG_INVALID);
}

static void add(struct kernel_table *t, const char *name)
{
    cr_assert_not_null(kernel_table_add(t, span_of(name), 0));
}

Test(check, finds_kernels_by_the_name_in_the_source)
{
    struct kernel_table t;

    kernel_table_init(&t);
    add(&t, "plain");
    add(&t, "_Z4vaddPKfS0_Pfi");
    add(&t, "_ZN3foo3barEv");
    add(&t, "_ZN3foo3bar3bazEv");
    add(&t, "_Z5twicef");
    add(&t, "_Z5twiced");
    add(&t, "_Z99x");
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("plain")), 0);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("vadd")), 1);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("_Z4vaddPKfS0_Pfi")), 1);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("foo::bar")), 2);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("foo::bar::baz")), 3);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("twice")), -2);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("_Z5twiced")), 5);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("vad")), -1);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("vadd2")), -1);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("foo")), -1);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("foo::")), -1);
    cr_assert_eq(kernel_index(&t, SPAN_LITERAL("")), -1);
    kernel_table_finish(&t);
}
