/* How many warm workers a device's use asks for. Pure: no clock, no lock. */
#pragma once

#include <stdint.h>

#include "pool/bounds.h"

struct reserve {
    uint64_t taken_ns[WARM_TAKEN_MAX]; /* when workers were taken, a ring; 0 = never */
    unsigned next;
    unsigned most; /* taken within WARM_WINDOW_MS, the most until `until_ns` */
    uint64_t until_ns;
};

/* A worker was taken. */
void reserve_note(struct reserve *r, uint64_t now_ns);
/* As many as were taken within a second, for WARM_KEEP_MS after that; at most WARM_TAKEN_MAX. */
unsigned reserve_wanted(const struct reserve *r, uint64_t now_ns);
