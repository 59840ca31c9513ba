/* What the files of the fake device's worker share. */
#pragma once

#include "device/device.h"
#include "support/fake_script.h"

struct device {
    unsigned      index;
    uint64_t      bytes;
    struct block *blocks; /* of memory */
    bool          faulted;
    bool          noted; /* the fault is told by every call, not by queries alone */
    struct buf    printed;
};

struct device_stream {
    uint64_t busy_until_ns; /* UINT64_MAX: for ever */
    bool     waits, stands; /* for the script's `released`, for the end of its `held` */
    bool     stumbles;      /* the next event recorded fails its first query, and nothing is lost */
};

extern struct fake_script   *script;
extern struct fake_holdings *own_holdings; /* of this worker; of none before its first call */

/* That word was in the script when the worker started. */
bool told(const char *word);
/* Its calls are those of a session. */
bool fake_is_seen(void);
void fake_be_seen(void);
/* The default one for NULL. */
struct device_stream *stream_of(struct device_stream *s);

/* ---- fake_memory.c ---- */
void        fake_memory_reset_peak(struct device *d);
enum status fake_mem_trim(struct device *d);
enum status fake_mem_alloc(struct device *d, uint64_t bytes, uint64_t *address);
enum status fake_mem_free(struct device *d, uint64_t address);
enum status fake_mem_alloc_shared(struct device *d, uint64_t bytes, int file, uint64_t file_bytes, struct device_shared *out);
enum status fake_mem_export(struct device *d, uint64_t address, int *fd);
enum status fake_host_attach(struct device *d, void *base, size_t bytes);
void        fake_host_detach(struct device *d, void *base);
enum status fake_mem_write(struct device *d, struct device_stream *s, uint64_t to, const void *from, size_t bytes);
enum status fake_mem_read(struct device *d, struct device_stream *s, void *to, uint64_t from, size_t bytes);
enum status fake_mem_copy(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes);
enum status fake_mem_fill(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint32_t n, uint64_t count);
