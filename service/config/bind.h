/* Which addresses may be served without tokens or TLS. Pure. */
#ifndef GPUREST_API_BIND_H
#define GPUREST_API_BIND_H

#include "base/problem.h"
#include "config/config.h"

/* Only this machine can reach it: 127.0.0.0/8, ::1, localhost, or a Unix socket. "listen" is a value of --listen. */
bool address_is_local(const char *listen);

/* Refuses, with what to do about it, to serve others without tokens (unless --insecure-no-auth) or without TLS (unless
 * --allow-plaintext). */
enum status bind_check(const struct config *c, struct problem *why);

#endif
