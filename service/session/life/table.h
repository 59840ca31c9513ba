/* Objects by id, sorted by id so that a list can continue after a cursor. Not thread-safe. */
#pragma once

#include "base/problem.h"
#include "limits.h"

struct page;

/* First member of everything that has an id. */
struct entry {
    char id[ID_BYTES];
};

struct table {
    struct entry **items; /* borrowed objects, ascending by id; the table owns the array */
    uint64_t *heads; /* bytes of the ids behind those in common, in the same order, so that a search need not touch the objects; owned */
    unsigned  count;
    unsigned  gap;    /* unused places before the first, in both arrays: what comes or goes moves the fewer of the others */
    unsigned  room;   /* places in each array, with these */
    size_t    common; /* bytes that all ids begin with, at least */
};

void          table_finish(struct table *t);
struct entry *table_get(const struct table *t, struct span id);
/* The id must be new. OUT_OF_MEMORY leaves the table as it was. */
enum status table_put(struct table *t, struct entry *e);
/* False when it was not in the table. */
bool table_remove(struct table *t, const struct entry *e);
/* Removes and returns the last entry; NULL when empty. */
struct entry *table_pop(struct table *t);
/* Index of the first entry whose id is greater than `cursor`; `count` if there is none. */
unsigned table_after(const struct table *t, struct span cursor);
/* How many entries are on that page, of which *at is the first; sets page->next. `t` NULL: none. */
unsigned table_page(const struct table *t, struct page *page, struct entry *const **at);

/* [a-z0-9][a-z0-9_-]{0,62} */
bool client_id_valid(struct span id);
/* One that entry_name() made with that prefix. */
bool server_id_valid(struct span id, const char *prefix);
/* Sets e->id: to `id` if given (INVALID_FIELD unless it is a client id), else to a server id with that prefix. */
enum status entry_name(struct entry *e, struct span id, const char *prefix, struct problem *why);
/* Puts a number into a server id, behind the tag of its process, so that of two ids the one of the greater number is greater. 62^8 numbers. */
void entry_number(struct entry *e, uint64_t number);
