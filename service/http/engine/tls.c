/* TLS for the daemons that serve TCP: files are read and tried at the start, and again when they are to be reloaded. */
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/files/input_file.h"
#include "base/log/log.h"
#include "http/bounds.h"
#include "http/engine/internal.h"
#include "http/engine/tls.h"

static const char PRIORITIES[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

/* What the files held when they were read. Never changes. A later one takes its place; handshakes may use it for a while yet. */
struct tls_files {
    char                   *cert, *key;
    char                   *client_ca; /* NULL: clients need no certificate */
    struct tls_revocations *revoked;   /* NULL: no certificate is revoked */
    gnutls_pcert_st         chain[TLS_CHAIN_CERTIFICATES_MAX];
    unsigned                chain_count;
    gnutls_privkey_t        private_key;
    struct tls_files       *older;
    uint64_t                replaced_ns; /* 0: it is the present one */
};

struct tls {
    _Atomic(struct tls_files *) now;
    char                       *client_ca; /* of the start: what libmicrohttpd was given */
};

static enum status take_text(const char *path, struct buf *text, char **out, struct problem *why)
{
    struct problem reason = {0};

    if (!buf_reserve(text, text->max)) /* all at once: growing would leave copies of a key behind */
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for %s", path);
    if (input_file_take(path, text, &reason))
        return problem_set(why, STATUS_INVALID_REQUEST, "%s %s", path, reason.detail);
    if (text->bytes == 0)
        return problem_set(why, STATUS_INVALID_REQUEST, "%s is empty", path);
    *out = strdup(text->data);
    return *out ? STATUS_OK : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for %s", path);
}

static enum status read_file(const char *path, size_t bytes_max, char **out, struct problem *why)
{
    struct buf  text;
    enum status st;

    buf_init(&text, bytes_max);
    st = take_text(path, &text, out, why);
    if (text.bytes)
        explicit_bzero(text.data, text.bytes);
    buf_finish(&text);
    return st;
}

static enum status refused(struct problem *why, const char *what, int error)
{
    return problem_set(why, STATUS_INVALID_REQUEST, "%s: %s", what, gnutls_strerror(error));
}

/* The library behind MHD says only that it did not start; this says what is wrong. */
static enum status try_out(const struct tls_files *t, gnutls_certificate_credentials_t credentials, struct problem *why)
{
    gnutls_datum_t cert = datum_of(t->cert), key = datum_of(t->key), ca;
    int            done = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);

    if (done < 0)
        return refused(why, "certificate and key", done);
    if (!t->client_ca)
        return STATUS_OK;
    ca = datum_of(t->client_ca);
    done = gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
    return done > 0 ? STATUS_OK : refused(why, "client authorities", done ? done : GNUTLS_E_NO_CERTIFICATE_FOUND);
}

static enum status check(const struct tls_files *t, struct problem *why)
{
    gnutls_certificate_credentials_t credentials;
    enum status                      st;

    if (gnutls_certificate_allocate_credentials(&credentials) < 0)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for TLS");
    st = try_out(t, credentials, why);
    gnutls_certificate_free_credentials(credentials);
    return st;
}

static enum status read_revocations(struct tls_files *t, const char *path, struct problem *why)
{
    struct problem reason = {0};
    char          *text;
    enum status    st = read_file(path, TLS_CRL_BYTES_MAX, &text, why);

    if (st)
        return st;
    st = tls_revocations_create(&t->revoked, t->client_ca, text, &reason);
    free(text);
    return st ? problem_set(why, st, "%s %s", path, reason.detail) : STATUS_OK;
}

/* For handshakes. The texts have been tried out. */
static enum status import_pair(struct tls_files *t, struct problem *why)
{
    gnutls_datum_t cert = datum_of(t->cert), key = datum_of(t->key);
    unsigned       room = TLS_CHAIN_CERTIFICATES_MAX;
    int            done = gnutls_pcert_list_import_x509_raw(t->chain, &room, &cert, GNUTLS_X509_FMT_PEM, GNUTLS_X509_CRT_LIST_SORT);

