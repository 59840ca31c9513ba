/* Reads the plain and nested names out of C++ mangled ones. */
#include "session/code/kernel_name.h"

/* Cuts "<length><identifier>" from the front of *mangled. */
static bool cut_identifier(struct span *mangled, struct span *out)
{
    size_t length = 0;
    size_t i = 0;

    for (; i < mangled->bytes && mangled->data[i] >= '0' && mangled->data[i] <= '9'; i++) {
        length = length * 10 + (size_t)(mangled->data[i] - '0');
        if (length > KERNEL_NAME_BYTES)
            return false;
    }
    if (i == 0 || length == 0 || length > mangled->bytes - i)
        return false;
    *out = (struct span){mangled->data + i, length};
    *mangled = span_from(*mangled, i + length);
    return true;
}

/* _Z<n><identifier>..., or _ZN<n><identifier><n><identifier>...E... */
bool kernel_source_name(struct span mangled, char *to, size_t room, struct span *out, bool *is_template)
{
    struct span rest = span_from(mangled, 2), part;
    bool        nested = span_starts(rest, "N");
    size_t      n = 0;

    if (!span_starts(mangled, "_Z"))
        return false;
    rest = span_from(rest, nested);
    while ((nested || n == 0) && cut_identifier(&rest, &part)) {
        if (n + part.bytes + 2 > room)
            return false;
        if (n) {
            memcpy(to + n, "::", 2);
            n += 2;
        }
        memcpy(to + n, part.data, part.bytes);
        n += part.bytes;
    }
    *out = (struct span){to, n};
    *is_template = span_starts(rest, "I");
    return n && (!nested || *is_template || span_starts(rest, "E"));
}

int kernel_index(const struct kernel_table *table, struct span name)
{
    int found = kernel_table_find(table, name);

    if (found >= 0)
        return found;
    for (uint32_t i = 0; i < table->kernels_count; i++) {
        char        text[KERNEL_NAME_BYTES];
        struct span its;
        bool        is_template;

        if (kernel_source_name(span_of(table->kernels[i].name), text, sizeof text, &its, &is_template) && span_equal(its, name))
            found = found == -1 ? (int)i : -2;
    }
    return found;
}
