/* What the files of the PTX parser share. A function that returns bool has recorded the problem when it returns false. */
#pragma once

#include "device/cpu/bounds.h"
#include "device/cpu/ptx/ir.h"
#include "device/cpu/ptx/lex.h"
#include "device/cpu/ptx/names.h"

/* The origin of a shared variable's offset while parsing: places are known once all functions are read. */
enum shared_base {
    SHARED_OF_MODULE = 0xfffffff0, /* variables of the module and of device functions: at the start of the window */
    SHARED_OF_ENTRY,               /* of one kernel: behind those */
    SHARED_DYNAMIC,                /* extern: behind the largest kernel's */
};

struct ptx_label {
    struct span text;
    uint32_t    scope;
    uint32_t    insn;
    uint32_t    line;
};

/* `.branchtargets`: names[first .. first + count) */
struct ptx_target_list {
    struct span text;
    uint32_t    scope;
    uint32_t    first, count;
};

struct ptx_scope {
    uint32_t parent;
    uint32_t names;  /* how many names there were before */
    uint32_t params; /* bytes of the frame of .param variables in use before: scopes side by side share them */
};

/* The function being read. Arrays are owned, and copied to the module's arena when it is complete. */
struct ptx_body {
    struct ptx_function    *function;
    struct ptx_register    *registers;
    uint32_t                registers_count, registers_room;
    struct ptx_insn        *insns;
    uint32_t                insns_count, insns_room;
    struct ptx_label       *labels; /* defined */
    uint32_t                labels_count, labels_room;
    struct ptx_label       *uses; /* of labels by bra, and of target lists by brx: insn is the user */
    uint32_t                uses_count, uses_room;
    struct ptx_target_list *lists;
    uint32_t                lists_count, lists_room;
    struct ptx_label       *targets; /* names in those lists */
    uint32_t                targets_count, targets_room;
    struct ptx_scope       *scopes;
    uint32_t                scopes_count, scopes_room;
    uint32_t                scope, depth;
    uint32_t                params_used;   /* bytes of the frame of .param variables, now */
    uint32_t                results_first; /* register of the first result that is one; the others follow */
    bool                    selects;       /* ... or parts of a register, "%r1.b0", or "-register" */
    bool                    sums;          /* the operand that is read may be "register + number" */
    bool                    texels;        /* an address may be the first half of "[texture, {coordinates}]" ... */
    bool                    inside;        /* ... and was: the bracket is still open */
};

/* A word of an initialiser that names a symbol or function: resolved at the end of the text. */
struct ptx_pending {
    struct span           name;
    uint32_t              line;
    uint32_t              symbol; /* whose initialiser */
    struct ptx_relocation relocation;
};

struct ptx_parser {
    struct ptx_lexer     lexer;
    struct ptx_token     now;
    struct ptx_module   *module;
    struct problem      *why;
    enum status          status;
    struct ptx_names     names;         /* of the text that is being read */
    struct ptx_names     linked;        /* functions and module variables that other texts may mean, of all texts */
    uint32_t             image, images; /* its number, from 1, and how many there are */
    bool                 own;           /* ... or it is the device's own */
    struct ptx_body      body;
    struct ptx_function *functions; /* owned; moves to the arena at the end, as do symbols */
    uint32_t             functions_count, functions_room;
    struct ptx_symbol   *symbols;
    uint32_t             symbols_count, symbols_room;
    bool                *externs; /* symbols only declared; owned */
    uint32_t             externs_room;
    struct ptx_pending  *pending; /* owned */
    uint32_t             pending_count, pending_room;
    struct ptx_file     *files; /* owned */
    uint32_t             files_count, files_room;
    uint32_t             source_file, source_line; /* of the following instructions, by `.loc`; line 0: unknown */
    uint32_t             shared_module;            /* bytes */
    uint32_t             shared_align;
    bool                 reserves; /* shared memory for the system, at shared_reserved */
    uint32_t             shared_reserved;
};

