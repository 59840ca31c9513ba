/* A PTX module as the parser gives it to the interpreter: names resolved, immediates converted, targets indexed. Made once at load,
 * immutable afterwards. The module owns all pointers. */
#pragma once

#include "base/arena.h"
#include "base/problem.h"
#include "limits.h"

enum ptx_type {
    PTX_NO_TYPE,
#define PTX_TYPE(NAME, word, bytes) PTX_##NAME,
#include "device/cpu/ptx/tables/types.def"
#undef PTX_TYPE
    PTX_TYPE_COUNT
};
unsigned    ptx_type_bytes(enum ptx_type t);
const char *ptx_type_word(enum ptx_type t);

enum ptx_opcode {
#define PTX_OP(NAME, ...) PTX_OP_##NAME,
#include "device/cpu/ptx/tables/opcodes.def"
#undef PTX_OP
    PTX_OP_COUNT
};

/* All modifiers share one number space; 0 is "not given". */
enum ptx_modifier {
    PTX_NO_MODIFIER,
#define PTX_MOD(NAME, word, member) PTX_##NAME,
#include "device/cpu/ptx/tables/modifiers.def"
#undef PTX_MOD
};

enum ptx_special {
#define PTX_SPECIAL(NAME, word, KIND) PTX_SPECIAL_##NAME,
#include "device/cpu/ptx/tables/specials.def"
#undef PTX_SPECIAL
    PTX_SPECIAL_COUNT
};

/* What a special register is the same for: a launch; or that it is another for each thread or block, or read from a clock. */
enum ptx_special_kind { PTX_OF_LAUNCH, PTX_OF_LANE, PTX_OF_BLOCK, PTX_OF_CLOCK };
extern const uint8_t ptx_special_kinds[];

/* PTX_KERNEL_PARAM, in operands only: an entry's own parameter, in the block that the launch brings. PTX_PARAM: the frame of .param
 * variables of a function and its calls. Instructions say PTX_PARAM for both: a register base in an entry means the launch's block. */
enum ptx_space { PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_CONST, PTX_PARAM, PTX_KERNEL_PARAM };

/* What an instruction does beyond its name: atom/red operation, setp/set's combining operation, bar.red, vote, shfl, match, redux, brx,
 * bar form. */
enum ptx_action {
    PTX_NO_ACTION,
    PTX_DO_ADD, PTX_DO_INC, PTX_DO_DEC, PTX_DO_MIN, PTX_DO_MAX, PTX_DO_AND, PTX_DO_OR, PTX_DO_XOR, PTX_DO_EXCH, PTX_DO_CAS, PTX_DO_POPC,
    PTX_DO_UP, PTX_DO_DOWN, PTX_DO_BFLY, PTX_DO_IDX,        /* shfl */
    PTX_DO_ALL, PTX_DO_ANY, PTX_DO_UNI, PTX_DO_BALLOT,      /* vote; match has all and any */
    PTX_DO_SYNC, PTX_DO_ARRIVE,                             /* bar, barrier; with an operation of the first row: bar.red */
    PTX_DO_LEFT, PTX_DO_RIGHT,                              /* shf */
    PTX_DO_COMMIT, PTX_DO_WAIT, PTX_DO_WAIT_ALL,            /* cp.async */
    PTX_DO_LOAD, PTX_DO_STORE, PTX_DO_MULTIPLY,             /* wmma */
    PTX_DO_INIT, PTX_DO_INVAL, PTX_DO_ARRIVE_DROP, PTX_DO_TEST_WAIT, PTX_DO_TRY_WAIT, PTX_DO_PENDING_COUNT, /* mbarrier */
    PTX_DO_F4E, PTX_DO_B4E, PTX_DO_RC8, PTX_DO_ECL, PTX_DO_ECR, PTX_DO_RC16, /* prmt */
};

enum { PTX_NO_REG = UINT32_MAX, PTX_NO_INDEX = UINT32_MAX, PTX_VECTOR_MAX = 8, PTX_OPERANDS_MAX = 6 };

