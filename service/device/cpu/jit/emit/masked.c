/* Loads and stores for some lanes of a chunk, and masks as numbers. Where the host's vectors have no masks (NEON), LLVM would make a branch for each
 * lane of each access: there lanes that take no part access a word of the call instead, and all others their own place, one after the other. */
#include "device/cpu/jit/emit/emit.h"

#include <assert.h>

enum { LANES_EACH = 8 }; /* of a mask that becomes a byte */

static bool is_whole(const struct emitter *e, llvm_value mask)
{
    return mask == e->ll->LLVMConstAllOnes(vector_of(e, e->i1)); /* LLVM has each constant once */
}

static llvm_value lane_number(const struct emitter *e, unsigned lane)
{
    return number(e, 32, lane);
}

/* 64 bits each; `at` is the first lane's address where the lanes' are a row. */
static llvm_value lane_addresses(struct emitter *e, llvm_value at, bool row, unsigned bytes, llvm_value mask)
{
    llvm_value nowhere = binary(e, LLVM_ADD, e->call, number(e, 64, offsetof(struct native_call, nowhere)));

    if (row)
        at = binary(e, LLVM_ADD, spread(e, at), binary(e, LLVM_MUL, cast(e, LLVM_ZEXT, e->every, e->i64), like(e, false, 64, bytes)));
    return choose(e, mask, at, spread(e, nowhere));
}

static llvm_value lane_pointer_of(struct emitter *e, llvm_value addresses, unsigned lane, llvm_type type)
{
    return pointer(e, e->ll->LLVMBuildExtractElement(e->b, addresses, lane_number(e, lane), ""), type);
}

static llvm_value load_lanes(struct emitter *e, llvm_value addresses, llvm_type type, unsigned bytes)
{
    llvm_value all = e->ll->LLVMGetUndef(vector_of(e, type));

    for (unsigned i = 0; i < e->lanes; i++) {
        llvm_value one = e->ll->LLVMBuildLoad2(e->b, type, lane_pointer_of(e, addresses, i, type), "");

        e->ll->LLVMSetAlignment(one, bytes);
        all = e->ll->LLVMBuildInsertElement(e->b, all, one, lane_number(e, i), "");
    }
    return all;
}

/* Of lanes that write to one place, the last one's value stays. */
static void store_lanes(struct emitter *e, llvm_value addresses, llvm_value v, llvm_type type, unsigned bytes)
{
    for (unsigned i = 0; i < e->lanes; i++) {
        llvm_value one = e->ll->LLVMBuildExtractElement(e->b, v, lane_number(e, i), "");

        e->ll->LLVMSetAlignment(e->ll->LLVMBuildStore(e->b, one, lane_pointer_of(e, addresses, i, type)), bytes);
    }
}

static llvm_value pointers(struct emitter *e, llvm_value at, bool row, llvm_type type)
{
    return row ? pointer(e, at, vector_of(e, type))
               : e->ll->LLVMBuildCast(e->b, LLVM_INTTOPTR, at, vector_of(e, e->ll->LLVMPointerType(type, 0)), "");
}

llvm_value masked_load(struct emitter *e, llvm_value at, bool row, unsigned bytes, llvm_value mask)
{
    llvm_type  type = int_type(e, 8 * bytes), types[2] = {vector_of(e, type), NULL};
    llvm_value args[4];

    if (e->ll->neon && !(row && is_whole(e, mask)))
        return load_lanes(e, lane_addresses(e, at, row, bytes, mask), type, bytes);
    args[0] = pointers(e, at, row, type);
    args[1] = number(e, 32, bytes);
    args[2] = mask;
    args[3] = e->ll->LLVMGetUndef(types[0]);
    types[1] = e->ll->LLVMTypeOf(args[0]);
    return intrinsic(e, row ? "llvm.masked.load" : "llvm.masked.gather", types, 2, args, 4);
}

