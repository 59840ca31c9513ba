/* memcheck in kernels: before each access to device memory an operation compares it with the memory's shadow. Only code decoded for
 * memcheck has these operations. Accesses to shared, local and parameter memory have exact checks of their own. */
#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/interp/ops/access.h"
#include "device/cpu/runtime/memcheck.h"

static _Noreturn void report_access(struct lanes *l, enum check_access how, enum shadow_state found, uint64_t address, uint32_t bytes,
                                    uint32_t lane)
{
    const struct bad_access a = {ACCESS_GLOBAL, address, bytes};
    const char             *what = how == CHECK_READ ? "read" : how == CHECK_WRITE ? "write" : "atomic";
    struct cpu_nearest      nearest;
    char                    where[96];

    /* The text names the first byte in that state. */
    while (cpu_shadow_lowest(l->run->grid->shadow, address, 1) != found && bytes > 1) {
        address++;
        bytes--;
    }
    nearest = cpu_memory_nearest(l->run->grid->memory, address);
    cpu_nearest_describe(&nearest, address, where, sizeof where);
    if (found == SHADOW_FRESH)
        block_fault_access(l, FAULT_UNINITIALISED, lane, &a, "%s of uninitialised memory at 0x%llx, %s", what, (unsigned long long)address,
                           where);
    block_fault_access(l, FAULT_ILLEGAL_ADDRESS, lane, &a, "illegal %s at 0x%llx, %s", what, (unsigned long long)address, where);
}

static void check_lane(struct lanes *l, uint64_t address, uint32_t bytes, enum check_access how, uint32_t lane)
{
    struct cpu_shadow *s = l->run->grid->shadow;
    enum shadow_state  found;

    if (!s || address - s->base >= s->span || bytes > s->span - (address - s->base))
        return; /* not device memory: the access itself refuses it */
    found = cpu_shadow_lowest(s, address, bytes);
    if (found == SHADOW_FOREIGN || (found == SHADOW_FRESH && how != CHECK_WRITE))
        report_access(l, how, found, address, bytes, lane);
    if (how != CHECK_READ)
        cpu_shadow_set(s, address, bytes, SHADOW_WRITTEN);
}

void check_now(struct lanes *l, enum op_space s, uint64_t address, uint32_t bytes, enum check_access how, uint32_t lane)
{
    if (l->run->grid->shadow && (s == OP_GLOBAL || (s == OP_GENERIC && space_of(&address) == OP_GLOBAL)))
        check_lane(l, address, bytes, how, lane);
}

/* mode: the space; width: bytes; b: enum check_access. */
static void check_access(struct lanes *l, const struct op *o)
{
    const uint64_t *address = LANE(uint64_t, o->a);

    LANES_EACH(check_now(l, (enum op_space)o->mode, address[i] + (uint64_t)o->immediate, o->width, (enum check_access)o->b, i));
}

void decode_check(struct decoder *d, const struct decoded_address *at, unsigned bytes, enum check_access how)
{
    struct op o = access_op(check_access, at);

    if (!d->code->checked || (at->space != OP_GLOBAL && at->space != OP_GENERIC))
        return;
    o.width = (uint8_t)bytes;
    o.b = how;
    decode_op(d, o);
}
