/* Revoked certificates of clients: between http/engine/tls.c and http/engine/tls_crl.c. */
#ifndef GPUREST_HTTP_SERVER_TLS_H
#define GPUREST_HTTP_SERVER_TLS_H

#include <gnutls/gnutls.h>

#include "base/problem.h"

struct tls_revocations;

/* `crl`: one or more lists in PEM, each signed by one of the authorities in `ca`, and none past its time. why->detail goes on behind the
 * file's name. */
enum status tls_revocations_create(struct tls_revocations **out, const char *ca, const char *crl, struct problem *why);
void        tls_revocations_destroy(struct tls_revocations *r); /* NULL is a no-op */

/* UNAUTHENTICATED when the peer's certificate, or one between it and the authority, is revoked, or when a list is past its time: it no
 * longer tells. NULL revokes nothing. Any thread. */
enum status tls_revocations_check(const struct tls_revocations *r, gnutls_session_t session, struct problem *why);

#endif
