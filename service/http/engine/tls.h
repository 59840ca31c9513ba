/* Revoked client certificates; shared by http/engine/tls.c and http/engine/tls_crl.c. */
#pragma once

#include <gnutls/gnutls.h>

#include "base/problem.h"

struct tls_revocations;

static inline gnutls_datum_t datum_of(const char *text)
{
    return (gnutls_datum_t){.data = (unsigned char *)(uintptr_t)text, .size = (unsigned)strlen(text)};
}

/* `crl`: one or more PEM lists, each signed by an authority in `ca` and not expired. why->detail continues a sentence that starts with the file's
 * name. */
enum status tls_revocations_create(struct tls_revocations **out, const char *ca, const char *crl, struct problem *why);
void        tls_revocations_destroy(struct tls_revocations *r); /* NULL is a no-op */

/* UNAUTHENTICATED if the peer's certificate or an intermediate one is revoked, or if a list has expired. NULL revokes nothing. Any
 * thread. */
enum status tls_revocations_check(const struct tls_revocations *r, gnutls_session_t session, struct problem *why);