/* device/cpu/ptx/tables/tables.c */
struct ptx_opcode_row {
    const char *word, *operands, *types, *second_types; /* see opcodes.def */
};
extern const struct ptx_opcode_row ptx_opcodes[PTX_OP_COUNT];
enum ptx_type                      ptx_type_find(struct span word);        /* of registers and memory: whole bytes */
enum ptx_type                      ptx_matrix_type_find(struct span word); /* those of matrices too */
enum ptx_opcode                    ptx_opcode_find(struct span word);      /* PTX_OP_COUNT if none */
enum ptx_special                   ptx_special_find(struct span word);     /* PTX_SPECIAL_COUNT if none */
/* A number token as bits of type t; false when t cannot have it. */
bool ptx_literal(enum ptx_token_kind kind, uint64_t bits, bool negative, enum ptx_type t, uint64_t *out);

/* device/cpu/ptx/parse.c */
bool ptx_fail(struct ptx_parser *p, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool ptx_fail_memory(struct ptx_parser *p);
bool ptx_expected(struct ptx_parser *p, const char *what);
/* "`text` is not supported on device cpu", "`name` is declared twice" */
bool ptx_fail_unsupported(struct ptx_parser *p, uint32_t line, struct span text);
bool ptx_fail_twice(struct ptx_parser *p, struct span name);
void ptx_next(struct ptx_parser *p);
bool ptx_is_mark(const struct ptx_parser *p, char c);
bool ptx_is_word(const struct ptx_parser *p, const char *word);
bool ptx_accept(struct ptx_parser *p, char c);
bool ptx_accept_word(struct ptx_parser *p, const char *word);
bool ptx_expect(struct ptx_parser *p, char c);
bool ptx_take_name(struct ptx_parser *p, struct span *out, const char *what);
bool ptx_take_integer(struct ptx_parser *p, uint64_t max, uint64_t *out, const char *what);
/* A type directive such as ".b32". */
bool ptx_take_type(struct ptx_parser *p, enum ptx_type *out);
void ptx_skip_line(struct ptx_parser *p, uint32_t line);
/* Takes .file and .loc; skips .section and .pragma, which have no effect. False: the current token is none of them. */
bool ptx_skip_directive(struct ptx_parser *p);
/* device/cpu/ptx/source.c: `.file number "name"` and `.loc file line column`. Malformed ones are skipped: they do not affect the code. */
void  ptx_parse_file(struct ptx_parser *p);
void  ptx_parse_loc(struct ptx_parser *p);
void *ptx_copy_array(struct ptx_parser *p, const void *from, size_t count, size_t element_bytes);

/* Reads one text with its head; its names are gone afterwards. */
bool ptx_parse_text(struct ptx_parser *p, struct span text);

/* device/cpu/ptx/link.c */
enum ptx_choice { PTX_CLASH, PTX_KEEP, PTX_REPLACE };
/* What other texts said of a name that is not local here; NULL: nothing. */
const struct ptx_name *ptx_link_find(const struct ptx_parser *p, struct span name, enum ptx_linkage linkage);
/* Other texts may mean function or variable `index` by that name. */
bool ptx_link_add(struct ptx_parser *p, struct span name, enum ptx_name_kind kind, uint32_t index);
/* Of a name that the text declared before by `old`, and now by `linkage`. */
enum ptx_linkage ptx_link_join(enum ptx_linkage old, enum ptx_linkage linkage);
/* Of two definitions by different texts. PTX_CLASH has recorded the problem. */
enum ptx_choice ptx_link_choose_function(struct ptx_parser *p, const struct ptx_function *known, enum ptx_linkage linkage);
enum ptx_choice ptx_link_choose_symbol(struct ptx_parser *p, const struct ptx_symbol *known, uint64_t bytes, enum ptx_linkage linkage);
/* The bytes of a variable that another text knows. */
bool ptx_link_same_size(struct ptx_parser *p, const struct ptx_symbol *known, uint64_t bytes, enum ptx_linkage linkage);
bool ptx_link_hide(struct ptx_parser *p);
/* Functions of CUDA's device runtime that a text calls and none defines: the device has its own. */
bool ptx_link_runtime(struct ptx_parser *p);
/* Everything up to the mark that closes the one that is now the current token, with it. */
bool ptx_skip_braces(struct ptx_parser *p);

/* device/cpu/ptx/variable.c */
struct ptx_declaration {
    struct span   name;
    enum ptx_type type;
    uint32_t      align;
    unsigned      vector;
    uint64_t      dimensions[PTX_DIMENSIONS_MAX];
    unsigned      dimensions_count;
    bool          open; /* "[]" */
    uint64_t      bytes;
};
/* What follows the state space: .align, type, name, dimensions. */
bool           ptx_take_declaration(struct ptx_parser *p, struct ptx_declaration *d);
enum ptx_space ptx_space_word(struct span word); /* ".global" ...; PTX_GENERIC if it is none */
/* `.space ... ;` of a module or a body; the space is the current token. */
bool ptx_parse_variable(struct ptx_parser *p, enum ptx_linkage linkage);
bool ptx_align_up(uint64_t *offset, uint64_t align, uint64_t max);
/* "%reserved_smem_offset_…": where in shared memory the system has a part of its own, which CUDA's headers use. A module that asks has one,
 * among its variables. */
bool ptx_is_reserved_shared(struct span word);
bool ptx_take_reserved_shared(struct ptx_parser *p, uint64_t *value);

/* device/cpu/ptx/initialiser.c */
bool ptx_parse_initialiser(struct ptx_parser *p, const struct ptx_declaration *d, uint32_t symbol);
bool ptx_resolve_initialisers(struct ptx_parser *p);

/* device/cpu/ptx/function.c */
bool ptx_parse_function(struct ptx_parser *p, bool entry, enum ptx_linkage linkage);
void ptx_body_finish(struct ptx_body *b);

/* Adds `count` registers to the body; *first is the first of them. */
bool ptx_add_register(struct ptx_parser *p, enum ptx_type type, uint64_t count, uint32_t *first);

/* device/cpu/ptx/labels.c */
bool ptx_label_define(struct ptx_parser *p, struct span name, uint32_t line);
bool ptx_label_use(struct ptx_parser *p, struct span name, uint32_t line);
bool ptx_parse_targets(struct ptx_parser *p, struct span name);
bool ptx_resolve_labels(struct ptx_parser *p);

/* device/cpu/ptx/opcode.c */
bool ptx_parse_opcode(struct ptx_parser *p, struct span text, struct ptx_insn *in, bool *policy);
bool ptx_is_video(const struct ptx_insn *in);

/* device/cpu/ptx/operand.c */
bool ptx_parse_operand(struct ptx_parser *p, enum ptx_type type, struct ptx_operand *out);
bool ptx_take_register(struct ptx_parser *p, uint32_t *out);

/* device/cpu/ptx/form.c */
/* The type of operand i of that instruction; `count` as far as known (bar.red). */
enum ptx_type ptx_operand_type(const struct ptx_insn *in, unsigned i);
bool          ptx_check_form(struct ptx_parser *p, const struct ptx_insn *in);

/* device/cpu/ptx/insn.c, device/cpu/ptx/call.c: from the guard or opcode to the ';' */
bool ptx_parse_insn(struct ptx_parser *p);
/* Appends it to the body. */
bool ptx_emit(struct ptx_parser *p, const struct ptx_insn *in);
/* Appends what a return by that guard (of *ret) does before: results that are registers are stored. */
bool ptx_emit_results(struct ptx_parser *p, const struct ptx_insn *ret);
bool ptx_parse_call(struct ptx_parser *p, struct ptx_insn *in);