    if (done < 0)
        return refused(why, "certificate", done);
    t->chain_count = room;
    done = gnutls_privkey_init(&t->private_key);
    if (done >= 0)
        done = gnutls_privkey_import_x509_raw(t->private_key, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
    return done < 0 ? refused(why, "key", done) : STATUS_OK;
}

static enum status read_files(struct tls_files *t, const struct server_config *config, struct problem *why)
{
    enum status st = read_file(config->tls_cert, TLS_FILE_BYTES_MAX, &t->cert, why);

    if (!st)
        st = read_file(config->tls_key, TLS_FILE_BYTES_MAX, &t->key, why);
    if (!st && config->tls_client_ca)
        st = read_file(config->tls_client_ca, TLS_FILE_BYTES_MAX, &t->client_ca, why);
    if (!st)
        st = check(t, why);
    if (!st)
        st = import_pair(t, why);
    return st || !config->tls_client_crl ? st : read_revocations(t, config->tls_client_crl, why);
}

static void free_files(struct tls_files *t)
{
    if (!t)
        return;
    free(t->cert);
    if (t->key)
        explicit_bzero(t->key, strlen(t->key));
    free(t->key);
    free(t->client_ca);
    tls_revocations_destroy(t->revoked);
    for (unsigned i = 0; i < t->chain_count; i++)
        gnutls_pcert_deinit(&t->chain[i]);
    if (t->private_key)
        gnutls_privkey_deinit(t->private_key);
    free(t);
}

static void free_all(struct tls_files *t)
{
    while (t) {
        struct tls_files *older = t->older;

        free_files(t);
        t = older;
    }
}

static enum status make_files(struct tls_files **out, const struct server_config *config, struct problem *why)
{
    struct tls_files *t = calloc(1, sizeof *t);
    enum status       st;

    if (!t)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for TLS");
    st = read_files(t, config, why);
    if (st)
        free_files(t);
    else
        *out = t;
    return st;
}

enum status tls_create(struct tls **out, const struct server_config *config, struct problem *why)
{
    struct tls_files *files;
    struct tls       *t;
    enum status       st;

    *out = NULL;
    if (!config->tls_cert && !config->tls_key && !config->tls_client_ca && !config->tls_client_crl)
        return STATUS_OK;
    if (!config->tls_cert || !config->tls_key)
        return problem_set(why, STATUS_INVALID_REQUEST, "TLS needs a certificate and its key: give both --tls-cert and --tls-key");
    if (config->tls_client_crl && !config->tls_client_ca)
        return problem_set(why, STATUS_INVALID_REQUEST, "--tls-client-crl needs --tls-client-ca");
    st = make_files(&files, config, why);
    if (st)
        return st;
    t = calloc(1, sizeof *t);
    if (t && files->client_ca)
        t->client_ca = strdup(files->client_ca);
    if (!t || (files->client_ca && !t->client_ca)) {
        free(t);
        free_files(files);
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for TLS");
    }
    atomic_init(&t->now, files);
    *out = t;
    return STATUS_OK;
}

/* Those that no handshake and no request can be using any more. */
static void drop_old(struct tls_files *newest)
{
    struct tls_files **at = &newest->older;
    uint64_t           now = now_ns();

    while (*at && now - (*at)->replaced_ns < TLS_REPLACED_S * NS_PER_S)
        at = &(*at)->older;
    free_all(*at);
    *at = NULL;
}

enum status tls_reload(struct tls *t, const struct server_config *config, struct problem *why)
{
    struct tls_files *fresh, *former = atomic_load(&t->now);
    enum status       st = make_files(&fresh, config, why);