void masked_store(struct emitter *e, llvm_value at, bool row, unsigned bytes, llvm_value v, llvm_value mask)
{
    llvm_type  type = int_type(e, 8 * bytes), types[2] = {vector_of(e, type), NULL};
    llvm_value args[4];

    if (e->ll->neon && !(row && is_whole(e, mask))) {
        store_lanes(e, lane_addresses(e, at, row, bytes, mask), v, type, bytes);
        return;
    }
    args[0] = v;
    args[1] = pointers(e, at, row, type);
    args[2] = number(e, 32, bytes);
    args[3] = mask;
    types[1] = e->ll->LLVMTypeOf(args[1]);
    intrinsic(e, row ? "llvm.masked.store" : "llvm.masked.scatter", types, 2, args, 4);
}

void own_store(struct emitter *e, llvm_value at, unsigned bytes, llvm_value v, llvm_value mask)
{
    llvm_type  type = vector_of(e, int_type(e, 8 * bytes));
    llvm_value before, store;

    if (!e->ll->neon || is_whole(e, mask)) {
        masked_store(e, at, true, bytes, v, mask);
        return;
    }
    before = e->ll->LLVMBuildLoad2(e->b, type, pointer(e, at, type), "");
    e->ll->LLVMSetAlignment(before, bytes);
    store = e->ll->LLVMBuildStore(e->b, choose(e, mask, v, before), pointer(e, at, type));
    e->ll->LLVMSetAlignment(store, bytes);
}

/* 1, 2, 4, ... of lanes first, first + 1, ... */
static llvm_value lane_bits(const struct emitter *e, unsigned bits, unsigned count)
{
    llvm_value elements[NATIVE_LANES_MAX];

    assert(count <= NATIVE_LANES_MAX);
    for (unsigned i = 0; i < count; i++)
        elements[i] = number(e, bits, 1ull << i);
    return e->ll->LLVMConstVector(elements, count);
}

static llvm_value byte_of_mask(struct emitter *e, llvm_value mask, unsigned first)
{
    llvm_type  type = e->ll->LLVMVectorType(e->i8, LANES_EACH);
    llvm_value from[LANES_EACH], some;

    for (unsigned i = 0; i < LANES_EACH; i++)
        from[i] = lane_number(e, first + i);
    some = e->ll->LLVMBuildShuffleVector(e->b, mask, mask, e->ll->LLVMConstVector(from, LANES_EACH), "");
    some = binary(e, LLVM_AND, e->ll->LLVMBuildCast(e->b, LLVM_SEXT, some, type, ""), lane_bits(e, 8, LANES_EACH));
    some = intrinsic(e, "llvm.vector.reduce.add", &type, 1, &some, 1);
    return binary(e, LLVM_SHL, cast(e, LLVM_ZEXT, some, e->i32), number(e, 32, first));
}

llvm_value mask_bits(struct emitter *e, llvm_value mask)
{
    llvm_value bits;

    if (e->ll->neon && e->lanes <= NATIVE_LANES_MAX) {
        bits = byte_of_mask(e, mask, 0);
        for (unsigned first = LANES_EACH; first < e->lanes; first += LANES_EACH)
            bits = binary(e, LLVM_OR, bits, byte_of_mask(e, mask, first));
        return bits;
    }
    bits = e->ll->LLVMBuildCast(e->b, LLVM_BITCAST, mask, int_type(e, e->lanes), "");
    return e->lanes == 32 ? bits : cast(e, LLVM_ZEXT, bits, e->i32);
}

llvm_value lanes_vector(struct emitter *e, llvm_value bits)
{
    llvm_value few;

    if (e->ll->neon)
        return icmp(e, LLVM_NE, binary(e, LLVM_AND, spread(e, bits), lane_bits(e, 32, e->lanes)), like(e, false, 32, 0));
    few = e->lanes == 32 ? bits : cast(e, LLVM_TRUNC, bits, int_type(e, e->lanes));
    return e->ll->LLVMBuildCast(e->b, LLVM_BITCAST, few, vector_of(e, e->i1), "");
}
