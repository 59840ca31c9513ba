/* An opcode with its modifiers, "setp.lt.and.s32", into the fields of an instruction. Modifiers that the opcode cannot carry are
 * refused. */
#include "device/cpu/ptx/parser.h"

#include <stdio.h>

enum { WORD_BYTES_MAX = 24 };

#define VIDEO                                                                                                                      \
    " vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 vshl vshr "   \
    "vsub vsub2 vsub4 "

static bool opcode_listed(const char *opcodes, uint8_t op)
{
    char word[WORD_BYTES_MAX];

    snprintf(word, sizeof word, " %s ", ptx_opcodes[op].word);
    return strstr(opcodes, word) != NULL;
}

enum modifier_member {
#define PTX_USE(member, opcodes) MEMBER_##member,
#include "device/cpu/ptx/tables/modifier_use.def"
#undef PTX_USE
    MEMBERS
};

static const char *const member_opcodes[MEMBERS] = {
#define PTX_USE(member, opcodes) opcodes,
#include "device/cpu/ptx/tables/modifier_use.def"
#undef PTX_USE
};

static uint8_t *member_of(struct ptx_insn *in, enum modifier_member which)
{
    switch (which) {
#define PTX_USE(member, opcodes) case MEMBER_##member: return &in->member;
#include "device/cpu/ptx/tables/modifier_use.def"
#undef PTX_USE
    case MEMBERS: break;
    }
    return NULL;
}

static const struct { const char *word; enum modifier_member member; uint8_t value; } modifiers[] = {
#define PTX_MOD(NAME, word, member) {word, MEMBER_##member, PTX_##NAME},
#include "device/cpu/ptx/tables/modifiers.def"
#undef PTX_MOD
};

static const struct { const char *opcodes; const char *word; uint8_t action; } actions[] = {
#define PTX_ACTION(opcodes, word, NAME) {opcodes, word, PTX_DO_##NAME},
#include "device/cpu/ptx/tables/actions.def"
#undef PTX_ACTION
};

bool ptx_is_video(const struct ptx_insn *in)
{
    return opcode_listed(VIDEO, in->opcode);
}

/* Types that are kept as written. */
static bool take_type(struct ptx_insn *in, struct span word)
{
    bool          matrix = in->pack || opcode_listed(" mma wmma ", in->opcode) || ptx_is_video(in);
    enum ptx_type t = matrix ? ptx_matrix_type_find(word) : ptx_type_find(word);

    if (t == PTX_NO_TYPE)
        return false;
    if (matrix) {
        if (in->types_count == COUNT(in->types))
            return false;
        in->types[in->types_count++] = (uint8_t)t;
        return true;
    }
    if (!in->type)
        in->type = (uint8_t)t;
    else if (!in->stype && ptx_opcodes[in->opcode].second_types[0])
        in->stype = (uint8_t)t;
    else
        return false;
    return true;
}

static bool take_action(struct ptx_insn *in, struct span word)
{
    for (unsigned i = 0; i < COUNT(actions); i++) {
        if (!in->action && span_is(word, actions[i].word) && opcode_listed(actions[i].opcodes, in->opcode)) {
            in->action = actions[i].action;
            return true;
        }
    }
    return false;
}

static bool take_modifier(struct ptx_insn *in, struct span word)
{
    for (unsigned i = 0; i < COUNT(modifiers); i++) {
        uint8_t *member;

        if (!span_is(word, modifiers[i].word) || !opcode_listed(member_opcodes[modifiers[i].member], in->opcode))
            continue;
        member = member_of(in, modifiers[i].member);
        /* Among barriers only the cluster's has an order. */
        if (*member || (in->opcode == PTX_OP_BARRIER && modifiers[i].member == MEMBER_order && in->scope != PTX_SCOPE_CLUSTER))
            return false;
        *member = modifiers[i].value;
        return true;
    }
    return false;
}

