/* Parses addresses: HOST:PORT, [V6]:PORT, :PORT, unix:PATH. */
#pragma once

#include <netdb.h>
#include <sys/un.h>

#include "base/problem.h"

#define ADDRESS_UNIX_PREFIX "unix:"

bool address_is_unix(const char *address);
/* INVALID_REQUEST: the path is empty or too long. */
enum status address_unix(const char *address, struct sockaddr_un *out, struct problem *why);
/* Resolves a TCP address. `any`: the host is empty, which means the IPv6 wildcard, or loopback for a client (`passive` false).
 * On success the caller frees *out with freeaddrinfo(). */
enum status address_resolve(const char *address, bool passive, struct addrinfo **out, bool *any, struct problem *why);
