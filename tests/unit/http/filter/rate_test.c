/* Token buckets, and addresses that guess tokens. Time is simulated. */
#include <criterion/criterion.h>

#include "base/deadline.h"
#include "http/bounds.h"
#include "http/filter/auth_throttle.h"
#include "http/message/request.h"

Test(rate, gives_a_burst_and_then_one_an_interval)
{
    struct rate_bucket b = {0};
    uint64_t           now = 5 * NS_PER_S, wait_ns = 0;

    for (int i = 0; i < 10; i++)
        cr_assert(rate_take(&b, NS_PER_S / 10, 10, now, &wait_ns), "%d", i);
    cr_assert_not(rate_take(&b, NS_PER_S / 10, 10, now, &wait_ns));
    cr_assert_eq(wait_ns, NS_PER_S / 10);
    cr_assert_not(rate_has(&b, NS_PER_S / 10, 10, now + wait_ns - 1, &wait_ns));
    now += NS_PER_S / 10;
    cr_assert(rate_has(&b, NS_PER_S / 10, 10, now, &wait_ns));
    cr_assert(rate_take(&b, NS_PER_S / 10, 10, now, &wait_ns));
    cr_assert_not(rate_take(&b, NS_PER_S / 10, 10, now, &wait_ns), "refusals cost nothing, and give nothing");
    now += 3600 * NS_PER_S;
    for (int i = 0; i < 10; i++)
        cr_assert(rate_take(&b, NS_PER_S / 10, 10, now, &wait_ns), "no more than a burst is saved up: %d", i);
    cr_assert_not(rate_take(&b, NS_PER_S / 10, 10, now, &wait_ns));
}

Test(rate, a_burst_of_one_is_one_at_a_time)
{
    struct rate_bucket b = {0};
    uint64_t           wait_ns;

    cr_assert(rate_take(&b, 100, 1, 1000, &wait_ns));
    cr_assert_not(rate_take(&b, 100, 1, 1099, &wait_ns));
    cr_assert_eq(wait_ns, 1);
    cr_assert(rate_take(&b, 100, 1, 1100, &wait_ns));
}

static const unsigned char here[PEER_ADDRESS_BYTES] = {0, 127, 0, 0, 1}, there[PEER_ADDRESS_BYTES] = {0, 10, 0, 0, 1};

Test(auth_throttle, an_address_that_guesses_is_refused_whatever_it_shows)
{
    struct auth_throttle *g = auth_throttle_create(3);
    struct caller         alice = {0}, bob = {0};
    uint64_t              now = 7 * NS_PER_S, wait_ns;

    cr_assert(auth_throttle_admit(g, here, &alice, now, &wait_ns));
    for (int i = 0; i < 3; i++)
        cr_assert(auth_throttle_admit(g, here, NULL, now, &wait_ns), "answered as unknown: %d", i);
    cr_assert_not(auth_throttle_admit(g, here, NULL, now, &wait_ns));
    cr_assert_eq(wait_ns, 20 * NS_PER_S);
    cr_assert_not(auth_throttle_admit(g, here, &bob, now, &wait_ns), "the right token of one not seen here before tells nothing");
    cr_assert_eq(wait_ns, 20 * NS_PER_S);
    cr_assert(auth_throttle_admit(g, here, &alice, now, &wait_ns), "who was let in before goes on");
    cr_assert(auth_throttle_admit(g, there, &bob, now, &wait_ns), "other addresses are not concerned");
    now += 20 * NS_PER_S;
    cr_assert(auth_throttle_admit(g, here, &bob, now, &wait_ns));
    cr_assert(auth_throttle_admit(g, here, NULL, now, &wait_ns));
    cr_assert_not(auth_throttle_admit(g, here, NULL, now, &wait_ns));
    cr_assert(auth_throttle_admit(g, here, &bob, now, &wait_ns), "known by now");
    auth_throttle_destroy(g);
}

Test(auth_throttle, none_are_counted_when_it_is_switched_off)
{
    struct auth_throttle *g = auth_throttle_create(0);
    uint64_t              wait_ns;

    for (int i = 0; i < 1000; i++)
        cr_assert(auth_throttle_admit(g, here, NULL, 1, &wait_ns));
    auth_throttle_destroy(g);
}

/* Far more addresses than places: nothing but older addresses is forgotten. */
Test(auth_throttle, many_addresses_do_not_help_the_last_one)
{
    struct auth_throttle *g = auth_throttle_create(1);
    unsigned char         address[PEER_ADDRESS_BYTES] = {6};
    uint64_t              wait_ns;

    for (uint32_t i = 0; i < 3 * AUTH_THROTTLE_SETS * AUTH_THROTTLE_PLACES; i++) {
        memcpy(address + 1, &i, sizeof i);
        cr_assert(auth_throttle_admit(g, address, NULL, NS_PER_S + i, &wait_ns));
        cr_assert_not(auth_throttle_admit(g, address, NULL, NS_PER_S + i, &wait_ns));
    }
    auth_throttle_destroy(g);
}
