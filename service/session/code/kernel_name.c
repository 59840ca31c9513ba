/* Finding a kernel by the name it has in the source: reads the plain and nested names out of C++ mangled ones. */
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

/* Cuts "<identifier>" or "<identifier>::" from the front of *name. */
static bool cut_part(struct span *name, struct span part)
{
    if (name->bytes < part.bytes || memcmp(name->data, part.data, part.bytes) != 0)
        return false;
    *name = span_from(*name, part.bytes);
    if (span_starts(*name, "::")) {
        *name = span_from(*name, 2);
        return name->bytes > 0;
    }
    return name->bytes == 0;
}

/* Itanium ABI: _Z<n><identifier>..., or _ZN<n><identifier><n><identifier>...E... */
static bool mangled_is(const char *mangled, struct span name)
{
    struct span rest = span_of(mangled);
    struct span part;
    bool        nested;

    if (!span_starts(rest, "_Z"))
        return false;
    rest = span_from(rest, 2);
    nested = span_starts(rest, "N");
    if (nested)
        rest = span_from(rest, 1);
    do {
        if (!cut_identifier(&rest, &part) || !cut_part(&name, part))
            return false;
    } while (nested && name.bytes);
    return name.bytes == 0 && (!nested || span_starts(rest, "E") || span_starts(rest, "I"));
}

int kernel_index(const struct kernel_table *table, struct span name)
{
    int found = kernel_table_find(table, name);

    if (found >= 0)
        return found;
    for (uint32_t i = 0; i < table->kernels_count; i++)
        if (mangled_is(table->kernels[i].name, name))
            found = found == -1 ? (int)i : -2;
    return found;
}
