/* The sorted array behind every list of objects, and the format of ids. */
#include "session/life/table.h"

#include <endian.h>
#include <stdlib.h>

#include "base/random.h"
#include "session/session.h"

enum { TABLE_ROOM_MIN = 16, BASE62 = 62, ENTRY_NUMBER_CHARS = 8 };

static int compare_id(const struct entry *e, struct span id)
{
    size_t own = strlen(e->id);
    size_t n = own < id.bytes ? own : id.bytes;
    int    order = n ? memcmp(e->id, id.data, n) : 0;

    return order ? order : (own > id.bytes) - (own < id.bytes);
}

/* The id's eight bytes behind those that all share, as a number, ordered as the ids are: a lesser id never has a greater head. */
static uint64_t head_of(const struct table *t, struct span id)
{
    struct span rest = span_from(id, t->common);
    uint64_t    head = 0;

    if (rest.bytes)
        memcpy(&head, rest.data, rest.bytes < sizeof head ? rest.bytes : sizeof head);
    return be64toh(head);
}

/* How many bytes, up to t->common, the id shares with all of a table that is not empty. */
static size_t shared_bytes(const struct table *t, struct span id)
{
    size_t n = 0;

    while (n < t->common && n < id.bytes && t->items[0]->id[n] == id.data[n])
        n++;
    return n;
}

/* Before the id is put. Server ids begin with the tag of the process that chose them: eight bytes in which a session's launches do not differ. To look
 * behind them saves 800 instructions of a launch, and to touch some twenty older launches (2026-11-29). */
static void share(struct table *t, struct span id)
{
    size_t shared = t->count ? shared_bytes(t, id) : id.bytes;

    if (t->count && shared == t->common)
        return;
    t->common = shared;
    for (unsigned i = 0; i < t->count; i++)
        t->heads[i] = head_of(t, span_of(t->items[i]->id));
}

static bool is_less(const struct table *t, unsigned at, uint64_t head, struct span id)
{
    if (t->heads[at] != head)
        return t->heads[at] < head;
    return compare_id(t->items[at], id) < 0;
}

