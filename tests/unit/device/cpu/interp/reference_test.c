/* Every opcode in every type and form against a reference in C: edge values of each operand combined with those of the others. An opcode
 * without a reference fails, and so does a form that the interpreter accepts but no reference has. */
#include <stdio.h>
#include <stdlib.h>

#include "reference/forms.h"
#include "reference/values.h"
#include "unit/device/cpu/interp/the_rig.h"

enum { IN_WORDS = REF_THREADS * REF_INPUTS, OUT_STRIDE = 8, OUT_WORDS = REF_THREADS * OUT_STRIDE, REPORTED = 4, DIVERGENT_EVERY = 4 };

static uint64_t *in, *out;

static void start(void)
{
    the_rig_start();
    in = rig_memory(&r, IN_WORDS * 8);
    out = rig_memory(&r, OUT_WORDS * 8);
}

TestSuite(interp_reference, .init = start, .fini = the_rig_stop);

/* The first operands are combined completely, as far as there are threads; the others in many combinations. */
static void fill(const struct reference_row *row, const struct ref_form *f)
{
    unsigned round = 0, step = 1, count[REF_INPUTS];

    for (unsigned k = 0; k < REF_INPUTS; k++)
        count[k] = values_count(form_input(row, f, k));
    for (unsigned i = 0; i < REF_THREADS; i++) {
        round = i / count[0];
        for (unsigned k = 0; k < REF_INPUTS; k++) {
            step = k == 0 ? i : k == 1 ? round + (i % 3 == 0 ? 0 : i) : k * round + (2 * k + 1) * i;
            in[i * REF_INPUTS + k] = values_at(form_input(row, f, k), step % count[k]);
        }
    }
}

static bool same(const struct ref_type *t, uint64_t got, uint64_t want, double ulps)
{
    const struct ref_type *e = t && t->element ? ref_type_find(t->element, strlen(t->element)) : NULL;

    if (got == want)
        return true;
    if (e)
        return same(e, got & 0xffff, want & 0xffff, ulps) && same(e, got >> 16, want >> 16, ulps);
    return ref_is_float(t) && got >> (t->bits - 1) >> 1 == want >> (t->bits - 1) >> 1 && ref_distance(t, got, want) <= ulps;
}

static bool cell_same(const struct ref_type *t, const uint64_t *got, const uint64_t *want)
{
    unsigned bits = ref_is_float(t) ? t->bits : t && t->element ? 32 : 64;

    for (unsigned at = 0; at < 64 * REF_CELL_WORDS; at += bits) {
        if (!same(bits == 64 && !ref_is_float(t) ? NULL : t, ref_cut(bits, (wide_t)(got[at / 64] >> at % 64)),
                  ref_cut(bits, (wide_t)(want[at / 64] >> at % 64)), 0))
            return false;
    }
    return true;
}

static bool thread_right(const struct reference_row *row, const struct ref_form *f, unsigned i, bool skipped)
{
    const uint64_t *mine = in + i * REF_INPUTS, *got = out + i * OUT_STRIDE;
    uint64_t        cell[REF_CELL_WORDS], want = REF_LEFT, second = REF_LEFT, first = got[0];
    struct ref_call c = {
        .form = f, .in = mine, .block = in, .warp = in + i / REF_WARP * REF_WARP * REF_INPUTS, .lane = i % REF_WARP, .cell = cell};

    memcpy(cell, mine, sizeof cell);
    if (!skipped)
        want = row->function(&c);
    if (want != REF_LEFT) {
        second = f->text[0] == '|' ? want >> 32 : 0;
        want = f->text[0] == '|' ? want & UINT32_MAX : want;
    }
    if (f->opcode[0] == 'e' && f->opcode[1] == 'l') /* elect: the first result is unspecified */
        first = want;
    if (!skipped && !form_has_result(row, f))
        first = want;
    if (same(form_result(row, f), first, want, row->ulps) && got[1] == second && cell_same(f->type, got + 2, cell))
        return true;
    fprintf(stderr, "%s thread %u%s: of %llx %llx %llx %llx came %llx %llu [%llx], not %llx %llu [%llx]\n", f->text, i,
            skipped ? " (skipped)" : "", (unsigned long long)mine[0], (unsigned long long)mine[1], (unsigned long long)mine[2],
            (unsigned long long)mine[3], (unsigned long long)got[0], (unsigned long long)got[1], (unsigned long long)got[2],
            (unsigned long long)want, (unsigned long long)second, (unsigned long long)cell[0]);
    return false;
}

