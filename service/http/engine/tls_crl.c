/* Lists of revoked certificates (RFC 5280 §5), held against the certificates that clients show. */
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "http/bounds.h"
#include "http/engine/tls.h"

struct tls_revocations {
    gnutls_x509_trust_list_t list; /* read only once it is made */
    time_t                   next; /* when the first of the lists is to be renewed; 0: none says */
};

static bool is_past(const struct tls_revocations *r)
{
    return r->next && time(NULL) >= r->next;
}

/* Behind the file's name. */
static enum status expired(const struct tls_revocations *r, struct problem *why)
{
    char      when[40] = "an unknown time";
    struct tm t;

    if (gmtime_r(&r->next, &t))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &t);
    return problem_set(why, STATUS_INVALID_REQUEST, "has expired: its next update was due at %s; get a new one from the authority", when);
}

static enum status look_at(struct tls_revocations *r, const char *crl, struct problem *why)
{
    gnutls_datum_t     text = datum_of(crl);
    gnutls_x509_crl_t *crls;
    unsigned           count;
    int                done = gnutls_x509_crl_list_import2(&crls, &count, &text, GNUTLS_X509_FMT_PEM, 0);

    if (done < 0)
        return problem_set(why, STATUS_INVALID_REQUEST, "has no certificate revocation list in PEM format: %s", gnutls_strerror(done));
    for (unsigned i = 0; i < count; i++) {
        time_t next = gnutls_x509_crl_get_next_update(crls[i]);

        if (next > 0 && (!r->next || next < r->next))
            r->next = next;
        gnutls_x509_crl_deinit(crls[i]);
    }
    gnutls_free(crls);
    return is_past(r) ? expired(r, why) : STATUS_OK;
}

static enum status fill(struct tls_revocations *r, const char *ca, const char *crl, struct problem *why)
{
    gnutls_datum_t authorities = datum_of(ca), lists = datum_of(crl);
    enum status    st = look_at(r, crl, why);
    int            done;

    if (st)
        return st;
    done = gnutls_x509_trust_list_add_trust_mem(r->list, &authorities, &lists, GNUTLS_X509_FMT_PEM,
                                                GNUTLS_TL_VERIFY_CRL | GNUTLS_TL_FAIL_ON_INVALID_CRL, 0);
    return done > 0 ? STATUS_OK
                    : problem_set(why, STATUS_INVALID_REQUEST, "is not signed by an authority of --tls-client-ca, or is not valid yet");
}

enum status tls_revocations_create(struct tls_revocations **out, const char *ca, const char *crl, struct problem *why)
{
    struct tls_revocations *r = calloc(1, sizeof *r);
    enum status             st;

    if (!r || gnutls_x509_trust_list_init(&r->list, 0) < 0) {
        free(r);
        return problem_set(why, STATUS_OUT_OF_MEMORY, "cannot be loaded: out of memory");
    }
    st = fill(r, ca, crl, why);
    if (st)
        tls_revocations_destroy(r);
    else
        *out = r;
    return st;
}

void tls_revocations_destroy(struct tls_revocations *r)
{
    if (!r)
        return;
    gnutls_x509_trust_list_deinit(r->list, 1);
    free(r);
}

/* The client's chain as it sent it, its own first. */
static unsigned import_chain(gnutls_session_t session, gnutls_x509_crt_t chain[TLS_CHAIN_CERTIFICATES_MAX])
{
    unsigned              count = 0, sent = 0;
    const gnutls_datum_t *raw = gnutls_certificate_get_peers(session, &sent);

    if (sent > TLS_CHAIN_CERTIFICATES_MAX)
        return 0;
    for (; raw && count < sent; count++) {
        if (gnutls_x509_crt_init(&chain[count]) < 0)
            break;
        if (gnutls_x509_crt_import(chain[count], &raw[count], GNUTLS_X509_FMT_DER) < 0) {
            gnutls_x509_crt_deinit(chain[count]);
            break;
        }
    }
    if (count == sent)
        return count;
    while (count)
        gnutls_x509_crt_deinit(chain[--count]);
    return 0;
}

static unsigned faults_of(const struct tls_revocations *r, gnutls_session_t session)
{
    gnutls_x509_crt_t chain[TLS_CHAIN_CERTIFICATES_MAX];
    unsigned          count = import_chain(session, chain), faults = 0;
    int               done = GNUTLS_E_NO_CERTIFICATE_FOUND;

    if (count)
        done = gnutls_x509_trust_list_verify_crt(r->list, chain, count, 0, &faults, NULL);
    while (count)
        gnutls_x509_crt_deinit(chain[--count]);
    return done < 0 ? GNUTLS_CERT_INVALID : faults;
}

enum status tls_revocations_check(const struct tls_revocations *r, gnutls_session_t session, struct problem *why)
{
    unsigned faults;

    if (!r)
        return STATUS_OK;
    if (is_past(r))
        return problem_set(why, STATUS_UNAUTHENTICATED,
                           "the service's certificate revocation list has expired: its operator must renew it");
    faults = faults_of(r, session);
    if (faults & GNUTLS_CERT_REVOKED)
        return problem_set(why, STATUS_UNAUTHENTICATED, "the certificate is revoked");
    return faults ? problem_set(why, STATUS_UNAUTHENTICATED, "a certificate from one of the service's authorities is required") : STATUS_OK;
}
