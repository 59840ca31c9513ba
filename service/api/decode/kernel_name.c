/* Extracts plain and nested names from mangled ones. */
#include "api/decode/kernel_name.h"

/* "4vadd..." -> "vadd"; *rest is what follows. */
static bool take_identifier(struct span *rest, struct span *out)
{
    size_t n = 0, digits = 0;

    while (digits < rest->bytes && digits < 5 && rest->data[digits] >= '0' && rest->data[digits] <= '9')
        n = n * 10 + (size_t)(rest->data[digits++] - '0');
    if (digits == 0 || n == 0 || n > rest->bytes - digits)
        return false;
    *out = (struct span){rest->data + digits, n};
    *rest = span_from(*rest, digits + n);
    return true;
}

static struct span nested(struct span rest, struct span mangled, struct arena *a)
{
    struct span part;
    char       *name = arena_alloc(a, mangled.bytes * 2 + 1); /* at worst each length digit becomes "::" */
    size_t      n = 0;

    if (!name)
        return (struct span){0};
    while (take_identifier(&rest, &part)) {
        if (n) {
            memcpy(name + n, "::", 2);
            n += 2;
        }
        memcpy(name + n, part.data, part.bytes);
        n += part.bytes;
    }
    return rest.bytes && *rest.data == 'E' && n ? (struct span){name, n} : mangled;
}

struct span kernel_plain_name(struct span mangled, struct arena *a)
{
    struct span rest = mangled, name;

    if (!span_starts(mangled, "_Z"))
        return mangled;
    rest = span_from(rest, 2);
    if (rest.bytes && *rest.data == 'N')
        return nested(span_from(rest, 1), mangled, a);
    if (!take_identifier(&rest, &name) || (rest.bytes && *rest.data == 'I'))
        return mangled;
    return name;
}