/* Of the matrices of mma, wmma and ldmatrix. */
enum ptx_shape { PTX_NO_SHAPE, PTX_M8N8, PTX_M8N8K16, PTX_M16N8K4, PTX_M16N8K8, PTX_M16N8K16, PTX_M16N8K32,
                 PTX_M16N16K16, PTX_M32N8K16, PTX_M8N32K16, PTX_M16N16K8, PTX_M8N8K4, PTX_M8N8K32, PTX_M8N8K128, PTX_M16N8K64, PTX_M16N8K128,
                 PTX_M16N8K256 };

/* Parts of a register: three bits for each digit of the selector, the last digit lowest; then how many; and whether they are halves. */
enum { PTX_SELECT_DIGIT_BITS = 3, PTX_SELECT_DIGITS_MAX = 4, PTX_SELECT_COUNT_SHIFT = 12, PTX_SELECT_HALVES = 1 << 15 };

enum ptx_operand_kind {
    PTX_NOTHING,
    PTX_REG,       /* reg */
    PTX_IMMEDIATE, /* value: raw bits in the operation's type (of that operand), zero-extended; integers sign-extended to 64 bits */
    PTX_SPECIAL_,  /* special */
    PTX_SINK,      /* '_': the result is dropped */
    PTX_VECTOR,    /* elements[0..count) */
    PTX_ADDRESS,   /* [reg + value] or [symbol + value]; also a bare symbol in mov: its address in its own space */
    PTX_FUNCTION,  /* index into functions: a function's address */
};

struct ptx_operand {
    uint8_t  kind;    /* enum ptx_operand_kind */
    bool     negated; /* "!%p"; of vmad, "-%r" */
    uint8_t  special; /* enum ptx_special */
    uint8_t  count;   /* PTX_VECTOR */
    uint8_t  space;   /* PTX_ADDRESS with a symbol: the space of that symbol (enum ptx_space) */
    uint32_t reg;     /* PTX_REG; PTX_ADDRESS: base, or PTX_NO_REG */
    uint32_t index;   /* PTX_ADDRESS: module symbol for GLOBAL and CONST (its address is known after load), else PTX_NO_INDEX;
                         PTX_FUNCTION: function */
    uint64_t value;   /* PTX_IMMEDIATE; PTX_ADDRESS: offset, two's complement; for SHARED, LOCAL and PARAM symbols their own offset is in it */
    uint16_t select;  /* PTX_REG of video instructions: PTX_SELECT_… of ".b3210" and the like; 0: the whole register */
    const struct ptx_operand *elements; /* PTX_VECTOR: REG, IMMEDIATE, SPECIAL_ or SINK */
};

/* A call's actual parameters are .param variables or registers, in order. */
struct ptx_call {
    uint32_t           function;  /* index, or PTX_NO_INDEX: indirect through `target` */
    struct ptx_operand target;    /* register with a function's address */
    const struct ptx_operand *results; /* PTX_ADDRESS in PTX_PARAM space, or PTX_REG */
    unsigned           results_count;
    const struct ptx_operand *args;    /* as results, or PTX_IMMEDIATE */
    unsigned           args_count;
    const struct ptx_prototype *prototype; /* indirect calls */
};

/* What other images may do with a name. LINK_LOCAL: nothing; LINK_EXTERN: it is only declared here. Kernels are visible. */
enum ptx_linkage { LINK_LOCAL, LINK_EXTERN, LINK_WEAK, LINK_COMMON, LINK_VISIBLE };

