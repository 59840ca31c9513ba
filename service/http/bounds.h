/* Bounds of http/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#pragma once

#include "limits.h"

enum {
    JSON_FIELDS_MAX = 48, /* of a table that decodes an object */
    JSON_VALUES_MAX = 10000,
    REPLY_HEADERS_MAX = 16,
    SERVER_TIMING_BYTES_MAX = 256, /* its six durations, of up to 20 digits each, are shorter */
    ROUTE_PARAMS_MAX = 3,
    ROUTE_SEGMENTS_MAX = 12, /* of a path; no endpoint has more than half of it */
    REQUEST_HEADERS_MAX = 100,
    REQUEST_HEADER_BYTES_MAX = 24 * 1024, /* request line and header lines; of a trailer as many */
    CHUNK_LINE_BYTES_MAX = 256, /* a chunk's size and extensions */
    CONNECTION_MEMORY_BYTES = 32 * 1024, /* measured: more is slower, the pool is cleared per request */
    CONNECTIONS_RESERVED = 64, /* beyond both: for newcomers that find all others at work; only probes are answered there */
    EXECUTOR_THREADS_RESERVED = 4, /* of EXECUTOR_THREADS_MAX: for probes */
    PEER_ADDRESS_BYTES = 9, /* family, then an IPv4 address or the network part of an IPv6 one */
    AUTH_THROTTLE_SETS = 1024, /* addresses that wrong tokens are counted of: so many times AUTH_THROTTLE_PLACES */
    AUTH_THROTTLE_PLACES = 4,
    AUTH_THROTTLE_CALLERS_KNOWN = 8, /* of one address */
    IDEMPOTENCY_BUCKETS = 16384,
    IDEMPOTENCY_ANSWERS_BYTES_MAX = 64 * 1024 * 1024, /* of all callers together; the oldest of the caller who has most make room */
    EXECUTOR_THREADS_MAX = 256,
    EXECUTOR_QUEUE_MAX = 1024,
    EXECUTOR_IDLE_MS = 10 * 1000,
    SWEEP_INTERVAL_MS = 100, /* deadlines and hang-ups are looked for this often */
    SWEEP_LATE_MS = 2 * 1000, /* a loop that looks so late was stopped */
    TURN_INTERVAL_MAX_MS = 1000, /* an idle loop turns at least this often */
    SMALL_BODY_BYTES_MAX = 64 * 1024, /* up to here a body for a sink is held, and given to it whole on the executor */
    REFUSED_BODY_DRAIN_BYTES = 64 * 1024, /* a refused request keeps its connection when its body is at most this */
    LINGER_BYTES_MAX = 1024 * 1024, /* unread input taken from a connection that we close, so that the answer is not lost */
    LINGER_MS = 200,
    LAST_ANSWERS_MS = 1000, /* clients have to take what is answered when the server stops */
    OFFLOAD_UPLOAD_BYTES_MIN = 1024 * 1024, /* shorter bodies are not worth the change of threads */
    OFFLOAD_DOWNLOAD_BYTES_MIN = 256 * 1024, /* longer ones would hold up the loop */
    OFFLOAD_DROP_BYTES = 64 * 1024, /* pieces in which a failed upload's rest is read */
    LISTEN_BACKLOG = 4096,
    ACCEPTS_PER_TURN = 64,
    CONNECTIONS_CLOSING_MAX = ACCEPTS_PER_TURN * LISTENERS_MAX, /* that have made room for others within a turn of the loop */
    HOSTS_MAX = 32,
    PROXY_HEADER_BYTES_MAX = 1024, /* of the PROXY protocol, its further fields included */
    FORWARDED_HOPS_MAX = 32, /* proxies that are looked back through for a request's client */
    TOKENS_MAX = 1024,
    TOKEN_FILE_BYTES_MAX = 1024 * 1024,
    TLS_FILE_BYTES_MAX = 1024 * 1024, /* each of certificate chain, key and client authorities */
    TLS_CRL_BYTES_MAX = 16 * 1024 * 1024, /* the lists of revoked certificates */
    TLS_CHAIN_CERTIFICATES_MAX = 16, /* of the service's chain, and that a client shows when lists of revoked ones are there */
    TLS_REPLACED_S = 600, /* for which replaced certificates are kept: handshakes and requests that use them are over */
};

static_assert(OFFLOAD_UPLOAD_BYTES_MIN > CONNECTION_MEMORY_BYTES, "when a body is offloaded some of it is still in the socket");
static_assert(REQUEST_HEADER_BYTES_MAX + REQUEST_HEADERS_MAX * 64 <= CONNECTION_MEMORY_BYTES, "the longest header and its table fit MHD's memory");
static_assert((int)URI_BYTES_MAX < (int)REQUEST_HEADER_BYTES_MAX, "a target that is too long is told its limit");