static bool take_space(struct ptx_insn *in, struct span word)
{
    static const struct { const char *word; enum ptx_space space; } rows[] = {
        {"global", PTX_GLOBAL}, {"shared", PTX_SHARED}, {"shared::cta", PTX_SHARED}, {"local", PTX_LOCAL}, {"const", PTX_CONST},
        {"shared::cluster", PTX_SHARED},
        {"param", PTX_PARAM}, {"param::entry", PTX_PARAM}, {"param::func", PTX_PARAM},
    };

    if (in->space || !opcode_listed(" ld ldmatrix stmatrix ldu wmma st atom red cp cvta isspacep prefetch mbarrier mapa getctarank ", in->opcode))
        return false;
    for (unsigned i = 0; i < COUNT(rows); i++) {
        if (span_is(word, rows[i].word)) {
            in->space = (uint8_t)rows[i].space;
            in->cluster = span_is(word, "shared::cluster");
            return true;
        }
    }
    return false;
}

/* Of matrices of bits: how two are combined before they are counted. */
static bool take_bit_action(struct ptx_insn *in, struct span word)
{
    if (!opcode_listed(" mma wmma ", in->opcode))
        return false;
    if (!in->bit_action && (span_is(word, "xor") || span_is(word, "and"))) {
        in->bit_action = span_is(word, "xor") ? PTX_DO_XOR : PTX_DO_AND;
        return true;
    }
    return in->bit_action && span_is(word, "popc");
}

/* For wmma only: which matrix, and its layout in memory. */
static bool take_wmma(struct ptx_insn *in, struct span word)
{
    bool column = span_is(word, "col");

    if (in->opcode != PTX_OP_WMMA)
        return false;
    if (!in->matrix && word.bytes == 1 && strchr("abcd", word.data[0])) {
        in->matrix = word.data[0];
        return true;
    }
    if ((column || span_is(word, "row")) && in->layouts_count < COUNT(in->layouts)) {
        in->layouts[in->layouts_count++] = column;
        return true;
    }
    return false;
}

/* The matrices of mma, wmma and ldmatrix: their shape, and how many. */
static bool take_matrix(struct ptx_insn *in, struct span word)
{
    static const struct { const char *word; enum ptx_shape shape; } rows[] = {
        {"m8n8", PTX_M8N8}, {"m8n8k16", PTX_M8N8K16}, {"m16n8k4", PTX_M16N8K4}, {"m16n8k8", PTX_M16N8K8}, {"m16n8k16", PTX_M16N8K16},
        {"m16n8k32", PTX_M16N8K32}, {"m16n16k16", PTX_M16N16K16}, {"m32n8k16", PTX_M32N8K16}, {"m8n32k16", PTX_M8N32K16},
        {"m16n16k8", PTX_M16N16K8}, {"m8n8k4", PTX_M8N8K4}, {"m8n8k32", PTX_M8N8K32}, {"m8n8k128", PTX_M8N8K128},
        {"m16n8k64", PTX_M16N8K64}, {"m16n8k128", PTX_M16N8K128}, {"m16n8k256", PTX_M16N8K256},
    };

    if (opcode_listed(" ldmatrix stmatrix ", in->opcode) && word.bytes == 2
        && word.data[0] == 'x' && strchr("124", word.data[1])) {
        in->vector = (uint8_t)(word.data[1] - '0');
        return true;
    }
    if (opcode_listed(" ldmatrix stmatrix movmatrix ", in->opcode) && span_is(word, "trans"))
        return in->transposed = true;
    for (unsigned i = 0; i < COUNT(rows) && opcode_listed(" mma wmma ldmatrix stmatrix movmatrix ", in->opcode); i++) {
        if (!in->shape && span_is(word, rows[i].word)) {
            in->shape = (uint8_t)rows[i].shape;
            return true;
        }
    }
    return false;
}

static bool take_vector(struct ptx_insn *in, struct span word)
{
    if (in->vector > 1 || word.bytes != 2 || word.data[0] != 'v' || !opcode_listed(" ld ldu st atom red tex tld4 suld sust ", in->opcode))
        return false;
    in->vector = word.data[1] == '2' ? 2 : word.data[1] == '4' ? 4 : word.data[1] == '8' ? 8 : 0;
    return in->vector != 0;
}

