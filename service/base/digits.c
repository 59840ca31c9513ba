/* Digits from the last to the first. */
#include "base/digits.h"

#include "base/deadline.h"

static inline struct span digits_by(uint64_t n, unsigned base, char room[DIGITS_MAX])
{
    size_t at = DIGITS_MAX;

    do
        room[--at] = "0123456789abcdef"[n % base];
    while (n /= base);
    return (struct span){room + at, DIGITS_MAX - at};
}

/* To divide by a number that the compiler knows is to multiply. */
struct span digits_of(uint64_t n, unsigned base, char room[DIGITS_MAX])
{
    return base == 10 ? digits_by(n, 10, room) : digits_by(n, base, room);
}

static inline void put(char *at, unsigned count, uint64_t n)
{
    for (; count; n /= 10)
        at[--count] = (char)('0' + n % 10);
}

void digits_put(char *at, unsigned count, uint64_t n)
{
    put(at, count, n);
}

/* The day of the Gregorian calendar; a year begins in March here, so that the day that some lack is its last. 719468 days lie between
 * 0000-03-01 and 1970-01-01. */
static void put_date(char *at, uint64_t days_since_1970)
{
    uint64_t days = days_since_1970 + 719468, era = days / 146097, of_era = days % 146097;
    uint64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100), month = (5 * of_year + 2) / 153;

    put(at, 4, 400 * era + year_of_era + (month >= 10));
    put(at + 5, 2, month < 10 ? month + 3 : month - 9);
    put(at + 8, 2, of_year - (153 * month + 2) / 5 + 1);
}

struct span time_text(uint64_t wall_ns_since_1970, char out[TIME_TEXT_BYTES])
{
    uint64_t seconds = wall_ns_since_1970 / NS_PER_S;

    memcpy(out, "0000-00-00T00:00:00.000Z", TIME_TEXT_BYTES);
    put_date(out, seconds / 86400);
    put(out + 11, 2, seconds / 3600 % 24);
    put(out + 14, 2, seconds / 60 % 60);
    put(out + 17, 2, seconds % 60);
    put(out + 20, 3, wall_ns_since_1970 / NS_PER_MS % 1000);
    return (struct span){out, TIME_TEXT_BYTES - 1};
}