struct ptx_insn {
    uint8_t  opcode;   /* enum ptx_opcode */
    uint8_t  type;     /* enum ptx_type: the operation's, for cvt/set/slct the destination's; PTX_NO_TYPE if none */
    uint8_t  stype;    /* second type: source type of cvt, set, slct, dp2a, dp4a */
    uint8_t  compare;  /* enum ptx_modifier EQ..., TESTP_... */
    uint8_t  action;   /* enum ptx_action: the boolean of setp/set (AND OR XOR), atom, red, bar.red, vote, shfl, ... */
    uint8_t  rounding, ftz, sat, relu, nan, xorsign, approx, carry, part, wrap, shiftamt, order, scope, to, uniform, noftz; /* enum ptx_modifier */
    uint8_t  geometry, sampling, component, raw, boundary, query; /* of textures and surfaces: enum ptx_modifier */
    uint8_t  space;    /* enum ptx_space of ld st atom red cvta isspacep prefetch */
    uint8_t  vector;   /* elements of ld/st, tex, suld/sust: 1, 2, 4 or 8 */
    uint8_t  shape;    /* enum ptx_shape of mma and ldmatrix */
    uint8_t  types[4]; /* mma: of d, a, b and c; wmma, vabsdiff, cvt.pack: as written */
    uint8_t  types_count;
    char     matrix;     /* wmma.load, wmma.store: 'a', 'b', 'c' or 'd' */
    uint8_t  bit_action; /* wmma.mma of bits: PTX_DO_XOR or PTX_DO_AND, then counted */
    bool     layouts[2]; /* wmma: by columns; of the matrix, or of a and b */
    uint8_t  layouts_count;
    bool     transposed; /* ldmatrix.trans */
    bool     async;    /* cp.async */
    bool     noinc;    /* cp.async.mbarrier.arrive.noinc */
    bool     parity;   /* mbarrier.test_wait.parity, try_wait.parity */
    bool     cluster;  /* the space is shared::cluster */
    bool     pack;     /* cvt.pack; its types are in `types` */
    bool     sync;     /* ".sync" was written */
    bool     red;      /* bar.red, barrier.red */
    bool     warp;     /* bar.warp */
    bool     plus_one; /* vmad.po */
    uint8_t  shift;    /* vmad: the result's, 0, 7 or 15 */
    bool     guard_not;
    uint32_t guard;    /* predicate register, or PTX_NO_REG */
    unsigned operands_count;
    struct ptx_operand operands[PTX_OPERANDS_MAX]; /* destinations first */
    struct ptx_operand predicate; /* second destination behind '|' (shfl, match, setp, lop3, tex), or PTX_NOTHING */
    uint32_t target;   /* bra: index of the instruction; in brx: unused */
    const uint32_t *targets; /* brx.idx: [targets_count] */
    uint32_t targets_count;
    const struct ptx_call *call;
    uint32_t line;     /* of the PTX text, from 1; 0: of the device's own */
    uint8_t  image;    /* of several that were linked, from 1; else 0 */
    uint32_t source_file; /* as `.file` numbers it; valid with source_line */
    uint32_t source_line; /* by `.loc`; 0: not known */
    struct span text;  /* the opcode with its modifiers, for messages: "setp.lt.s32" */
};

struct ptx_variable { /* a parameter, or a .param variable of a body */
    struct span   name;
    enum ptx_type type;
    uint32_t      offset; /* in its frame */
    uint32_t      bytes;
    bool          reg; /* of a function: a register of the body, which is loaded from its place at the start, or stored there at the end */
};

struct ptx_prototype {
    struct span                name;
    const struct ptx_variable *results;
    unsigned                   results_count;
    const struct ptx_variable *params; /* offsets: the layout of the caller's parameter block for an entry; for functions each from 0 of its own */
    unsigned                   params_count;
};

struct ptx_register {
    enum ptx_type type; /* as declared: tells the width only */
    uint8_t       bytes; /* 1 (pred), 2, 4, 8 or 16; 8-bit registers count 2 */
};

struct ptx_function {
    struct span                name;
    bool                       entry;
    bool                       defined; /* false: only declared (the interpreter provides vprintf, __assertfail, malloc, free) */
    enum ptx_linkage           linkage;
    uint32_t                   image;   /* that defines it, or declared it first; from 1 */
    struct ptx_prototype       signature;
    uint32_t                   params_bytes; /* entry: size of the parameter block */
    const struct ptx_register *registers;
    uint32_t                   registers_count;
    const struct ptx_insn     *insns;
    uint32_t                   insns_count; /* falling off the end returns */
    uint32_t                   param_frame_bytes; /* results, params (functions only) and .param variables of its calls, per thread */
    uint32_t                   local_bytes;       /* per thread */
    uint32_t                   shared_bytes;      /* static, per block, module-level variables included */
    uint32_t                   max_threads;       /* .maxntid, else 1024 */
    uint32_t                   required_block[3]; /* .reqntid, else 0: the only block that it may be launched with */
    uint32_t                   cluster[3];        /* blocks of a cluster: .reqnctapercluster, else 1 */
    bool                       explicit_cluster;  /* .reqnctapercluster was written */
    const void                *code;              /* the interpreter's decoded form, set by cpu_code_load_as */
    struct jit_kernel         *jit;               /* its compiled forms, set by device/cpu/jit/jit.c; or NULL */
};
/* In functions (not entries) results come first in the param frame, then params, then the variables of calls, as the variables' offsets
 * say. */

