/* Several texts as one module. A text's names are its own but for those that it declares `.extern`, `.visible`, `.weak` or `.common`: these mean
 * one function or variable in all texts, which has one index from the first text that names it on. So nothing is patched afterwards. */
#include "device/cpu/bounds.h"
#include "device/cpu/ptx/parser.h"

#include <stdio.h>

enum { NAME_SHOWN_BYTES = 64 };

const char *ptx_image_words(const struct ptx_insn *in, char room[PTX_IMAGE_WORDS_BYTES])
{
    room[0] = '\0';
    if (in->image)
        snprintf(room, PTX_IMAGE_WORDS_BYTES, "image %u, ", (unsigned)in->image);
    return room;
}

const struct ptx_name *ptx_link_find(const struct ptx_parser *p, struct span name, enum ptx_linkage linkage)
{
    return linkage == LINK_LOCAL ? NULL : ptx_names_find(&p->linked, name);
}

bool ptx_link_add(struct ptx_parser *p, struct span name, enum ptx_name_kind kind, uint32_t index)
{
    struct ptx_name *added;

    if (ptx_names_find(&p->linked, name))
        return ptx_fail_twice(p, name);
    added = ptx_names_add(&p->linked, name, kind);
    if (!added)
        return ptx_fail_memory(p);
    added->first = index;
    return true;
}

/* A definition without a word behind a declaration with one is what that said. */
enum ptx_linkage ptx_link_join(enum ptx_linkage old, enum ptx_linkage linkage)
{
    if (linkage != LINK_LOCAL)
        return linkage;
    return old == LINK_EXTERN ? LINK_VISIBLE : old;
}

static enum ptx_choice fail_both(struct ptx_parser *p, struct span name, uint32_t image)
{
    ptx_fail(p, p->now.line, "`%.*s` is defined in image %u, too", SPAN_ARG(span_first(name, NAME_SHOWN_BYTES)), image);
    return PTX_CLASH;
}

/* The linkages stand in the order of their weight. */
enum ptx_choice ptx_link_choose_function(struct ptx_parser *p, const struct ptx_function *known, enum ptx_linkage linkage)
{
    if (linkage > known->linkage)
        return PTX_REPLACE;
    return linkage < known->linkage || linkage == LINK_WEAK ? PTX_KEEP : fail_both(p, known->name, known->image);
}

static enum ptx_choice fail_size(struct ptx_parser *p, const struct ptx_symbol *known, uint64_t bytes)
{
    ptx_fail(p, p->now.line, "`%.*s` has %llu bytes here and %llu in image %u", SPAN_ARG(span_first(known->name, NAME_SHOWN_BYTES)),
             (unsigned long long)bytes, (unsigned long long)known->bytes, known->image);
    return PTX_CLASH;
}

/* Of several `.common` variables the largest counts, and it alone may have an initialiser. */
static enum ptx_choice choose_common(struct ptx_parser *p, const struct ptx_symbol *known, uint64_t bytes)
{
    bool initialised = ptx_is_mark(p, '=');

    if (initialised && known->init)
        return fail_both(p, known->name, known->image);
    if ((initialised && bytes < known->bytes) || (known->init && bytes > known->bytes))
        return fail_size(p, known, bytes);
    return initialised || bytes > known->bytes ? PTX_REPLACE : PTX_KEEP;
}

enum ptx_choice ptx_link_choose_symbol(struct ptx_parser *p, const struct ptx_symbol *known, uint64_t bytes, enum ptx_linkage linkage)
{
    if (linkage == LINK_COMMON && known->linkage == LINK_COMMON)
        return choose_common(p, known, bytes);
    if ((known->linkage == LINK_COMMON && bytes < known->bytes) || (linkage == LINK_COMMON && bytes > known->bytes))
        return fail_size(p, known, bytes);
    if (linkage > known->linkage)
        return PTX_REPLACE;
    return linkage < known->linkage || linkage == LINK_WEAK ? PTX_KEEP : fail_both(p, known->name, known->image);
}

