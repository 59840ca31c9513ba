/* The part of LLVM's C interface that is used, declared here so that building needs no LLVM header. It is the same in LLVM 14 to 19. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct LLVMOpaqueContext            *llvm_context;
typedef struct LLVMOpaqueModule             *llvm_module;
typedef struct LLVMOpaqueType               *llvm_type;
typedef struct LLVMOpaqueValue              *llvm_value;
typedef struct LLVMOpaqueBasicBlock         *llvm_block;
typedef struct LLVMOpaqueBuilder            *llvm_builder;
typedef struct LLVMOpaqueAttributeRef       *llvm_attribute;
typedef struct LLVMOpaqueError              *llvm_error;
typedef struct LLVMOpaqueMemoryBuffer       *llvm_buffer;
typedef struct LLVMTarget                   *llvm_target;
typedef struct LLVMOpaqueTargetMachine      *llvm_machine;
typedef struct LLVMOpaqueTargetData         *llvm_layout;
typedef struct LLVMOpaquePassBuilderOptions *llvm_pass_options;
typedef struct LLVMOrcOpaqueLLJIT           *llvm_jit;
typedef struct LLVMOrcOpaqueJITDylib        *llvm_dylib;
typedef struct LLVMOrcOpaqueResourceTracker *llvm_tracker;
typedef uint64_t                             llvm_address;
typedef int                                  llvm_bool;

/* Binary operations and casts, as LLVMOpcode numbers them. */
enum llvm_opcode {
    LLVM_ADD = 8,
    LLVM_FADD,
    LLVM_SUB,
    LLVM_FSUB,
    LLVM_MUL,
    LLVM_FMUL,
    LLVM_UDIV,
    LLVM_SDIV,
    LLVM_FDIV,
    LLVM_UREM,
    LLVM_SREM,
    LLVM_SHL = 20,
    LLVM_LSHR,
    LLVM_ASHR,
    LLVM_AND,
    LLVM_OR,
    LLVM_XOR,
    LLVM_TRUNC = 30,
    LLVM_ZEXT,
    LLVM_SEXT,
    LLVM_FPTOUI,
    LLVM_FPTOSI,
    LLVM_UITOFP,
    LLVM_SITOFP,
    LLVM_FPTRUNC,
    LLVM_FPEXT,
    LLVM_PTRTOINT,
    LLVM_INTTOPTR,
    LLVM_BITCAST,
};
enum llvm_int_compare { LLVM_EQ = 32, LLVM_NE, LLVM_UGT, LLVM_UGE, LLVM_ULT, LLVM_ULE, LLVM_SGT, LLVM_SGE, LLVM_SLT, LLVM_SLE };
enum llvm_float_compare {
    LLVM_OEQ = 1,
    LLVM_OGT,
    LLVM_OGE,
    LLVM_OLT,
    LLVM_OLE,
    LLVM_ONE,
    LLVM_ORD,
    LLVM_UNO,
    LLVM_UEQ,
    LLVM_UGT_F,
    LLVM_UGE_F,
    LLVM_ULT_F,
    LLVM_ULE_F,
    LLVM_UNE
};
enum { LLVM_OPTIMISE = 2, LLVM_RELOC_PIC = 2, LLVM_CODE_MODEL_JIT = 1, LLVM_OBJECT_FILE = 1 };
#define LLVM_FUNCTION_INDEX 0xffffffffu
