/* What the factorizations share: where their parts lie. */
#pragma once

#include <string.h>

#include "device/cpu/vendor/numbers.h"
#include "device/cpu/vendor/vendor.h"

/* Room for a matrix in the workspace of each launch. False: too large. */
bool factor_room_for(struct cpu_plan *p, enum cpu_room room, uint64_t rows, uint64_t columns);
/* ROOM_WORK, of so many elements as LAPACK asked for: a number of the plan's type. False: too many. */
bool factor_room_of_work(struct cpu_plan *p, const void *asked);
bool factor_qr_rooms(struct cpu_plan *p);
bool factor_qr_q_rooms(struct cpu_plan *p);
bool factor_eigh_rooms(struct cpu_plan *p);
bool factor_eig_rooms(struct cpu_plan *p);
bool factor_svd_rooms(struct cpu_plan *p);

void *factor_room(const struct cpu_plan *p, uint64_t workspace, enum cpu_room room);
/* Matrix `index` of a buffer, of so many elements each. */
void                        *factor_at(const struct cpu_plan *p, uint64_t base, uint64_t index, uint64_t elements);
const struct blas_functions *factor_blas(const struct cpu_plan *p);
/* The lower triangle of an n x n matrix in rows, and zeros above it; may be the same matrix. */
void factor_copy_lower(const struct cpu_plan *p, void *out, const void *x);
