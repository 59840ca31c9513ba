/* Reads the plain and nested names out of C++ mangled ones. */
#include "session/code/kernel_name.h"

#include <assert.h>
#include <stdio.h>

enum { NAMES_END_BYTES = 32 }; /* " and 4294967295 more", or "4294967295 kernels" */

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

/* As the source has it: of a template without its arguments. */
static struct span shown_name(const char *name, char text[KERNEL_NAME_BYTES])
{
    struct span its;
    bool        is_template;

    return kernel_source_name(span_of(name), text, KERNEL_NAME_BYTES, &its, &is_template) ? its : span_of(name);
}

void kernel_names(const struct kernel_table *table, char *out, size_t room)
{
    size_t   at = 0;
    uint32_t shown = 0;

    assert(room > 2 * (size_t)NAMES_END_BYTES - 1);
    for (; shown < table->kernels_count; shown++) {
        char        text[KERNEL_NAME_BYTES];
        struct span name = shown_name(table->kernels[shown].name, text);

        if (name.bytes + 2 > room - NAMES_END_BYTES - at)
            break;
        at += (size_t)snprintf(out + at, room - at, "%s%.*s", shown ? ", " : "", SPAN_ARG(name));
    }
    if (!table->kernels_count)
        snprintf(out, room, "none");
    else if (!shown)
        snprintf(out, room, "%u kernels", (unsigned)table->kernels_count);
    else if (shown < table->kernels_count)
        snprintf(out + at, room - at, " and %u more", (unsigned)(table->kernels_count - shown));
}
