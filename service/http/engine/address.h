/* Addresses as the operator writes them: HOST:PORT, [V6]:PORT, :PORT, unix:PATH. */
#ifndef GPUREST_HTTP_ADDRESS_H
#define GPUREST_HTTP_ADDRESS_H

#include <netdb.h>
#include <sys/un.h>

#include "base/problem.h"

#define ADDRESS_UNIX_PREFIX "unix:"

bool address_is_unix(const char *address);
/* INVALID_REQUEST: the path is empty or too long. */
enum status address_unix(const char *address, struct sockaddr_un *out, struct problem *why);
/* Of a TCP address. `any` says that the host is left out: the IPv6 wildcard, or loopback for whoever connects (`passive` false).
 * On success *out is the caller's, for freeaddrinfo(). */
enum status address_resolve(const char *address, bool passive, struct addrinfo **out, bool *any, struct problem *why);

#endif
