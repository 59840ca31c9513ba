/* The source positions of instructions: `.file` and `.loc`, which the compiler writes on request. */
#include "device/cpu/bounds.h"
#include "device/cpu/ptx/parser.h"

static bool take_number(struct ptx_parser *p, uint32_t line, uint32_t *out)
{
    if (p->now.kind != TOKEN_INTEGER || p->now.line != line || p->now.value > UINT32_MAX)
        return false;
    *out = (uint32_t)p->now.value;
    ptx_next(p);
    return true;
}

/* Of a file: each text counts its own from 1. */
static bool take_file_number(struct ptx_parser *p, uint32_t line, uint32_t *out)
{
    if (!take_number(p, line, out))
        return false;
    if (p->images == 1)
        return true;
    if (*out >= PTX_FILE_NUMBERS)
        return false;
    *out += p->image * PTX_FILE_NUMBERS;
    return true;
}

void ptx_parse_file(struct ptx_parser *p)
{
    struct ptx_file f = {0};
    uint32_t        line = p->now.line;

    ptx_next(p);
    if (take_file_number(p, line, &f.number) && p->now.kind == TOKEN_STRING && p->now.line == line &&
        ptx_grow((void **)&p->files, &p->files_room, p->files_count, sizeof *p->files, PTX_FILES_MAX)) {
        f.name = p->now.text;
        p->files[p->files_count++] = f;
    }
    ptx_skip_line(p, line);
}

/* For inlined code the position in the inlined function counts; the position of the call follows a comma. */
void ptx_parse_loc(struct ptx_parser *p)
{
    uint32_t line = p->now.line, file, source;

    ptx_next(p);
    if (take_file_number(p, line, &file) && take_number(p, line, &source)) {
        p->source_file = file;
        p->source_line = source;
    }
    ptx_skip_line(p, line);
}

struct span ptx_file_name(const struct ptx_module *m, uint32_t number)
{
    for (uint32_t i = 0; i < m->files_count; i++) {
        struct span name = m->files[i].name;

        for (size_t k = name.bytes; m->files[i].number == number && k > 0; k--) {
            if (name.data[k - 1] == '/')
                return span_from(name, k);
        }
        if (m->files[i].number == number)
            return name;
    }
    return (struct span){0};
}
