/* Addresses as bytes: IPv4 is mapped into IPv6, so that one comparison serves both. */
#include "http/message/proxies.h"
#include "http/bounds.h"

#include <arpa/inet.h>

static const unsigned char MAPPED[12] = {[10] = 0xff, [11] = 0xff};

enum { MAPPED_BITS = 96, IP_BITS = 128 };

/* ---- addresses ---- */

static struct ip_address ip_of_four(const void *four)
{
    struct ip_address a;

    memcpy(a.bytes, MAPPED, sizeof MAPPED);
    memcpy(a.bytes + sizeof MAPPED, four, sizeof(struct in_addr));
    return a;
}

static bool is_four(const struct ip_address *a)
{
    return memcmp(a->bytes, MAPPED, sizeof MAPPED) == 0;
}

static bool same_address(const struct ip_address *a, const struct ip_address *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

struct ip_address ip_of_peer(const struct sockaddr_storage *a)
{
    struct ip_address out = {0};

    if (a->ss_family == AF_INET)
        return ip_of_four(&((const struct sockaddr_in *)(const void *)a)->sin_addr);
    if (a->ss_family == AF_INET6)
        memcpy(out.bytes, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, sizeof out.bytes);
    return out;
}

struct sockaddr_storage ip_to_peer(const struct ip_address *a)
{
    struct sockaddr_storage out = {.ss_family = AF_INET6};

    memcpy(&((struct sockaddr_in6 *)(void *)&out)->sin6_addr, a->bytes, sizeof a->bytes);
    return out;
}

const char *ip_text(const struct ip_address *a, char out[IP_TEXT_BYTES])
{
    const char *text =
        is_four(a) ? inet_ntop(AF_INET, a->bytes + sizeof MAPPED, out, IP_TEXT_BYTES) : inet_ntop(AF_INET6, a->bytes, out, IP_TEXT_BYTES);

    return text ? text : "";
}

bool ip_parse(struct span text, struct ip_address *out)
{
    char           copy[IP_TEXT_BYTES];
    struct in_addr four;

    if (!span_copy(text, copy, sizeof copy) || strlen(copy) != text.bytes)
        return false;
    if (inet_pton(AF_INET, copy, &four) == 1) {
        *out = ip_of_four(&four);
        return true;
    }
    return inet_pton(AF_INET6, copy, out->bytes) == 1;
}

/* ---- networks ---- */

static bool bits_equal(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

static enum status bad_network(struct problem *why, const char *what)
{
    return problem_set(why, STATUS_INVALID_REQUEST, "trusted proxies: %s", what);
}

static bool has_host_bits(const struct network *n)
{
    struct ip_address masked = n->address;

    for (unsigned bit = n->bits; bit < IP_BITS; bit++)
        masked.bytes[bit / 8] &= (unsigned char)~(0x80 >> bit % 8);
    return !same_address(&masked, &n->address);
}

enum status networks_add(struct networks *n, const char *text, struct problem *why)
{
    struct span rest = span_of(text), address = span_cut(&rest, '/');
    bool        has_bits = strchr(text, '/') != NULL;
    struct network new = {.bits = IP_BITS};
    uint64_t bits = 0, most;

    if (n->count == TRUSTED_PROXIES_MAX)
        return problem_set(why, STATUS_INVALID_REQUEST, "too many trusted proxies, at most %d are possible", TRUSTED_PROXIES_MAX);
    if (!ip_parse(address, &new.address))
        return bad_network(why, "must be an address, or a network such as 10.0.0.0/8 or 2001:db8::/32");
    most = is_four(&new.address) && !memchr(address.data, ':', address.bytes) ? IP_BITS - MAPPED_BITS : IP_BITS;
    if (has_bits && (!span_u64(rest, &bits) || bits > most))
        return bad_network(why, "the prefix length after the slash must be at most 32 for IPv4 and 128 for IPv6");
    if (has_bits)
        new.bits = (unsigned)(bits + IP_BITS - most);
    if (has_host_bits(&new))
        return bad_network(why, "bits after the prefix length must be zero");
    n->items[n->count++] = new;
    return STATUS_OK;
}

bool networks_hold(const struct networks *n, const struct ip_address *a)
{
    for (unsigned i = 0; i < n->count; i++)
        if (bits_equal(n->items[i].address.bytes, a->bytes, n->items[i].bits))
            return true;
    return false;
}

/* ---- the PROXY protocol, version 2 ----
 *
 * 12 bytes of signature; version and command; family and protocol; the length of the rest, big-endian; addresses and ports of both ends;
 * then more fields, which are skipped. */

enum {
    VERSION_AT = 12,
    FAMILY_AT = 13,
    LENGTH_AT = 14,
    FIXED_BYTES = 16,
    VERSION_2 = 2,
    COMMAND_LOCAL = 0,
    COMMAND_PROXY = 1,
    FAMILY_UNKNOWN = 0,
    FAMILY_INET = 1,
    FAMILY_INET6 = 2,
    FAMILY_UNIX = 3,
    INET_BYTES = 12, /* two addresses, two ports */
    INET6_BYTES = 36,
};

static const unsigned char SIGNATURE[VERSION_AT] = "\r\n\r\n\0\r\nQUIT\n";

/* Reads the addresses after the fixed part. All `rest` bytes have arrived. */
static enum proxy_verdict read_addresses(const unsigned char *data, size_t rest, struct proxy_header *out)
{
    switch (data[FAMILY_AT] >> 4) {
    case FAMILY_INET:
        if (rest < INET_BYTES)
            return PROXY_BAD;
        out->client = ip_of_four(data + FIXED_BYTES);
        return PROXY_CLIENT;
    case FAMILY_INET6:
        if (rest < INET6_BYTES)
            return PROXY_BAD;
        memcpy(out->client.bytes, data + FIXED_BYTES, sizeof out->client.bytes);
        return PROXY_CLIENT;
    case FAMILY_UNKNOWN:
    case FAMILY_UNIX: /* the client has no address; the proxy's is used */
        return PROXY_LOCAL;
    default:
        return PROXY_BAD;
    }
}

enum proxy_verdict proxy_header_read(const unsigned char *data, size_t bytes, struct proxy_header *out)
{
    size_t rest;

    *out = (struct proxy_header){0};
    if (bytes == 0)
        return PROXY_SHORT;
    if (memcmp(data, SIGNATURE, bytes < sizeof SIGNATURE ? bytes : sizeof SIGNATURE) != 0)
        return PROXY_NONE;
    if (bytes < FIXED_BYTES)
        return PROXY_SHORT;
    rest = (size_t)data[LENGTH_AT] << 8 | data[LENGTH_AT + 1];
    if (data[VERSION_AT] >> 4 != VERSION_2 || rest > PROXY_HEADER_BYTES_MAX - FIXED_BYTES)
        return PROXY_BAD;
    if (bytes - FIXED_BYTES < rest)
        return PROXY_SHORT;
    out->bytes = FIXED_BYTES + rest;
    switch (data[VERSION_AT] & 0xf) {
    case COMMAND_LOCAL:
        return PROXY_LOCAL;
    case COMMAND_PROXY:
        return read_addresses(data, rest, out);
    default:
        return PROXY_BAD;
    }
}

/* ---- X-Forwarded-For and Forwarded ---- */

/* Cuts the last element off a list; commas within quotes do not separate. */
static struct span cut_last(struct span *list)
{
    bool        quoted = false;
    size_t      at = list->bytes;
    struct span last;

    while (at > 0 && (quoted || list->data[at - 1] != ',')) {
        quoted ^= list->data[at - 1] == '"';
        at--;
    }
    last = span_trim(span_from(*list, at));
    *list = span_first(*list, at ? at - 1 : 0);
    return last;
}

static bool is_port(struct span text)
{
    uint64_t port;

    return span_u64(text, &port) && port <= UINT16_MAX;
}

/* "192.0.2.1", "192.0.2.1:99", "[2001:db8::1]", "[2001:db8::1]:99", and, in X-Forwarded-For, "2001:db8::1". */
static bool node_parse(struct span node, struct ip_address *out)
{
    const char *colon = node.bytes ? memchr(node.data, ':', node.bytes) : NULL;
    const char *end = node.bytes ? memchr(node.data, ']', node.bytes) : NULL;

    if (span_starts(node, "[")) {
        struct span port = end ? span_from(node, (size_t)(end - node.data) + 1) : node;

        if (!end || (port.bytes && (!span_starts(port, ":") || !is_port(span_from(port, 1)))))
            return false;
        return ip_parse(span_from(span_first(node, (size_t)(end - node.data)), 1), out);
    }
    if (colon && !memchr(colon + 1, ':', node.bytes - (size_t)(colon + 1 - node.data))) {
        size_t head = (size_t)(colon - node.data);

        return is_port(span_from(node, head + 1)) && ip_parse(span_first(node, head), out);
    }
    return ip_parse(node, out);
}

/* "for=192.0.2.1;proto=http": the value of "for", empty if there is none or more than one. */
static struct span for_of(struct span element)
{
    struct span found = {0};

    while (element.bytes) {
        struct span value = span_cut(&element, ';'), name;

        value = span_trim(value);
        name = span_cut(&value, '=');
        if (!span_equal_nocase(name, SPAN_LITERAL("for")))
            continue;
        if (found.data)
            return (struct span){0};
        found = span_unquote(value);
    }
    return found;
}

static struct ip_address walk_forwarded(const struct networks *trusted, struct span list, bool is_forwarded, struct ip_address client)
{
    for (unsigned hops = 0; hops < FORWARDED_HOPS_MAX && list.bytes && networks_hold(trusted, &client); hops++) {
        struct span       last = cut_last(&list);
        struct ip_address said;

        if (!node_parse(is_forwarded ? for_of(last) : last, &said))
            break;
        client = said;
    }
    return client;
}

void forwarded_client(const struct networks *trusted, struct span x_forwarded_for, struct span forwarded, struct ip_address *client)
{
    struct ip_address by_list = walk_forwarded(trusted, x_forwarded_for, false, *client);
    struct ip_address by_fields = walk_forwarded(trusted, forwarded, true, *client);

    if (!forwarded.bytes)
        *client = by_list;
    else if (!x_forwarded_for.bytes || same_address(&by_list, &by_fields))
        *client = by_fields;
}