static void run_threads(const char *what, unsigned skip)
{
    for (unsigned i = 0; i < REF_THREADS; i++) {
        uint64_t *o = out + i * OUT_STRIDE;
        o[0] = o[1] = REF_LEFT;
        memcpy(o + 2, in + i * REF_INPUTS, REF_CELL_WORDS * 8);
    }
    cr_assert_eq(RUN(&r, "k", SHAPE(1, REF_THREADS), ADDRESS(in), ADDRESS(out), skip), STATUS_OK, "%s: %s", what, r.why.detail);
}

static unsigned wrong_threads(const struct reference_row *row, const struct ref_form *f, unsigned skip)
{
    unsigned wrong = 0;

    run_threads(f->text, skip);
    for (unsigned i = 0; i < REF_THREADS && wrong < REPORTED; i++)
        wrong += !thread_right(row, f, i, i & skip);
    return wrong;
}

static bool loads(const struct reference_row *row, const struct ref_form *f)
{
    static char body[PROGRAM_BYTES / 2], text[PROGRAM_BYTES];

    form_body(row, f, body, sizeof body);
    form_program(body, text, sizeof text);
    return rig_try_load(&r, text) == STATUS_OK;
}

static bool type_is(const struct ref_type *t, enum ptx_type got)
{
    return t ? got != PTX_NO_TYPE && strcmp(ptx_type_word(got), t->word) == 0 : got == PTX_NO_TYPE;
}

/* That the parser reads the form's words into the right fields. */
static void check_fields(const struct reference_row *row, const struct ref_form *f)
{
    const struct ptx_function *k = &r.module->functions[ptx_find_function(r.module, span_of("k"))];

    for (uint32_t i = 0; i < k->insns_count; i++) {
        const struct ptx_insn *insn = &k->insns[i];

        if (!span_equal(insn->text, span_of(f->words)))
            continue;
        cr_expect_eq(insn->opcode, row->opcode, "%s", f->words);
        cr_expect(type_is(f->type, insn->types_count ? insn->types[0] : insn->type), "%s", f->words);
        cr_expect(type_is(f->stype, insn->types_count ? insn->types[1] : insn->stype), "%s", f->words);
        return;
    }
    cr_assert_fail("`%s` is not in the program: %s", f->words, f->text);
}

static unsigned check_row(const struct reference_row *row)
{
    /* Compiling takes some 20 ms for each form: so tests that compile try of each row the first one, and one in so many of the others. */
    static unsigned n, every;
    struct ref_form f;
    unsigned        wrong = 0, i;
    bool            taken;

    if (!every)
        every = getenv("GPUREST_REFERENCE_EVERY") ? (unsigned)atoi(getenv("GPUREST_REFERENCE_EVERY")) : 1;
    for (i = 0; form_make(row, i, &f); i++) {
        if (i && n++ % every)
            continue;
        taken = loads(row, &f);
        cr_expect(taken, "%s: %s", f.text, r.why.detail);
        if (!taken)
            continue;
        check_fields(row, &f);
        fill(row, &f);
        wrong += wrong_threads(row, &f, 0) != 0;
        if (i % DIVERGENT_EVERY == 0 && !form_is_joint(&f))
            wrong += wrong_threads(row, &f, 5) != 0;
    }
    cr_assert_gt(i, 0);
    return wrong;
}

/* GPUREST_OPCODE restricts the test to one opcode. */
Test(interp_reference, every_form_gives_what_the_reference_says, .timeout = 600)
{
    const char *only = getenv("GPUREST_OPCODE");

    for (size_t k = 0; k < reference_rows_count; k++) {
        const struct reference_row *row = &reference_rows[k];

        if (!only || strcmp(ptx_opcode_word((enum ptx_opcode)row->opcode), only) == 0)
            cr_expect_eq(check_row(row), 0, "%s", row->pattern);
    }
}

static const char *elsewhere[PTX_OP_COUNT] = {
#define REFERENCE(OPCODE, function, ulps, pattern)
#define REFERENCE_ELSEWHERE(OPCODE, file) [PTX_OP_##OPCODE] = file,
#include "unit/device/cpu/interp/reference/references.def"
#undef REFERENCE
#undef REFERENCE_ELSEWHERE
};

