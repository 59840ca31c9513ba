/* Masks of lanes: one byte per lane, 1 or 0, eight at a time. All are 0 outside [low, high); arrays end at a multiple of 64. */
#include "device/cpu/bounds.h"
#include "device/cpu/interp/interp.h"

enum { WORD_LANES = 8 };

#define EVERY_LANE 0x0101010101010101ull

static uint64_t word_at(const uint8_t *m, uint32_t w)
{
    uint64_t v;

    memcpy(&v, m + (size_t)w * WORD_LANES, sizeof v);
    return v;
}

static void put_word(uint8_t *m, uint32_t w, uint64_t v)
{
    memcpy(m + (size_t)w * WORD_LANES, &v, sizeof v);
}

/* Of a word whose bytes are sums of at most CPU_BLOCK_THREADS_MAX / WORD_LANES ones. */
static uint32_t sum_of_bytes(uint64_t v)
{
    v = (v & 0x00ff00ff00ff00ffull) + (v >> 8 & 0x00ff00ff00ff00ffull);
    return (uint32_t)(v * 0x0001000100010001ull >> 48);
}
static_assert(CPU_BLOCK_THREADS_MAX / WORD_LANES <= 255, "a byte holds the sum of one lane of every word");

static uint32_t word_above(uint32_t lane)
{
    return (lane + WORD_LANES - 1) / WORD_LANES;
}

void mask_clear(struct mask *m)
{
    if (m->count)
        memset(m->m + m->low, 0, m->high - m->low);
    *m = (struct mask){.m = m->m};
}

/* Sets count, and shrinks [low, high), which must contain all ones, to them. */
static void measure_mask(struct mask *m, uint32_t low, uint32_t high, uint32_t count)
{
    uint32_t first = low / WORD_LANES, last = word_above(high);

    m->count = count;
    m->low = m->high = 0;
    if (!count)
        return;
    while (!word_at(m->m, first))
        first++;
    while (!word_at(m->m, last - 1))
        last--;
    m->low = first * WORD_LANES + (uint32_t)__builtin_ctzll(word_at(m->m, first)) / 8;
    m->high = last * WORD_LANES - (uint32_t)__builtin_clzll(word_at(m->m, last - 1)) / 8;
}

void mask_measure(struct mask *m, uint32_t count)
{
    uint64_t sum = 0;

    for (uint32_t w = 0, end = word_above(count); w < end; w++)
        sum += word_at(m->m, w);
    measure_mask(m, 0, count, sum_of_bytes(sum));
}

/* The arrays of the loops below never overlap. `restrict` says so: to the compiler, bytes may alias anything. */
void mask_add(struct mask *to, const struct mask *m)
{
    uint8_t *restrict t = to->m;
    const uint8_t *restrict from = m->m;
    const uint32_t low = to->count && to->low < m->low ? to->low : m->low, high = to->high > m->high ? to->high : m->high;
    uint64_t       sum = 0;

    for (uint32_t w = m->low / WORD_LANES, end = word_above(m->high); w < end; w++)
        put_word(t, w, word_at(t, w) | word_at(from, w));
    for (uint32_t w = low / WORD_LANES, end = word_above(high); w < end; w++)
        sum += word_at(t, w);
    to->low = low;
    to->high = high;
    to->count = sum_of_bytes(sum);
}

void mask_remove(uint8_t *lanes, const struct mask *m)
{
    uint8_t *restrict t = lanes;
    const uint8_t *restrict from = m->m;

    for (uint32_t w = m->low / WORD_LANES, end = word_above(m->high); w < end; w++)
        put_word(t, w, word_at(t, w) & ~word_at(from, w));
}

uint32_t mask_holds(const struct mask *m, const uint8_t *predicate, uint8_t flip)
{
    const uint64_t flips = flip ? EVERY_LANE : 0;
    uint64_t       sum = 0;

    for (uint32_t w = m->low / WORD_LANES, end = word_above(m->high); w < end; w++)
        sum += word_at(m->m, w) & (word_at(predicate, w) ^ flips);
    return sum_of_bytes(sum);
}

void mask_pick(struct mask *to, const struct mask *m, const uint8_t *predicate, uint8_t flip)
{
    uint8_t *restrict t = to->m;
    const uint8_t *restrict from = m->m, *restrict p = predicate;
    const uint64_t flips = flip ? EVERY_LANE : 0;
    uint64_t       sum = 0;

    mask_clear(to);
    for (uint32_t w = m->low / WORD_LANES, end = word_above(m->high); w < end; w++) {
        const uint64_t v = word_at(from, w) & (word_at(p, w) ^ flips);

        put_word(t, w, v);
        sum += v;
    }
    measure_mask(to, m->low, m->high, sum_of_bytes(sum));
}

void mask_split(struct mask *m, struct mask *side, const uint8_t *predicate, uint8_t flip)
{
    const uint32_t holds = mask_holds(m, predicate, flip), low = m->low, high = m->high;
    const uint64_t flips = flip ? EVERY_LANE : 0;
    uint8_t *restrict stay = m->m, *restrict go = side->m;
    const uint8_t *restrict p = predicate;

    mask_clear(side);
    if (holds == 0)
        return;
    if (holds == m->count) {
        struct mask all = *m;
        *m = *side;
        *side = all;
        return;
    }
    for (uint32_t w = low / WORD_LANES, end = word_above(high); w < end; w++) {
        const uint64_t v = word_at(stay, w), taken = v & (word_at(p, w) ^ flips);

        put_word(go, w, taken);
        put_word(stay, w, v ^ taken);
    }
    measure_mask(side, low, high, holds);
    measure_mask(m, low, high, m->count - holds);
}
