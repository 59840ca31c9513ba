/* Names in a hash table with chains; a scope's end removes the newest. */
#include "device/cpu/ptx/names.h"
#include "device/cpu/bounds.h"

#include <stdlib.h>

enum { BUCKETS = 1 << 14, ROOM_FIRST = 64, NUMBER_DIGITS_MAX = 9 };

bool ptx_grow(void **array, uint32_t *room, uint32_t count, size_t element_bytes, uint32_t max)
{
    uint32_t wanted = *room ? *room : ROOM_FIRST;
    void    *bigger;

    if (count < *room)
        return true;
    if (count >= max)
        return false;
    wanted = *room > max / 2 ? max : *room ? *room * 2 : wanted;
    bigger = reallocarray(*array, wanted, element_bytes);
    if (!bigger)
        return false;
    *array = bigger;
    *room = wanted;
    return true;
}

bool ptx_names_init(struct ptx_names *n)
{
    *n = (struct ptx_names){.buckets = malloc(BUCKETS * sizeof(uint32_t))};
    if (n->buckets)
        memset(n->buckets, 0xff, BUCKETS * sizeof(uint32_t));
    return n->buckets != NULL;
}

void ptx_names_finish(struct ptx_names *n)
{
    free(n->all);
    free(n->buckets);
    *n = (struct ptx_names){0};
}

/* FNV-1a */
static uint32_t bucket_of(struct span text)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < text.bytes; i++)
        h = (h ^ (unsigned char)text.data[i]) * 16777619u;
    return (h ^ h >> 15) % BUCKETS;
}

struct ptx_name *ptx_names_add(struct ptx_names *n, struct span text, enum ptx_name_kind kind)
{
    uint32_t         bucket = bucket_of(text);
    struct ptx_name *added;

    if (!ptx_grow((void **)&n->all, &n->room, n->count, sizeof *n->all, PTX_NAMES_MAX))
        return NULL;
    added = &n->all[n->count];
    *added = (struct ptx_name){.text = text, .kind = kind, .bucket = bucket, .next = n->buckets[bucket]};
    n->buckets[bucket] = n->count++;
    return added;
}

struct ptx_name *ptx_names_find(const struct ptx_names *n, struct span text)
{
    for (uint32_t i = n->buckets[bucket_of(text)]; i != PTX_NO_INDEX; i = n->all[i].next) {
        if (span_equal(n->all[i].text, text))
            return &n->all[i];
    }
    return NULL;
}

bool ptx_names_has_since(const struct ptx_names *n, struct span text, uint32_t mark)
{
    const struct ptx_name *found = ptx_names_find(n, text);

    return found && (uint32_t)(found - n->all) >= mark;
}

static size_t digits_at_end(struct span text)
{
    size_t digits = 0;

    while (digits < text.bytes && digits < NUMBER_DIGITS_MAX && text.data[text.bytes - 1 - digits] >= '0' &&
           text.data[text.bytes - 1 - digits] <= '9')
        digits++;
    return digits;
}

/* "%r<5>" declares %r0 to %r4; the prefix may itself end with digits. *first: the register, or the first of the vector. */
static const struct ptx_name *find_register(const struct ptx_names *n, struct span text, uint32_t *first)
{
    const struct ptx_name *found = ptx_names_find(n, text);
    uint64_t               number;

    if (found && found->kind == NAME_REGISTER) {
        *first = found->first;
        return found;
    }
    for (size_t digits = digits_at_end(text); digits > 0; digits--) {
        struct span tail = span_from(text, text.bytes - digits);
        found = ptx_names_find(n, span_first(text, text.bytes - digits));
        if (found && found->kind == NAME_REGISTERS && span_u64(tail, &number) && number < found->count &&
            (digits == 1 || tail.data[0] != '0')) {
            *first = found->first + (uint32_t)number * found->vector;
            return found;
        }
    }
    return NULL;
}

/* "%v.x", also as a colour: "%v.r". */
static uint32_t find_element(const struct ptx_names *n, struct span text)
{
    static const char      elements[] = "xyzwrgba";
    struct span            base = span_first(text, text.bytes < 2 ? 0 : text.bytes - 2), tail = span_from(text, base.bytes);
    const char            *at = tail.bytes == 2 && tail.data[0] == '.' && tail.data[1] ? strchr(elements, tail.data[1]) : NULL;
    uint32_t               first = 0, i = at ? (uint32_t)(at - elements) % 4 : 0;
    const struct ptx_name *found = at ? find_register(n, base, &first) : NULL;

    return found && found->vector > 1 && i < found->vector ? first + i : PTX_NO_REG;
}

uint32_t ptx_names_register(const struct ptx_names *n, struct span text)
{
    uint32_t               first;
    const struct ptx_name *found = find_register(n, text, &first);

    if (found)
        return found->vector == 1 ? first : PTX_NO_REG;
    return find_element(n, text);
}

uint32_t ptx_names_vector(const struct ptx_names *n, struct span text, unsigned *elements)
{
    uint32_t               first;
    const struct ptx_name *found = find_register(n, text, &first);

    if (!found || found->vector == 1)
        return PTX_NO_REG;
    *elements = found->vector;
    return first;
}

void ptx_names_release(struct ptx_names *n, uint32_t mark)
{
    while (n->count > mark) {
        n->count--;
        n->buckets[n->all[n->count].bucket] = n->all[n->count].next;
    }
}
