/* Unguessable names. Thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* 22 base62 characters hold 128 random bits (62^22 > 2^130). */
enum { RANDOM_ID_CHARS = 22 };

/* In the order of their codes. */
extern const char base62_digits[];

/* From the kernel's generator; false only if that fails. */
bool random_bytes(void *out, size_t bytes);
/* `prefix` ("s_", "b_", ...), then RANDOM_ID_CHARS characters of [0-9A-Za-z], then NUL. False if it does not fit or the generator fails. */
bool random_id(const char *prefix, char *out, size_t room);
