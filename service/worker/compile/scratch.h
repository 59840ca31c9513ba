/* A folder in memory, /tmp of a compiler that cannot do without temporary files: its files are the process's own (memfd), the tree of their
 * names is a table in the process. Nobody else can name or open them, and they end with the process. The functions answer system calls as
 * the kernel does, -errno for a failure, and call nothing that the jail traps: they run in its handler of signals. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A fourth argument of write() or a third of ftruncate(), which these do not have: with it the jail lets the call pass, without it
 * scratch_write() and scratch_resize() count the bytes first. */
static const uint64_t SCRATCH_PASS = 0x7363726174636821;

/* Once, before the jail closes: opens all files that there will ever be. Everything that exists is "/" and an empty "/tmp". False: this
 * machine cannot do it. */
bool scratch_make(void);

/* Paths are absolute, or begin at "/". Outside "/tmp" nothing can be made, and nothing of the machine exists. */
long scratch_open(const char *path, uint64_t flags);
long scratch_stat(const char *path, struct stat *out);
long scratch_stat_fd(int fd, struct stat *out);
long scratch_access(const char *path);
long scratch_read_link(const char *path);
long scratch_make_folder(const char *path);
long scratch_remove(const char *path, bool folder);
long scratch_rename(const char *from, const char *to);
/* The entries of an open folder, as getdents64() has them. */
long scratch_list(int fd, void *to, size_t room);
/* ENOSPC beyond COMPILE_SCRATCH_MIB in all, EFBIG beyond COMPILE_SCRATCH_FILE_MIB in one file. */
long scratch_write(int fd, const void *data, size_t bytes);
long scratch_resize(int fd, int64_t bytes);
