/* Which listen addresses are allowed without tokens or TLS. Pure. */
#pragma once

#include "base/problem.h"
#include "config/config.h"

/* True for 127.0.0.0/8, ::1, localhost and Unix sockets, which only this machine can reach. `listen` is a value of --listen. */
bool address_is_local(const char *listen);

/* Rejects addresses that other machines can reach without tokens (unless --insecure-no-auth) or without TLS (unless --allow-plaintext);
 * *why says what to do. */
enum status bind_check(const struct config *c, struct problem *why);