/* "x[]" has no size yet, and those of `.common` variables may differ. */
bool ptx_link_same_size(struct ptx_parser *p, const struct ptx_symbol *known, uint64_t bytes, enum ptx_linkage linkage)
{
    if (known->image == p->image || !known->bytes || !bytes || known->bytes == bytes || known->linkage == LINK_COMMON ||
        linkage == LINK_COMMON)
        return true;
    fail_size(p, known, bytes);
    return false;
}

/* Two texts may have local variables of one name: hosts find the one that others may mean, or else the first. */
bool ptx_link_hide(struct ptx_parser *p)
{
    if (p->images == 1)
        return true;
    for (uint32_t i = 0; i < p->symbols_count; i++) {
        struct ptx_symbol *s = &p->symbols[i];

        if (s->linkage != LINK_LOCAL)
            continue;
        s->hidden = ptx_names_find(&p->linked, s->name) != NULL;
        if (!s->hidden && !ptx_link_add(p, s->name, NAME_VARIABLE, i))
            return false;
    }
    return true;
}

bool ptx_skip_braces(struct ptx_parser *p)
{
    unsigned depth = 0;

    do {
        if (p->now.kind == TOKEN_END)
            return ptx_expected(p, "`}`");
        depth += ptx_is_mark(p, '{');
        depth -= ptx_is_mark(p, '}');
        ptx_next(p);
    } while (depth);
    return true;
}

/* The barrier of a grid as CUDA's cooperative groups have it: each block adds one, the first one what flips the highest bit when all have come. Of
 * a launch that is not cooperative there is no place to meet: the handle is 0, which traps. */
static const char runtime_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)\n"
    "{\n"
    ".reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<2>;\n"
    "ld.param.u32 %r1, [scope];\n"
    "mov.u32 %r2, %envreg1;\nmov.u32 %r3, %envreg2;\nmov.b64 %d1, {%r3, %r2};\n"
    "setp.eq.u32 %p, %r1, 1;\nselp.b64 %d1, %d1, 0, %p;\n"
    "st.param.b64 [handle], %d1;\nret;\n"
    "}\n"
    ".weak .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)\n"
    "{\n"
    ".reg .pred %p, %first, %one; .reg .b32 %r<12>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [handle];\n"
    "setp.eq.u64 %p, %d1, 0;\n@%p trap;\n"
    "barrier.sync 0;\n"
    "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.y;\nmov.u32 %r3, %tid.z;\nor.b32 %r1, %r1, %r2;\nor.b32 %r1, %r1, %r3;\n"
    "setp.ne.u32 %first, %r1, 0;\n@%first bra met;\n"
    "mov.u32 %r1, %nctaid.x;\nmov.u32 %r2, %nctaid.y;\nmov.u32 %r3, %nctaid.z;\n"
    "mul.lo.u32 %r1, %r1, %r2;\nmul.lo.u32 %r1, %r1, %r3;\nsub.u32 %r4, -2147483647, %r1;\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ctaid.y;\nmov.u32 %r3, %ctaid.z;\nor.b32 %r1, %r1, %r2;\nor.b32 %r1, %r1, %r3;\n"
    "setp.eq.u32 %one, %r1, 0;\nselp.b32 %r5, %r4, 1, %one;\n"
    "atom.add.acq_rel.gpu.u32 %r6, [%d1+4], %r5;\n"
    "again:\nld.acquire.gpu.u32 %r7, [%d1+4];\nxor.b32 %r8, %r6, %r7;\nsetp.ge.s32 %p, %r8, 0;\n@%p bra again;\n"
    "met:\nbarrier.sync 0;\n"
    "st.param.b32 [result], 0;\nret;\n"
    "}\n";

static bool wants_runtime(const struct ptx_parser *p)
{
    static const char *const names[] = {"cudaCGGetIntrinsicHandle", "cudaCGSynchronize"};

    for (unsigned i = 0; i < COUNT(names); i++) {
        const struct ptx_name *name = ptx_names_find(&p->linked, span_of(names[i]));

        if (name && name->kind == NAME_FUNCTION && !p->functions[name->first].defined)
            return true;
    }
    return false;
}

bool ptx_link_runtime(struct ptx_parser *p)
{
    bool ok;

    if (!wants_runtime(p))
        return true;
    p->own = true;
    p->image++;
    ok = ptx_parse_text(p, span_of(runtime_text));
    p->image--;
    p->own = false;
    return ok;
}