/* A module-level variable in global or const space. */
struct ptx_symbol {
    struct span    name;
    enum ptx_space space; /* PTX_GLOBAL or PTX_CONST */
    uint64_t       bytes;
    uint32_t       align;
    enum ptx_linkage linkage;
    uint32_t       image;  /* as of functions */
    uint32_t       line;   /* of its first declaration there */
    bool           hidden; /* another has its name, too: no host finds it */
    const uint8_t *init;  /* [init_bytes]; the rest is zero */
    uint64_t       init_bytes;
    const struct ptx_relocation *relocations;
    unsigned       relocations_count;
    uint64_t       address; /* 0 until the loader placed it */
};

/* At `offset` of the initialiser, as 8 bytes (or 4): the address of a symbol or function plus addend. bytes 1: the byte of that address
 * that begins at bit `shift`. */
struct ptx_relocation {
    uint64_t offset;
    uint32_t bytes;
    uint32_t shift;
    uint32_t symbol;   /* or PTX_NO_INDEX */
    uint32_t function; /* or PTX_NO_INDEX */
    int64_t  addend;
    bool     generic;
};

/* `.file`: a source file's number and name. */
struct ptx_file {
    uint32_t    number;
    struct span name;
};

struct ptx_module {
    struct arena         arena;
    struct ptx_function *functions;
    uint32_t             functions_count;
    struct ptx_symbol   *symbols;
    uint32_t             symbols_count;
    uint32_t             dynamic_shared_offset; /* where extern __shared__ arrays begin in the window, for every kernel: behind the largest kernel's static variables, with the strictest alignment */
    const struct ptx_file *files;      /* that `.loc` may name */
    uint32_t             files_count;
};

/* Parses text (a NUL follows it). MODULE_INVALID with the line and what was expected. *out is destroyed by ptx_module_destroy. */
enum status ptx_parse(struct span text, struct ptx_module **out, struct problem *why);
/* The same of several texts, which become one module; those without data are left out, but count: `.extern` names mean what another text defines (device/cpu/ptx/link.c). */
enum status ptx_link(const struct span *texts, unsigned count, struct ptx_module **out, struct problem *why);
/* "image 2, " before "PTX line 12" where several texts were linked; else "". */
#define PTX_IMAGE_WORDS_BYTES 24
const char *ptx_image_words(const struct ptx_insn *in, char room[PTX_IMAGE_WORDS_BYTES]);
void        ptx_module_destroy(struct ptx_module *m); /* NULL is a no-op */
/* Index of that function or symbol; PTX_NO_INDEX if there is none. */
uint32_t ptx_find_function(const struct ptx_module *m, struct span name);
uint32_t ptx_find_symbol(const struct ptx_module *m, struct span name);
/* The last part of that source file's path; empty when it is not known. */
struct span ptx_file_name(const struct ptx_module *m, uint32_t number);
/* Same number, offsets and sizes of results and parameters: a call through one may go to the other. */
bool ptx_same_signature(const struct ptx_prototype *a, const struct ptx_prototype *b);
const char *ptx_opcode_word(enum ptx_opcode op);
/* ": textures" behind the name of an instruction, directive or function that belongs to what the device does not have; else "". */
const char *ptx_feature_of(struct span text);

/* The address of function number i as kernels see it: never a valid data address. */
#define PTX_FUNCTION_ADDRESS(i) (0xF000000000000000ull + 16ull * (i))