static bool take_flag(struct ptx_insn *in, struct span word)
{
    uint8_t op = in->opcode;
    bool    bar = op == PTX_OP_BAR || op == PTX_OP_BARRIER;

    if (span_is(word, "sync") && (bar || opcode_listed(" shfl vote match redux elect mma wmma ldmatrix stmatrix movmatrix ", op))) {
        in->sync = true;
        in->action = bar && !in->action ? PTX_DO_SYNC : in->action;
    } else if (span_is(word, "abs") && in->xorsign) { /* ".xorsign.abs" is one thing */
        return true;
    } else if (span_is(word, "async") && op == PTX_OP_CP) {
        in->async = true;
    } else if (span_is(word, "noinc") && op == PTX_OP_CP && in->action == PTX_DO_ARRIVE) {
        in->noinc = true;
    } else if (span_is(word, "parity") && op == PTX_OP_MBARRIER) {
        in->parity = true;
    } else if (span_is(word, "pack") && op == PTX_OP_CVT && !in->type) {
        in->pack = true;
    } else if (op == PTX_OP_VMAD && span_is(word, "po")) {
        in->plus_one = true;
    } else if (op == PTX_OP_VMAD && !in->shift && (span_is(word, "shr7") || span_is(word, "shr15"))) {
        in->shift = span_is(word, "shr7") ? 7 : 15;
    } else if (span_is(word, "red") && bar) {
        in->red = true;
    } else if (span_is(word, "warp") && op == PTX_OP_BAR) {
        in->warp = true;
    } else {
        return false;
    }
    return true;
}

/* Hints for caches and the like: no effect on a host. */
static bool take_hint(const struct ptx_insn *in, struct span word, bool *policy)
{
    static const struct { const char *opcodes; const char *word; } rows[] = {
        {" ld suld ", "ca"}, {" ld st suld sust ", "cg"}, {" ld st suld sust ", "cs"}, {" ld ", "lu"}, {" ld suld ", "cv"}, {" ld ", "nc"},
        {" st sust ", "wb"}, {" st sust ", "wt"},
        {" prefetch prefetchu ", "L1"}, {" prefetch ", "L2"}, {" griddepcontrol ", "wait"}, {" griddepcontrol ", "launch_dependents"},
        {" fence ", "proxy"}, {" fence ", "alias"}, {" fence ", "async"}, {" pmevent ", "mask"},
        {" cp ", "ca"}, {" cp ", "cg"}, {" cp ", "arrive"}, {" mbarrier ", "noComplete"}, {" fence ", "mbarrier_init"}, {" cp ", "shared"}, {" cp ", "shared::cta"}, {" cp ", "global"},
        {" mma ", "row"}, {" mma ", "col"},
        {" discard applypriority ", "global"}, {" discard createpolicy ", "L2"}, {" createpolicy ", "fractional"},
        {" createpolicy ", "range"}, {" createpolicy ", "cvt"}, {" createpolicy ", "global"},
    };

    if (opcode_listed(" ld st atom red prefetch cp createpolicy applypriority ", in->opcode)
        && (span_starts(word, "L1::") || span_starts(word, "L2::"))) {
        *policy = *policy || span_is(word, "L2::cache_hint");
        return true;
    }
    for (unsigned i = 0; i < COUNT(rows); i++) {
        if (span_is(word, rows[i].word) && opcode_listed(rows[i].opcodes, in->opcode))
            return true;
    }
    return false;
}

static bool take_word(struct ptx_insn *in, struct span word, bool *policy)
{
    return take_type(in, word) || take_action(in, word) || take_flag(in, word) || take_wmma(in, word) || take_bit_action(in, word)
           || take_matrix(in, word) || take_vector(in, word) || take_space(in, word) || take_modifier(in, word)
           || take_hint(in, word, policy);
}

bool ptx_parse_opcode(struct ptx_parser *p, struct span text, struct ptx_insn *in, bool *policy)
{
    struct span rest = text, base = span_cut(&rest, '.');

    in->text = text;
    in->vector = 1;
    in->opcode = (uint8_t)ptx_opcode_find(base);
    *policy = false;
    if (in->opcode == PTX_OP_COUNT)
        return ptx_fail_unsupported(p, in->line, text);
    if (base.bytes == text.bytes)
        return true;
    do {
        if (!take_word(in, span_cut(&rest, '.'), policy))
            return ptx_fail_unsupported(p, in->line, text);
    } while (rest.bytes);
    return true;
}
