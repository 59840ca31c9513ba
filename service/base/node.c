/* The names of nodes within ids. */
#include "base/node.h"

#include "base/random.h"

static bool all_of_name(struct span name)
{
    for (size_t i = 0; i < name.bytes; i++) {
        char c = name.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (!plain && (i == 0 || c != '-'))
            return false;
    }
    return true;
}

bool node_name_valid(struct span name)
{
    return name.bytes > 0 && name.bytes <= NODE_NAME_CHARS_MAX && all_of_name(name);
}

/* "s_" or "s_n2_" before 22 characters: the node, and how long all before the 22 is; 0: no id of a service's. */
static size_t split_made(struct span id, struct span *node)
{
    size_t head = id.bytes > RANDOM_ID_CHARS ? id.bytes - RANDOM_ID_CHARS : 0;

    *node = (struct span){0};
    if (head < 2 || id.data[0] < 'a' || id.data[0] > 'z' || id.data[1] != '_' || id.data[head - 1] != '_' ||
        !span_holds_only(span_from(id, head), ""))
        return 0;
    if (head == 2)
        return head;
    *node = span_first(span_from(id, 2), head - 3);
    return node_name_valid(*node) ? head : 0;
}

struct span node_of_id(struct span id, struct span *rest)
{
    struct span name, before = id;

    *rest = id;
    name = span_cut(&before, '.');
    if (before.bytes && node_name_valid(name)) {
        *rest = before;
        return name;
    }
    return split_made(id, &name) ? name : (struct span){0};
}

struct span node_tag_of_id(struct span id)
{
    struct span node;
    size_t      head = split_made(id, &node);

    return head ? span_first(span_from(id, head), NODE_TAG_CHARS) : (struct span){0};
}

static struct span after_scheme(struct span url)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < COUNT(schemes); i++)
        if (span_starts(url, schemes[i]))
            return span_from(url, strlen(schemes[i]));
    return (struct span){0};
}

static bool is_port(struct span port)
{
    uint64_t number;

    return span_u64(port, &number) && number >= 1 && number <= UINT16_MAX;
}

/* "host", "host:port", "[v6]" or "[v6]:port". */
static bool is_authority(struct span text)
{
    bool        v6 = span_starts(text, "[");
    struct span port = text, host = span_cut(&port, v6 ? ']' : ':');

    if (!v6)
        return host.bytes && span_holds_only(host, ".-") && (!port.data || is_port(port));
    if (host.bytes < 2 || !span_holds_only(span_from(host, 1), ".:") || host.bytes == text.bytes)
        return false;
    return !port.bytes || (port.data[0] == ':' && is_port(span_from(port, 1)));
}

bool node_url_valid(struct span url)
{
    return is_authority(after_scheme(url));
}
