/* Masks of lanes: one byte per lane, 1 or 0, eight handled at a time. Outside [low, high) all are 0; arrays end at a multiple of 64. */
#include "device/cpu/interp.h"

enum { WORD_LANES = 8 };

#define EVERY_LANE 0x0101010101010101ull

static uint64_t word_at(const uint8_t *m, uint32_t w)
{
    uint64_t v;

    memcpy(&v, m + (size_t)w * WORD_LANES, sizeof v);
    return v;
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

static uint32_t ones(const uint8_t *m, uint32_t low, uint32_t high)
{
    uint64_t sum = 0;

    for (uint32_t w = low / WORD_LANES, end = word_above(high); w < end; w++)
        sum += word_at(m, w);
    return sum_of_bytes(sum);
}

void mask_clear(struct mask *m)
{
    if (m->count)
        memset(m->m + m->low, 0, m->high - m->low);
    *m = (struct mask){.m = m->m};
}

/* Shrinks [low, high), in which all ones lie, to the ones. */
static void measure_within(struct mask *m, uint32_t low, uint32_t high)
{
    uint32_t first = low / WORD_LANES, last = word_above(high);

    m->count = ones(m->m, low, high);
    m->low = m->high = 0;
    if (!m->count)
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
    measure_within(m, 0, count);
}

void mask_add(struct mask *to, const struct mask *m)
{
    uint32_t low = to->count && to->low < m->low ? to->low : m->low, high = to->high > m->high ? to->high : m->high;

    for (uint32_t i = m->low; i < m->high; i++)
        to->m[i] |= m->m[i];
    to->low = low;
    to->high = high;
    to->count = ones(to->m, low, high);
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
    uint8_t       *t = to->m;
    const uint8_t *from = m->m;

    mask_clear(to);
    for (uint32_t i = m->low; i < m->high; i++)
        t[i] = from[i] & (predicate[i] ^ flip);
    measure_within(to, m->low, m->high);
}

void mask_split(struct mask *m, struct mask *side, const uint8_t *predicate, uint8_t flip)
{
    uint32_t holds = mask_holds(m, predicate, flip), low = m->low, high = m->high;

    mask_clear(side);
    if (holds == 0)
        return;
    if (holds == m->count) {
        struct mask all = *m;
        *m = *side;
        *side = all;
        return;
    }
    mask_pick(side, m, predicate, flip);
    for (uint32_t i = low; i < high; i++)
        m->m[i] ^= side->m[i];
    measure_within(m, low, high);
}
