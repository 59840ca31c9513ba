/* The probe over TLS. The certificate is not verified: the service asks itself, over loopback, and names in it are not its own there. */
#include <errno.h>
#include <gnutls/gnutls.h>

#include "http/probe.h"

static enum status refused(struct problem *why, const char *what, long error)
{
    return problem_set(why, STATUS_NOT_READY, "%s: %s", what, gnutls_strerror((int)error));
}

static enum status handshake(gnutls_session_t session, gnutls_certificate_credentials_t credentials, int fd, struct problem *why)
{
    int done = gnutls_set_default_priority(session);

    done = done < 0 ? done : gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_int(session, fd);
    gnutls_handshake_set_timeout(session, GNUTLS_DEFAULT_HANDSHAKE_TIMEOUT);
    while (done >= 0) {
        done = gnutls_handshake(session);
        if (done == 0)
            return STATUS_OK;
        if (gnutls_error_is_fatal(done) || done == GNUTLS_E_AGAIN)
            break;
        done = 0;
    }
    return refused(why, "no TLS", done);
}

static enum status exchange(gnutls_session_t session, struct span request, struct probe_answer *out, struct problem *why)
{
    size_t  bytes = 0;
    ssize_t n = gnutls_record_send(session, request.data, request.bytes);

    if (n != (ssize_t)request.bytes)
        return refused(why, "cannot send", n < 0 ? n : GNUTLS_E_PUSH_ERROR);
    while (bytes < sizeof out->text - 1) {
        n = gnutls_record_recv(session, out->text + bytes, sizeof out->text - 1 - bytes);
        if (n == 0 || n == GNUTLS_E_PREMATURE_TERMINATION)
            break;
        if (n < 0)
            return refused(why, "cannot receive", n);
        bytes += (size_t)n;
    }
    return probe_take(out, bytes, why);
}

static enum status with_credentials(int fd, gnutls_certificate_credentials_t credentials, struct span request, struct probe_answer *out,
                                    struct problem *why)
{
    gnutls_session_t session;
    enum status      st;

    if (gnutls_init(&session, GNUTLS_CLIENT) < 0)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "no memory for TLS");
    st = handshake(session, credentials, fd, why);
    if (!st)
        st = exchange(session, request, out, why);
    gnutls_deinit(session);
    return st;
}

enum status probe_tls(int fd, struct span request, struct probe_answer *out, struct problem *why)
{
    gnutls_certificate_credentials_t credentials;
    enum status                      st;

    if (gnutls_certificate_allocate_credentials(&credentials) < 0)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "no memory for TLS");
    st = with_credentials(fd, credentials, request, out, why);
    gnutls_certificate_free_credentials(credentials);
    return st;
}
