/* What several resources use of devices. */
#pragma once

#include "http/message/request.h"
#include "pool/pool.h"

/* "healthy" and so on, as in the API. Static. */
const char *device_state_name(enum device_state s);
/* The device that the path names. DEVICE_NOT_FOUND. */
enum status device_find(struct request *r, unsigned *out);
/* 200 with the device, as GET has it. Blocks up to 1 s. */
enum status device_answer(struct request *r, unsigned device);

/* What is left of the device's memory. The cpu device's is the host's, which others take, too. */
uint64_t device_free_bytes(const struct device_info *i);
