/* The sorted table, its cursors, and the form of ids. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "session/life/table.h"
#include "session/session.h"

enum { ENTRIES = 500 };

static struct entry entries[ENTRIES];

static void fill(struct table *t)
{
    for (unsigned i = 0; i < ENTRIES; i++) {
        snprintf(entries[i].id, ID_BYTES, "e%03u", (i * 7919u) % ENTRIES);
        cr_assert_eq(table_put(t, &entries[i]), STATUS_OK);
    }
}

Test(table, keeps_every_entry_findable_and_in_order)
{
    struct table t = {0};

    fill(&t);
    cr_assert_eq(t.count, ENTRIES);
    for (unsigned i = 0; i < ENTRIES; i++)
        cr_assert_eq(table_get(&t, span_of(entries[i].id)), &entries[i]);
    for (unsigned i = 1; i < ENTRIES; i++)
        cr_assert_lt(strcmp(t.items[i - 1]->id, t.items[i]->id), 0);
    cr_assert_null(table_get(&t, SPAN_LITERAL("e50")));
    cr_assert_null(table_get(&t, SPAN_LITERAL("e5000")));
    cr_assert_null(table_get(&t, (struct span){"e001\0", 5}));
    table_finish(&t);
}

/* As a session's launches: the oldest go as new ones come. */
Test(table, a_queue_keeps_its_order_and_stays_small)
{
    enum { KEPT = 100, PASSED = 10000 };
    static struct entry queue[PASSED];
    struct table        t = {0};

    for (unsigned i = 0; i < PASSED; i++) {
        cr_assert_eq(entry_name(&queue[i], (struct span){0}, "l_", NULL), STATUS_OK);
        memcpy(queue[i].id + 2, "Abcdef", NODE_TAG_CHARS);
        entry_number(&queue[i], 60 + (uint64_t)i);
        cr_assert(server_id_valid(span_of(queue[i].id), "l_"));
        cr_assert_eq(table_put(&t, &queue[i]), STATUS_OK);
        if (i >= KEPT)
            cr_assert(table_remove(&t, &queue[i - KEPT]));
        for (unsigned k = 0; k < t.count; k += 7)
            cr_assert_eq(t.items[k], &queue[i + 1 - t.count + k]);
        cr_assert_eq(table_get(&t, span_of(queue[i].id)), &queue[i]);
    }
    cr_assert_leq(t.room, 4 * KEPT);
    table_finish(&t);
}

/* Wherever they come and go. */
Test(table, any_order_of_changes_is_right)
{
    struct table t = {0};
    bool         in[ENTRIES] = {0};
    unsigned     random = 1, count = 0;

    for (unsigned i = 0; i < ENTRIES; i++)
        snprintf(entries[i].id, ID_BYTES, "e%03u", i);
    for (unsigned step = 0; step < 40000; step++) {
        unsigned i = (random = random * 1664525u + 1013904223u) >> 8, at = 0;

        i = step / 5000 % 2 ? i % ENTRIES : i % (ENTRIES / 10) + step / 100; /* all over, or a window that moves */
        i %= ENTRIES;
        if (in[i])
            cr_assert(table_remove(&t, &entries[i]));
        else
            cr_assert_eq(table_put(&t, &entries[i]), STATUS_OK);
        count += in[i] ? -1u : 1u;
        in[i] = !in[i];
        cr_assert_eq(t.count, count);
        for (unsigned k = 0; k < ENTRIES && step % 16 == 0; k++)
            if (in[k])
                cr_assert_eq(t.items[at++], &entries[k]);
    }
    table_finish(&t);
}

Test(table, numbers_in_ids_order_them)
{
    static const uint64_t numbers[] = {0, 1, 61, 62, 3843, 3844, UINT32_MAX, 218340105584895};
    struct entry          e[COUNT(numbers)];

    for (size_t i = 0; i < COUNT(numbers); i++) {
        cr_assert_eq(entry_name(&e[i], (struct span){0}, "l_node_", NULL), STATUS_OK);
        memcpy(e[i].id + 7, "Abcdef", NODE_TAG_CHARS);
        entry_number(&e[i], numbers[i]);
        cr_assert(i == 0 || strcmp(e[i - 1].id, e[i].id) < 0, "%s %s", e[i - 1].id, e[i].id);
        cr_assert(server_id_valid(span_of(e[i].id), "l_node_"));
    }
    cr_assert_eq(strncmp(e[COUNT(numbers) - 1].id + 7, "Abcdefzzzzzzzz", 14), 0);
}

Test(table, removes_exactly_that_entry)
{
    struct table t = {0};
    struct entry twin = {"e003"};

    fill(&t);
    cr_assert(!table_remove(&t, &twin));
    for (unsigned i = 0; i < ENTRIES; i += 2)
        cr_assert(table_remove(&t, &entries[i]));
    cr_assert_eq(t.count, ENTRIES / 2);
    for (unsigned i = 0; i < ENTRIES; i++)
        cr_assert_eq(table_get(&t, span_of(entries[i].id)), i % 2 ? &entries[i] : NULL);
    table_finish(&t);
}

Test(table, pages_see_every_entry_once_even_when_the_cursors_own_is_removed)
{
    struct table         t = {0};
    char                 next[ID_BYTES] = "";
    struct entry *const *at;
    unsigned             seen = 0;

    fill(&t);
    do {
        struct page page = {.cursor = span_of(next), .limit = 7};

        seen += table_page(&t, &page, &at);
        memcpy(next, page.next, sizeof next);
        if (next[0])
            cr_assert(table_remove(&t, table_get(&t, span_of(next))));
    } while (next[0]);
    cr_assert_eq(seen, ENTRIES);
    table_finish(&t);
}

