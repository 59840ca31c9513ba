/* TLS for the daemons that serve TCP: files are read and tried once, at the start. The only owner of GnuTLS. */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "http/server_internal.h"

static const char PRIORITIES[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

struct tls {
    char *cert, *key;
    char *client_ca; /* NULL: clients need no certificate */
};

static enum status read_text(FILE *f, const char *path, char **out, struct problem *why)
{
    char  *text = malloc(TLS_FILE_BYTES_MAX + 1);
    size_t bytes;

    if (!text)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "no memory for %s", path);
    bytes = fread(text, 1, TLS_FILE_BYTES_MAX + 1, f);
    if (ferror(f) || bytes == 0 || bytes > TLS_FILE_BYTES_MAX) {
        free(text);
        return problem_set(why, STATUS_INVALID_REQUEST, "%s is empty, too long or cannot be read", path);
    }
    text[bytes] = '\0';
    *out = text;
    return STATUS_OK;
}

static enum status read_file(const char *path, char **out, struct problem *why)
{
    FILE       *f = fopen(path, "re");
    enum status st;

    if (!f)
        return problem_set(why, STATUS_INVALID_REQUEST, "%s cannot be opened: %s", path, strerror(errno));
    st = read_text(f, path, out, why);
    fclose(f);
    return st;
}

static enum status refused(struct problem *why, const char *what, int error)
{
    return problem_set(why, STATUS_INVALID_REQUEST, "%s: %s", what, gnutls_strerror(error));
}

static gnutls_datum_t datum_of(char *text)
{
    return (gnutls_datum_t){.data = (unsigned char *)text, .size = (unsigned)strlen(text)};
}

/* The library behind MHD says only that it did not start; this says what is wrong. */
static enum status try_out(const struct tls *t, gnutls_certificate_credentials_t credentials, struct problem *why)
{
    gnutls_datum_t cert = datum_of(t->cert), key = datum_of(t->key), ca;
    int            done = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);

    if (done < 0)
        return refused(why, "the certificate and its key", done);
    if (!t->client_ca)
        return STATUS_OK;
    ca = datum_of(t->client_ca);
    done = gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
    return done > 0 ? STATUS_OK : refused(why, "the authorities of clients", done ? done : GNUTLS_E_NO_CERTIFICATE_FOUND);
}

static enum status check(const struct tls *t, struct problem *why)
{
    gnutls_certificate_credentials_t credentials;
    enum status                      st;

    if (gnutls_certificate_allocate_credentials(&credentials) < 0)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "no memory for TLS");
    st = try_out(t, credentials, why);
    gnutls_certificate_free_credentials(credentials);
    return st;
}

static enum status read_files(struct tls *t, const struct server_config *config, struct problem *why)
{
    enum status st = read_file(config->tls_cert, &t->cert, why);

    if (!st)
        st = read_file(config->tls_key, &t->key, why);
    if (!st && config->tls_client_ca)
        st = read_file(config->tls_client_ca, &t->client_ca, why);
    return st ? st : check(t, why);
}

enum status tls_create(struct tls **out, const struct server_config *config, struct problem *why)
{
    struct tls *t;
    enum status st;

    *out = NULL;
    if (!config->tls_cert && !config->tls_key && !config->tls_client_ca)
        return STATUS_OK;
    if (!config->tls_cert || !config->tls_key)
        return problem_set(why, STATUS_INVALID_REQUEST, "TLS needs both a certificate and its key");
    t = calloc(1, sizeof *t);
    if (!t)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "no memory for TLS");
    st = read_files(t, config, why);
    if (st)
        tls_destroy(t);
    else
        *out = t;
    return st;
}

void tls_destroy(struct tls *t)
{
    if (!t)
        return;
    free(t->cert);
    if (t->key)
        explicit_bzero(t->key, strlen(t->key));
    free(t->key);
    free(t->client_ca);
    free(t);
}

void tls_options(const struct tls *t, struct MHD_OptionItem out[TLS_OPTIONS_MAX])
{
    unsigned n = 0;

    if (t) {
        out[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, t->cert};
        out[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, t->key};
        out[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)PRIORITIES};
    }
    if (t && t->client_ca)
        out[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, t->client_ca};
    out[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

/* The library's own, seen by libmicrohttpd first: see server_receive.c. The real one is reached by its other name, which tells the record's
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
        log_debug("http", "a client was gone before its refusal");
    return true;
}

enum status tls_check_client(const struct exchange *x, struct problem *why)
{
    const struct tls               *t = x->loop->server->tls;
    const union MHD_ConnectionInfo *info;
    unsigned                        faults = 0;

    if (!t || !t->client_ca || !x->connection->is_tls)
        return STATUS_OK;
    info = MHD_get_connection_info(x->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (info && info->tls_session && gnutls_certificate_verify_peers2(info->tls_session, &faults) == 0 && faults == 0)
        return STATUS_OK;
    return problem_set(why, STATUS_UNAUTHENTICATED, "a certificate of one of this server's authorities is required");
}