    if (st)
        return st;
    if (t->client_ca && strcmp(t->client_ca, fresh->client_ca) != 0) {
        free_files(fresh);
        return problem_set(why, STATUS_INVALID_REQUEST, "the authorities of --tls-client-ca have changed, which needs a restart");
    }
    fresh->older = former;
    former->replaced_ns = now_ns();
    atomic_store(&t->now, fresh);
    drop_old(fresh);
    return STATUS_OK;
}

void tls_destroy(struct tls *t)
{
    if (!t)
        return;
    free_all(atomic_load(&t->now));
    free(t->client_ca);
    free(t);
}

/* For a handshake: the present certificate and key. They outlive it. */
static int retrieve(gnutls_session_t session, const gnutls_datum_t *authorities, int authorities_count,
                    const gnutls_pk_algorithm_t *algorithms, int algorithms_count, gnutls_pcert_st **chain, unsigned *chain_count,
                    gnutls_privkey_t *key)
{
    const struct connection *c = receive_connection(gnutls_transport_get_int(session));
    struct tls_files        *t = c && c->loop->server->tls ? atomic_load(&c->loop->server->tls->now) : NULL;

    (void)authorities, (void)authorities_count, (void)algorithms, (void)algorithms_count;
    if (!t)
        return -1;
    *chain = t->chain;
    *chain_count = t->chain_count;
    *key = t->private_key;
    return 0;
}

void tls_options(const struct tls *t, struct MHD_OptionItem out[TLS_OPTIONS_MAX])
{
    unsigned n = 0;

    if (t) {
        out[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(uintptr_t)retrieve};
        out[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)PRIORITIES};
    }
    if (t && t->client_ca)
        out[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, t->client_ca};
    out[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

/* One that says what it is for must say that it is for clients; the chain is held against the authorities that MHD was given. */
static unsigned faults_of(gnutls_session_t session)
{
    gnutls_typed_vdata_st purpose = {GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0};
    unsigned              faults = 0;

    return gnutls_certificate_verify_peers(session, &purpose, 1, &faults) == 0 ? faults : GNUTLS_CERT_INVALID;
}

/* The library's own, seen by libmicrohttpd first: see http/engine/receive.c. The real one is reached by its other name, which tells the record's
 * number as well. */
__attribute__((visibility("default"))) ssize_t gnutls_record_recv(gnutls_session_t session, void *to, size_t room)
{
    unsigned char      number[8];
    struct connection *c = receive_connection(gnutls_transport_get_int(session));

    if (!c)
        return gnutls_record_recv_seq(session, to, room, number);
    if (c->framing.refused)
        return receive_refused(c);
    return receive_scanned(c, to, gnutls_record_recv_seq(session, to, room, number));
}

bool tls_send(const struct connection *c, struct span bytes)
{
    const union MHD_ConnectionInfo *info = c->is_tls ? MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION) : NULL;

    if (!c->is_tls)
        return false;
    if (info && info->tls_session && gnutls_record_send(info->tls_session, bytes.data, bytes.bytes) < 0)
        log_debug("http", "a client disconnected before its error answer");
    return true;
}

enum status tls_check_client(const struct exchange *x, struct problem *why)
{
    struct tls                     *t = x->loop->server->tls;
    const union MHD_ConnectionInfo *info;
    unsigned                        faults = GNUTLS_CERT_INVALID;

    if (!t || !t->client_ca || !x->connection->is_tls)
        return STATUS_OK;
    info = MHD_get_connection_info(x->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (info && info->tls_session)
        faults = faults_of(info->tls_session);
    if (faults & GNUTLS_CERT_PURPOSE_MISMATCH)
        return problem_set(why, STATUS_UNAUTHENTICATED, "the certificate is not for clients: its extended key usage lacks clientAuth");
    if (faults)
        return problem_set(why, STATUS_UNAUTHENTICATED, "a certificate from one of the service's authorities is required");
    return tls_revocations_check(atomic_load(&t->now)->revoked, info->tls_session, why);
}