static bool test_has(const char *file, const char *word)
{
    static char text[1 << 17];
    char        path[512];
    FILE       *f;
    size_t      n;

    snprintf(path, sizeof path, "%s/../interp/%s", PTX_FOLDER, file);
    f = fopen(path, "r");
    if (!f)
        return false;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    return strstr(text, word) != NULL;
}

Test(interp_reference, every_opcode_has_a_reference)
{
    for (unsigned op = 0; op < PTX_OP_COUNT; op++) {
        const char *word = ptx_opcode_word((enum ptx_opcode)op);
        unsigned    rows = 0;

        for (size_t k = 0; k < reference_rows_count; k++)
            rows += reference_rows[k].opcode == op;
        cr_expect(rows || (elsewhere[op] && test_has(elsewhere[op], word)), "`%s` has no reference", word);
    }
}

static const char *const type_words[] = {
#define PTX_TYPE(NAME, word, bytes) word,
#include "device/cpu/ptx/tables/types.def"
#undef PTX_TYPE
};
enum { TYPE_WORDS = sizeof type_words / sizeof *type_words, SKELETONS_MAX = 512 };

/* What references cover of an opcode: types, pairs of types, and forms with '#' for the types. */
struct known {
    bool     pair[TYPE_WORDS + 1][TYPE_WORDS + 1];
    char     skeleton[SKELETONS_MAX][64];
    unsigned skeletons;
};

static unsigned type_index(const struct ref_type *t)
{
    for (unsigned i = 0; t && i < TYPE_WORDS; i++) {
        if (strcmp(type_words[i], t->word) == 0)
            return i;
    }
    return TYPE_WORDS;
}

static void add_skeleton(struct known *k, const struct ref_form *f)
{
    char  *to = k->skeleton[k->skeletons];
    size_t n = 0;

    cr_assert_lt(k->skeletons, SKELETONS_MAX);
    for (const char *at = f->words; *at;) {
        size_t bytes = strcspn(at + 1, ".") + 1;
        bool   type = *at == '.' && ref_type_find(at + 1, bytes - 1);

        n += (size_t)snprintf(to + n, sizeof k->skeleton[0] - n, "%.*s", type ? 2 : (int)bytes, type ? ".#" : at);
        at += bytes;
    }
    for (unsigned i = 0; i < k->skeletons; i++) {
        if (strcmp(k->skeleton[i], to) == 0)
            return;
    }
    k->skeletons++;
}

static void learn(struct known *k, unsigned op)
{
    struct ref_form f;

    memset(k, 0, sizeof *k);
    for (size_t i = 0; i < reference_rows_count; i++) {
        for (unsigned n = 0; reference_rows[i].opcode == op && form_make(&reference_rows[i], n, &f); n++) {
            k->pair[type_index(f.type)][type_index(f.stype)] = true;
            if (form_is_bare(&f))
                add_skeleton(k, &f);
        }
    }
}

/* The skeleton with those types; false when it has more or fewer places. */
static bool dress(const char *skeleton, unsigned t, unsigned s, struct ref_form *f)
{
    unsigned types[2] = {t, s}, used = 0;
    size_t   n = 0;

    *f = (struct ref_form){0};
    for (; *skeleton; skeleton++) {
        if (*skeleton != '#')
            f->text[n++] = *skeleton;
        else if (used < 2 && types[used] < TYPE_WORDS)
            n += (size_t)snprintf(f->text + n, sizeof f->text - n, "%s", type_words[types[used++]]);
        else
            return false;
    }
    return used == (unsigned)(t < TYPE_WORDS) + (unsigned)(s < TYPE_WORDS);
}

static void check_refused(const struct reference_row *row, const struct known *k, unsigned t, unsigned s)
{
    struct ref_form f;

    for (unsigned i = 0; i < k->skeletons; i++) {
        if (!dress(k->skeleton[i], t, s, &f))
            continue;
        form_read(row, &f);
        cr_expect(!f.type || !loads(row, &f), "`%s` is taken, and no reference knows it", f.text);
    }
}

Test(interp_reference, types_without_a_reference_are_refused, .timeout = 600)
{
    static struct known k;

    for (unsigned op = 0; op < PTX_OP_COUNT; op++) {
        const struct reference_row row = {.opcode = op};

        learn(&k, op);
        for (unsigned t = 0; t < TYPE_WORDS; t++) {
            for (unsigned s = 0; s <= TYPE_WORDS; s++) {
                if (!k.pair[t][s])
                    check_refused(&row, &k, t, s);
            }
        }
    }
}
