/* Generates random PTX programs: straight code with branches, short loops, guards and accesses of many address patterns, over registers
 * of several types. The same seed gives the same program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each thread stores MAKER_RESULTS words; the last of them are floats. */
enum { MAKER_TEXT_BYTES = 32768, MAKER_RESULTS = 16, MAKER_FLOATS_FROM = 10 };

/* A program that is being written. */
struct maker_text {
    char  *text;
    size_t bytes, used;
};

/* Adds to it; ends the process where it is full. */
void     maker_add(struct maker_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t maker_random(uint32_t *state);
/* Random numbers, sometimes edge cases. */
uint32_t maker_value(uint32_t *state);
/* A kernel `made(in, results, stores)` for blocks of at most 256 threads; stores has room for 512 places of 16 bytes. */
void maker_write(char *text, size_t bytes, uint32_t seed);
/* The same kernel, but each thread stores only to its own places (64 bytes of `stores` each, by its number in the grid) and sees nothing
 * that depends on how the grid is cut into blocks: any shape with as many threads gives the same results. At most 512 threads. */
void maker_write_alone(char *text, size_t bytes, uint32_t seed);
/* As maker_write_alone, with shuffles, votes and the like among the threads of each warp: grids that are cut into blocks alike give the same. */
void maker_write_warps(char *text, size_t bytes, uint32_t seed);
/* As maker_write_alone, with barriers, all of it a few times over. */
void maker_write_barriers(char *text, size_t bytes, uint32_t seed);
/* A kernel `made(in, results)` of barriers in loops, with registers that are the same for all threads, or lines. At most 512 threads. loop_maker.c */
void maker_write_loops(char *text, size_t bytes, uint32_t seed);

/* NaNs are equal: which payload survives an operation is not defined. */
static inline bool maker_same(uint32_t a, uint32_t b, bool is_float)
{
    return a == b || (is_float && (a & 0x7fffffff) > 0x7f800000 && (b & 0x7fffffff) > 0x7f800000);
}
