/* The probe over TLS. Does not verify the certificate: the service asks itself over loopback, whose name the certificate does not have. */
#include <gnutls/gnutls.h>
#include <poll.h>

#include "base/deadline.h"
#include "health/probe.h"

/* Waits until the call that failed with `error` can be retried; false when it cannot. */
static bool again(gnutls_session_t session, long error, uint64_t deadline)
{
    if (error != GNUTLS_E_AGAIN && error != GNUTLS_E_INTERRUPTED)
        return error < 0 && !gnutls_error_is_fatal((int)error) && deadline_left_ns(deadline);
    return probe_wait(gnutls_transport_get_int(session), gnutls_record_get_direction(session) ? POLLOUT : POLLIN, deadline);
}

static enum status tls_refused(struct problem *why, const char *what, long error)
{
    bool late = error == GNUTLS_E_AGAIN || error == GNUTLS_E_INTERRUPTED;

    return problem_set(why, STATUS_NOT_READY, "%s: %s", what, late ? "no answer in time" : gnutls_strerror((int)error));
}

static enum status tls_handshake(gnutls_session_t session, gnutls_certificate_credentials_t credentials, int fd, uint64_t deadline,
                                 struct problem *why)
{
    int done = gnutls_set_default_priority(session);

    done = done < 0 ? done : gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    if (done < 0)
        return tls_refused(why, "no TLS", done);
    gnutls_transport_set_int(session, fd);
    do
        done = gnutls_handshake(session);
    while (done < 0 && again(session, done, deadline));
    return done < 0 ? tls_refused(why, "no TLS", done) : STATUS_OK;
}

static enum status tls_exchange(gnutls_session_t session, struct span request, uint64_t deadline, struct probe_answer *out,
                                struct problem *why)
{
    size_t  bytes = 0;
    ssize_t n;

    do
        n = gnutls_record_send(session, request.data, request.bytes);
    while (n < 0 && again(session, n, deadline));
    if (n != (ssize_t)request.bytes)
        return tls_refused(why, "cannot send", n < 0 ? n : GNUTLS_E_PUSH_ERROR);
    while (bytes < sizeof out->text - 1) {
        n = gnutls_record_recv(session, out->text + bytes, sizeof out->text - 1 - bytes);
        if (n == 0 || n == GNUTLS_E_PREMATURE_TERMINATION)
            break;
        if (n > 0)
            bytes += (size_t)n;
        else if (!again(session, n, deadline))
            return tls_refused(why, "cannot receive", n);
    }
    return probe_take(out, bytes, why);
}

static enum status with_credentials(int fd, gnutls_certificate_credentials_t credentials, struct span request, uint64_t deadline,
                                    struct probe_answer *out, struct problem *why)
{
    gnutls_session_t session;
    enum status      st;

    if (gnutls_init(&session, GNUTLS_CLIENT) < 0)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for TLS");
    st = tls_handshake(session, credentials, fd, deadline, why);
    if (!st)
        st = tls_exchange(session, request, deadline, out, why);
    gnutls_deinit(session);
    return st;
}

enum status probe_tls(int fd, struct span request, uint64_t deadline, struct probe_answer *out, struct problem *why)
{
    gnutls_certificate_credentials_t credentials;
    enum status                      st;

    if (gnutls_certificate_allocate_credentials(&credentials) < 0)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for TLS");
    st = with_credentials(fd, credentials, request, deadline, out, why);
    gnutls_certificate_free_credentials(credentials);
    return st;
}
