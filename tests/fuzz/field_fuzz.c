/* Any bytes as the value of each header field with its own grammar. The first eight bytes are the size of the requested resource. */
#include <stdlib.h>

#include "api/decode/floats.h"
#include "http/message/precondition.h"
#include "http/message/range.h"
#include "http/message/structured.h"
#include "http/message/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool lies_within(struct span part, struct span whole)
{
    return part.bytes == 0 || (part.data >= whole.data && part.data + part.bytes <= whole.data + whole.bytes);
}

static void fuzz_ranges(struct span value, uint64_t size)
{
    struct byte_range r = {0};
    struct problem    why;

    if (range_parse(value, size, &r) == RANGE_PART)
        check(r.bytes && r.offset < size && r.bytes <= size - r.offset);
    if (content_range_parse(value, size, &r, &why) == STATUS_OK)
        check(r.bytes && r.offset < size && r.bytes <= size - r.offset);
}

/* A tag that is listed as a strong one is listed as a weak one, too. */
static void fuzz_tags(struct span value)
{
    static const char tag[] = "\"a\"";

    check(!etag_listed(value, SPAN_LITERAL(tag), false) || etag_listed(value, SPAN_LITERAL(tag), true));
    precondition_check(value, value, SPAN_LITERAL(tag), true);
    precondition_check((struct span){0}, value, SPAN_LITERAL(tag), false);
}

static void fuzz_dictionary(struct span value)
{
    struct field_dictionary d;
    struct field_member     m;
    enum field_item         item;

    field_dictionary_init(&d, value);
    while ((item = field_dictionary_next(&d, &m)) != ITEM_NONE && item != ITEM_MALFORMED)
        check(m.key.bytes && lies_within(m.key, value) && lies_within(m.text, value));
}

static void fuzz_trace(struct span value)
{
    char id[TRACE_ID_BYTES];

    trace_id_parse(value, id);
    check(id[0] == '\0' || strlen(id) == TRACE_ID_BYTES - 1);
}

static void fuzz_numbers(struct span value)
{
    const struct float_format formats[] = {FLOAT_F32, FLOAT_F16, FLOAT_BF16};
    uint64_t                  whole, bits;
    double                    number;

    span_u64(value, &whole);
    if (!float_text(value, &number))
        return;
    for (unsigned i = 0; i < COUNT(formats); i++)
        float_bits(number, formats[i], &bits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint64_t    size = 0;
    size_t      head = bytes < sizeof size ? bytes : sizeof size;
    struct span value = span_from((struct span){(const char *)data, bytes}, head);

    if (head)
        memcpy(&size, data, head);
    fuzz_ranges(value, size);
    fuzz_tags(value);
    fuzz_dictionary(value);
    fuzz_trace(value);
    fuzz_numbers(value);
    return 0;
}