Test(table, ids_of_clients)
{
    char long_id[70];

    memset(long_id, 'a', sizeof long_id);
    cr_assert(client_id_valid(SPAN_LITERAL("a")));
    cr_assert(client_id_valid(SPAN_LITERAL("0-_z")));
    cr_assert(client_id_valid((struct span){long_id, 63}));
    cr_assert(!client_id_valid((struct span){long_id, 64}));
    cr_assert(!client_id_valid(SPAN_LITERAL("")));
    cr_assert(!client_id_valid(SPAN_LITERAL("-a")));
    cr_assert(!client_id_valid(SPAN_LITERAL("_a")));
    cr_assert(!client_id_valid(SPAN_LITERAL("A")));
    cr_assert(!client_id_valid(SPAN_LITERAL("a.b")));
    cr_assert(!client_id_valid((struct span){"a\0b", 3}));
}

Test(table, names_entries_by_the_clients_id_or_a_server_id)
{
    struct entry   a, b;
    struct problem why;

    cr_assert_eq(entry_name(&a, SPAN_LITERAL("mine"), "b_", &why), STATUS_OK);
    cr_assert_str_eq(a.id, "mine");
    cr_assert_eq(entry_name(&a, (struct span){0}, "b_", &why), STATUS_OK);
    cr_assert_eq(entry_name(&b, (struct span){0}, "b_", &why), STATUS_OK);
    cr_assert_eq(strlen(a.id), 24);
    cr_assert_eq(strncmp(a.id, "b_", 2), 0);
    cr_assert_str_neq(a.id, b.id);
    cr_assert_eq(entry_name(&a, SPAN_LITERAL("Not/this"), "b_", &why), STATUS_INVALID_FIELD);
    cr_assert_str_eq(why.field.pointer, "/id");
}

/* Whatever their first bytes have in common. */
Test(table, ids_of_any_length_keep_their_order)
{
    static const char *const ids[] = {"a",
                                      "a0",
                                      "a00000",
                                      "a000000",
                                      "a0000000",
                                      "a00000000",
                                      "a0000000-",
                                      "a000000z",
                                      "b",
                                      "a0000000z",
                                      "a_",
                                      "zzzzzzzzzzz",
                                      "l_tagtaga23456",
                                      "l_tagtaga234567",
                                      "l_tagtaga2345678",
                                      "l_tagtaga23456789",
                                      "l_tagtagA",
                                      "l_tagtaga23456788",
                                      "l_tagtaga2345677"};
    static struct entry      some[COUNT(ids)];
    struct table             t = {0};

    for (unsigned i = 0; i < COUNT(ids); i++) {
        snprintf(some[i].id, ID_BYTES, "%s", ids[i]);
        cr_assert_null(table_get(&t, span_of(ids[i])));
        cr_assert_eq(table_put(&t, &some[i]), STATUS_OK);
    }
    for (unsigned i = 1; i < t.count; i++)
        cr_assert_lt(strcmp(t.items[i - 1]->id, t.items[i]->id), 0, "%s %s", t.items[i - 1]->id, t.items[i]->id);
    for (unsigned i = 0; i < COUNT(ids); i += 2)
        cr_assert(table_remove(&t, &some[i]));
    for (unsigned i = 0; i < COUNT(ids); i++)
        cr_assert_eq(table_get(&t, span_of(ids[i])), i % 2 ? &some[i] : NULL, "%s", ids[i]);
    table_finish(&t);
}

/* Of ids that share many bytes, those that share none, are shorter, or lie between: before and after such a one is there. */
Test(table, ids_that_begin_alike_are_found_and_others_are_not)
{
    static const char *const alike[] = {"l_tagtagZ", "l_tagtagA", "l_tagtagAA", "l_tagtagM00000000", "l_tagtagM00000001"};
    static const char *const others[] = {"", "l", "l_tag", "l_tagtag", "l_tagtagB", "l_tagtagM0000000", "k", "m", "l_tagz"};
    static struct entry      some[COUNT(alike)], other = {"l_taga"};
    struct table             t = {0};

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < COUNT(alike); i++) {
            snprintf(some[i].id, ID_BYTES, "%s", alike[i]);
            cr_assert_eq(table_put(&t, &some[i]), STATUS_OK);
            for (unsigned k = 0; k < COUNT(alike); k++)
                cr_assert_eq(table_get(&t, span_of(alike[k])), k <= i ? &some[k] : NULL, "%s", alike[k]);
        }
        for (unsigned i = 0; i < COUNT(others); i++) {
            cr_assert_null(table_get(&t, span_of(others[i])), "%s", others[i]);
            for (unsigned k = 0; k < t.count; k++)
                cr_assert_eq(k >= table_after(&t, span_of(others[i])), strcmp(t.items[k]->id, others[i]) > 0, "%s", others[i]);
        }
        cr_assert_eq(table_put(&t, &other), STATUS_OK);
        for (unsigned i = 0; i < COUNT(alike); i++)
            cr_assert_eq(table_get(&t, span_of(alike[i])), &some[i]);
        for (unsigned i = 1; i < t.count; i++)
            cr_assert_lt(strcmp(t.items[i - 1]->id, t.items[i]->id), 0);
        while (table_pop(&t))
            continue;
    }
    table_finish(&t);
}
