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
