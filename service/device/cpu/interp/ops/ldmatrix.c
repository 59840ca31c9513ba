/* Matrices of 8 by 8 elements of 16 bits between shared memory and the threads of a warp, and transposed among these. Thread t of group
 * g (lane 4 g + t) holds elements 2 t and 2 t + 1 of row g. */
#include "device/cpu/interp/ops/matrix.h"

enum { GROUP_LANES = 4, MATRIX_ROWS = 8, MATRIX_ROW_BYTES = 16, MATRICES_MAX = 4 };

static uint8_t *row_pointer(struct lanes *l, const struct op *o, uint32_t lane, enum check_access how)
{
    uint64_t at = LANE(uint64_t, o->a)[lane] + (uint64_t)o->immediate;

    check_now(l, (enum op_space)o->mode, at, MATRIX_ROW_BYTES, how, lane);
    return lane_pointer(l, (enum op_space)o->mode, at, MATRIX_ROW_BYTES, lane);
}

/* Threads 8 j to 8 j + 7 name the rows of matrix j. mode: the space; width: transposed. */
static void load_matrices(struct lanes *l, const struct op *o)
{
    const struct vector_places *v = o->extra;

    for (uint32_t w = l->low / WARP_LANES * WARP_LANES; w < l->high; w += WARP_LANES) {
        uint16_t m[MATRICES_MAX][MATRIX_ROWS][MATRIX_ROWS] = {{{0}}};

        for (uint32_t k = 0; k < v->count * (uint32_t)MATRIX_ROWS && w + k < l->count; k++) {
            if (l->m[w + k])
                memcpy(m[k / MATRIX_ROWS][k % MATRIX_ROWS], row_pointer(l, o, w + k, CHECK_READ), MATRIX_ROW_BYTES);
        }
        for (uint32_t k = 0; k < WARP_LANES && w + k < l->count; k++) {
            unsigned g = k / GROUP_LANES, t = 2 * (k % GROUP_LANES);
            for (unsigned j = 0; l->m[w + k] && j < v->count; j++) {
                uint32_t low = o->width ? m[j][t][g] : m[j][g][t], high = o->width ? m[j][t + 1][g] : m[j][g][t + 1];
                if (v->reg_bytes[j])
                    LANE(uint32_t, v->place[j])[w + k] = high << 16 | low;
            }
        }
    }
}

/* A lane's two elements of a matrix; transposed: of the matrix whose rows are its columns. */
static void put_pair(uint16_t m[MATRIX_ROWS][MATRIX_ROWS], unsigned lane, uint32_t pair, bool transposed)
{
    unsigned g = lane / GROUP_LANES, t = 2 * (lane % GROUP_LANES);

    for (unsigned i = 0; i < 2; i++)
        *(transposed ? &m[t + i][g] : &m[g][t + i]) = (uint16_t)(pair >> (16 * i));
}

static void store_matrices(struct lanes *l, const struct op *o)
{
    const struct vector_places *v = o->extra;

    for (uint32_t w = l->low / WARP_LANES * WARP_LANES; w < l->high; w += WARP_LANES) {
        uint16_t m[MATRICES_MAX][MATRIX_ROWS][MATRIX_ROWS] = {{{0}}};

        for (uint32_t k = 0; k < WARP_LANES && w + k < l->count; k++) {
            for (unsigned j = 0; j < v->count; j++)
                put_pair(m[j], k, LANE(uint32_t, v->place[j])[w + k], o->width);
        }
        for (uint32_t k = 0; k < v->count * (uint32_t)MATRIX_ROWS && w + k < l->count; k++) {
            if (l->m[w + k])
                memcpy(row_pointer(l, o, w + k, CHECK_WRITE), m[k / MATRIX_ROWS][k % MATRIX_ROWS], MATRIX_ROW_BYTES);
        }
    }
}

static void transpose_matrix(struct lanes *l, const struct op *o)
{
    for (uint32_t w = l->low / WARP_LANES * WARP_LANES; w < l->high; w += WARP_LANES) {
        uint16_t m[MATRIX_ROWS][MATRIX_ROWS] = {{0}};

        for (uint32_t k = 0; k < WARP_LANES && w + k < l->count; k++)
            put_pair(m, k, LANE(uint32_t, o->a)[w + k], true);
        for (uint32_t k = 0; k < WARP_LANES && w + k < l->count; k++) {
            unsigned g = k / GROUP_LANES, t = 2 * (k % GROUP_LANES);
            if (l->m[w + k])
                LANE(uint32_t, o->d)[w + k] = (uint32_t)m[g][t + 1] << 16 | m[g][t];
        }
    }
}

static bool translate_rows(struct decoder *d, bool store)
{
    const struct ptx_insn    *in = d->insn;
    const struct ptx_operand *matrices = operand(d, store);
    struct decoded_address    at;
    struct vector_places     *v;

    if (in->shape != PTX_M8N8 || in->type != PTX_B16 || !in->sync || matrices->kind != PTX_VECTOR || matrices->count != in->vector ||
        in->vector > MATRICES_MAX)
        return false;
    v = decode_vector(d, matrices, 4, false);
    at = decode_address(d, operand(d, !store), PTX_SHARED);
    matrix_name_all_members(d);
    decode_op(d, (struct op){.run = store ? store_matrices : load_matrices,
                             .extra = v,
                             .a = at.place,
                             .immediate = at.immediate,
                             .mode = (uint8_t)at.space,
                             .width = in->transposed});
    return true;
}

bool translate_ldmatrix(struct decoder *d)
{
    return translate_rows(d, false);
}

bool translate_stmatrix(struct decoder *d)
{
    return translate_rows(d, true);
}

bool translate_movmatrix(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;

    if (in->shape != PTX_M8N8 || in->type != PTX_B16 || !in->sync || !in->transposed)
        return false;
    matrix_name_all_members(d);
    return decode_result(d, (struct op){.run = transpose_matrix, .a = decode_source(d, operand(d, 1), 4)}, 4, false);
}
