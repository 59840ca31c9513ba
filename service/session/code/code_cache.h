/* Compiled code kept on disk, by content. Thread-safe, and safe beside other processes on the same folder. Only the front-end writes.
 *
 * Each entry has a holder. When room is short, entries that nobody used for CACHE_UNUSED_S_MAX go first, then the least recently used ones of
 * the holder who has most: a lone holder may fill it all, and no holder costs another entries who has less than it. */
#pragma once

#include "base/digests/digest.h"
#include "ipc/compile_job.h"
#include "session/bounds.h"

struct code_cache;

/* Lower-case hex with its NUL: of the holder, and of a SHA-256 over everything that the code depends on. */
enum { CODE_KEY_BYTES = 65, CODE_HOLDER_CHARS = 16 };

/* The holder of what is the service's own; a caller's name has no blanks. */
#define CODE_HOLDER_BUILTIN "built-in kernels"

/* Whose code of a caller's sources is: its own, or everybody's where callers share it. */
static inline const char *code_holder(bool shared, const char *caller)
{
    return shared ? "" : caller;
}

/* `holder`: a caller's name; NULL or "": nobody in particular. 192 bits of the digest stay in it. */
void code_key_make(const char *holder, const unsigned char digest[SHA256_BYTES], char key[CODE_KEY_BYTES]);

/* path: a folder, made when it is missing; NULL or "": $XDG_CACHE_HOME/gpurest, else ~/.cache/gpurest; "none": no cache.
 * A folder that cannot be used is one warning and no cache: OK all the same. Fails only without memory. */
enum status code_cache_create(struct code_cache **out, const char *path, uint64_t max_bytes);
/* NULL is a no-op. No call may be under way. */
void code_cache_destroy(struct code_cache *c);
/* False: nothing is cached, ever. */
bool code_cache_enabled(const struct code_cache *c);

/* OK and *out (initialised) filled, or NOT_FOUND and *out untouched. A damaged entry is removed and not found. */
enum status code_cache_get(struct code_cache *c, const char key[CODE_KEY_BYTES], struct compile_output *out);
/* Keeps a successful output, dropping others when room is short. Failure is only logged. */
void code_cache_put(struct code_cache *c, const char key[CODE_KEY_BYTES], const struct compile_output *o);
/* The same of bytes that are encoded already. */
void code_cache_put_bytes(struct code_cache *c, const char key[CODE_KEY_BYTES], struct span bytes);

/* What a holder has there, or all of them, and how often code was asked for since the start. */
struct code_cache_use {
    uint64_t entries, bytes; /* the bytes are those of files */
    uint64_t hits, misses;
};

/* `holder` NULL: of all. Reads the folder. */
void code_cache_use_of(struct code_cache *c, const char *holder, struct code_cache_use *out);
/* Removes entries that nobody used for that time; 0: all. `holder` NULL: of all. *removed: entries and bytes. */
void code_cache_clear(struct code_cache *c, const char *holder, uint64_t unused_s, struct code_cache_use *removed);
