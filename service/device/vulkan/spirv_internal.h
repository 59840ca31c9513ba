/* Between the files that read SPIR-V. */
#pragma once

#include "device/vulkan/spirv.h"

enum {
    OP_EXTENSION = 10,
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_TYPE_FIRST = 19,
    OP_TYPE_BOOL = 20,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_MATRIX = 24,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_TYPE_LAST = 38,
    OP_CONSTANT = 43,
    OP_CONSTANT_COMPOSITE = 44,
    OP_SPEC_CONSTANT = 50,
    OP_SPEC_CONSTANT_COMPOSITE = 51,
    OP_SPEC_CONSTANT_OP = 52,
    OP_FUNCTION = 54,
    OP_FUNCTION_END = 56,
    OP_VARIABLE = 59,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_COMPOSITE_EXTRACT = 81,
};

enum {
    DECORATION_SPEC_ID = 1,
    DECORATION_BUFFER_BLOCK = 3,
    DECORATION_ROW_MAJOR = 4,
    DECORATION_ARRAY_STRIDE = 6,
    DECORATION_MATRIX_STRIDE = 7,
    DECORATION_BUILT_IN = 11,
    DECORATION_BINDING = 33,
    DECORATION_DESCRIPTOR_SET = 34,
    DECORATION_OFFSET = 35,
};

enum { CAPABILITY_FLOAT64 = 10 };

enum { BUILT_IN_WORKGROUP_SIZE = 25, MODE_LOCAL_SIZE = 17, MODEL_GL_COMPUTE = 5 };

enum {
    CLASS_UNIFORM_CONSTANT = 0,
    CLASS_UNIFORM = 2,
    CLASS_WORKGROUP = 4,
    CLASS_PUSH_CONSTANT = 9,
    CLASS_STORAGE_BUFFER = 12,
    CLASS_PHYSICAL_STORAGE_BUFFER = 5349,
};

enum { WORDS_OF_HEADER = 5, NO_MEMBER = UINT32_MAX };

/* An instruction: its words, the first of which tells opcode and length. */
struct insn {
    const uint32_t *words;
    uint32_t        opcode;
    uint32_t        count;
};

/* What is said of an id, or of a member of it. */
struct decoration {
    uint32_t id, member; /* NO_MEMBER: of the id itself */
    uint32_t kind, value;
};

struct spirv_module {
    uint32_t            *words;
    uint32_t             words_count;
    uint32_t             version;
    uint32_t             ids;         /* all are below */
    uint32_t            *defined;     /* [ids]: where the defining instruction begins; 0: nowhere */
    struct decoration   *decorations; /* sorted */
    uint32_t             decorations_count;
    uint32_t             functions_at;   /* the first word behind types, constants and variables */
    uint32_t             workgroup_size; /* the id of the constant that is the workgroup's size; 0: none */
    struct spirv_kernel *kernels;
    uint32_t             kernels_count;
    uint32_t            *entries; /* [kernels_count]: where each one's OpEntryPoint begins */
    char                *names;   /* of the kernels */
};

/* The instruction that begins at that word; those of a module that was read are all whole. */
struct insn spirv_insn(const struct spirv_module *m, uint32_t at);
/* What defines the id, if it is that instruction with at least so many words. */
bool spirv_defined(const struct spirv_module *m, uint32_t id, uint32_t opcode, uint32_t count, struct insn *out);
/* What defines the id; opcode 0 if nothing does. */
struct insn spirv_definition(const struct spirv_module *m, uint32_t id);
bool        spirv_decoration(const struct spirv_module *m, uint32_t id, uint32_t member, uint32_t kind, uint32_t *value);

/* Bounds the work on types and constants that are made of each other. */
struct spirv_walk {
    const struct spirv_module *m;
    const struct spirv_kernel *kernel; /* whose workgroup size `block` is; NULL: defaults */
    const uint32_t            *block;
    uint32_t                   steps_left;
};

/* The value of an integer constant of at most 32 bits. */
bool spirv_constant(struct spirv_walk *w, uint32_t id, unsigned depth, uint32_t *out);
/* Bytes of a type as its decorations lay it out; of shared memory, which has none, as it is packed. False: it has no size. */
bool spirv_type_bytes(struct spirv_walk *w, uint32_t id, unsigned depth, uint64_t *out);

/* Fills kernels[i], whose OpEntryPoint is known. */
enum status spirv_kernel_read(struct spirv_module *m, unsigned i, struct problem *why);