/* Index of the first entry not less than `id`. */
static unsigned lower_bound(const struct table *t, struct span id)
{
    uint64_t head = head_of(t, id);
    unsigned low = 0;
    unsigned high = t->count;

    if (high && shared_bytes(t, id) < t->common)
        return compare_id(t->items[0], id) < 0 ? high : low; /* before or behind all */
    if (high && t->heads[high - 1] < head)
        return high;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (is_less(t, middle, head, id))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void table_finish(struct table *t)
{
    if (t->items)
        free(t->items - t->gap);
    if (t->heads)
        free(t->heads - t->gap);
    *t = (struct table){0};
}

struct entry *table_get(const struct table *t, struct span id)
{
    unsigned at = lower_bound(t, id);

    return at < t->count && compare_id(t->items[at], id) == 0 ? t->items[at] : NULL;
}

/* Moves `count` entries from place `from` to place `to`. */
static void move_entries(struct table *t, unsigned to, unsigned from, unsigned count)
{
    memmove(&t->items[to], &t->items[from], count * sizeof(struct entry *));
    memmove(&t->heads[to], &t->heads[from], count * sizeof *t->heads);
}

/* By so many places, toward the end if `by` is positive. */
static void shift_start(struct table *t, int by)
{
    t->items += by;
    t->heads += by;
    t->gap += (unsigned)by;
}

static void close_gap(struct table *t)
{
    unsigned gap = t->gap;

    shift_start(t, -(int)gap);
    move_entries(t, 0, gap, t->count);
}

/* Also while entries go at one end as they come at the other, there is a gap of half the room at most; so each is moved once in a while. */
static bool make_room(struct table *t)
{
    unsigned       room = t->room ? t->room * 2 : TABLE_ROOM_MIN;
    struct entry **items;
    uint64_t      *heads;

    if (t->gap + t->count < t->room)
        return true;
    if (t->gap > t->room / 2) {
        close_gap(t);
        return true;
    }
    if (t->room > INT32_MAX / 2)
        return false;
    items = realloc(t->items ? t->items - t->gap : NULL, (size_t)room * sizeof(struct entry *));
    if (!items)
        return false;
    t->items = items + t->gap;
    heads = realloc(t->heads ? t->heads - t->gap : NULL, (size_t)room * sizeof *heads);
    if (!heads)
        return false;
    t->heads = heads + t->gap;
    t->room = room;
    return true;
}

enum status table_put(struct table *t, struct entry *e)
{
    unsigned at;

    share(t, span_of(e->id));
    at = lower_bound(t, span_of(e->id));
    if (!make_room(t))
        return STATUS_OUT_OF_MEMORY;
    if (t->gap && at < t->count / 2) {
        shift_start(t, -1);
        move_entries(t, 0, 1, at);
    } else {
        move_entries(t, at + 1, at, t->count - at);
    }
    t->items[at] = e;
    t->heads[at] = head_of(t, span_of(e->id));
    t->count++;
    return STATUS_OK;
}

bool table_remove(struct table *t, const struct entry *e)
{
    unsigned at = lower_bound(t, span_of(e->id));

    if (at >= t->count || t->items[at] != e)
        return false;
    t->count--;
    if (at < t->count / 2) {
        move_entries(t, 1, 0, at);
        shift_start(t, 1);
    } else {
        move_entries(t, at, at + 1, t->count - at);
    }
    return true;
}

struct entry *table_pop(struct table *t)
{
    return t->count ? t->items[--t->count] : NULL;
}

unsigned table_after(const struct table *t, struct span cursor)
{
    unsigned at = lower_bound(t, cursor);

    return at < t->count && compare_id(t->items[at], cursor) == 0 ? at + 1 : at;
}

unsigned table_page(const struct table *t, struct page *page, struct entry *const **at)
{
    unsigned first = t ? table_after(t, page->cursor) : 0;
    unsigned left = t ? t->count - first : 0;
    unsigned n = left < page->limit ? left : page->limit;

    page->next[0] = '\0';
    if (n && n < left)
        span_copy(span_of(t->items[first + n - 1]->id), page->next, sizeof page->next);
    *at = t ? t->items + first : NULL;
    return n;
}

bool client_id_valid(struct span id)
{
    if (id.bytes == 0 || id.bytes > CLIENT_ID_CHARS_MAX)
        return false;
    for (size_t i = 0; i < id.bytes; i++) {
        char c = id.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (i == 0 || (c != '_' && c != '-')))
            return false;
    }
    return true;
}

bool server_id_valid(struct span id, const char *prefix)
{
    size_t n = strlen(prefix);

    return span_starts(id, prefix) && id.bytes == n + RANDOM_ID_CHARS && span_holds_only(span_from(id, n), "");
}

enum status entry_name(struct entry *e, struct span id, const char *prefix, struct problem *why)
{
    if (id.bytes == 0) {
        if (random_id(prefix, e->id, sizeof e->id))
            return STATUS_OK;
        return problem_set(why, STATUS_INTERNAL, "cannot create a random id");
    }
    if (!client_id_valid(id))
        return problem_field(why, STATUS_INVALID_FIELD, "/id", "format",
                             "an id must have 1 to %d characters of a-z, 0-9, '_' and '-', and start with a letter or digit",
                             CLIENT_ID_CHARS_MAX);
    span_copy(id, e->id, sizeof e->id);
    return STATUS_OK;
}

void entry_number(struct entry *e, uint64_t number)
{
    char *at = e->id + strlen(e->id) - RANDOM_ID_CHARS + NODE_TAG_CHARS;

    for (unsigned i = ENTRY_NUMBER_CHARS; i-- > 0; number /= BASE62)
        at[i] = base62_digits[number % BASE62];
}
