#include "base/threads/reaper.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>

struct note {
    struct reap_item item;
    struct reaper   *again; /* posted to once more */
    char             letter;
};

static char            written[64];
static unsigned        written_count;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void write_letter(struct reap_item *item)
{
    struct note   *n = (struct note *)item;
    struct reaper *again = n->again;

    written[written_count++] = n->letter;
    n->again = NULL;
    if (again)
        cr_assert(reaper_post(again, item));
}

static void wait_at_gate(struct reap_item *item)
{
    (void)item;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

Test(reaper, runs_in_order_and_each_posted_item_once)
{
    struct reaper    r;
    struct reap_item first = {.run = wait_at_gate};
    struct note      a = {{.run = write_letter}, NULL, 'a'}, b = {{.run = write_letter}, NULL, 'b'};

    cr_assert(reaper_start(&r));
    pthread_mutex_lock(&gate);
    cr_assert(reaper_post(&r, &first));
    cr_assert(reaper_post(&r, &a.item));
    cr_assert(reaper_post(&r, &b.item));
    cr_assert_not(reaper_post(&r, &a.item), "it waits already");
    pthread_mutex_unlock(&gate);
    reaper_flush(&r);
    cr_assert_eq(memcmp(written, "ab", written_count), 0);
    cr_assert_eq(written_count, 2);
    cr_assert(reaper_post(&r, &a.item), "it has run");
    reaper_stop(&r);
    cr_assert_eq(written_count, 3);
}

Test(reaper, an_item_may_be_posted_again_while_it_runs)
{
    struct reaper r;
    struct note   a = {{.run = write_letter}, &r, 'a'};

    cr_assert(reaper_start(&r));
    cr_assert(reaper_post(&r, &a.item));
    reaper_stop(&r);
    cr_assert_eq(written_count, 2);
}

Test(reaper, a_flush_of_nothing_returns)
{
    struct reaper r;

    cr_assert(reaper_start(&r));
    reaper_flush(&r);
    reaper_stop(&r);
}
