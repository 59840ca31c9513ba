/* Textures: texels by address in any cut, sampled and written by kernels, and what they count. */
#include "contract/contract.h"

enum { WIDTH = 16, HEIGHT = 8, TEXELS = WIDTH * HEIGHT };

static struct device_texture make(struct bench *b, const struct texture_desc *t)
{
    struct device_texture made = {0};
    enum status           st = b->ops->texture_create ? STATUS_OK : STATUS_NOT_IMPLEMENTED;

    if (!st)
        st = texture_check(t, &b->why);
    if (!st)
        st = b->ops->texture_create(b->d, t, &made, &b->why);
    if (st == STATUS_NOT_IMPLEMENTED)
        contract_skip("the device has no textures");
    OK(st);
    CHECK(made.texture && made.address && !made.surface == !t->surface, "objects");
    return made;
}

/* Written whole, read in two parts, and copied over to another texture in three, through memory. */
static void round_trip(struct bench *b, enum texture_dimension dimension, const uint32_t *extent, uint32_t layers)
{
    struct texture_desc   t = {.dimension = dimension,
                               .format = TEXTURE_FORMAT_U16,
                               .channels = 2,
                               .extent = {extent[0], extent[1], extent[2]},
                               .layers = layers,
                               .normalized = dimension == TEXTURE_CUBE || dimension == TEXTURE_CUBE_LAYERED};
    struct device_texture from = make(b, &t), to = make(b, &t);
    uint64_t              bytes = texture_bytes(&t), cut = 4 * (bytes / 4 / 3), between = allocate(b, bytes);
    unsigned char        *before = malloc(bytes), *after = malloc(bytes);

    for (uint64_t i = 0; i < bytes; i++)
        before[i] = (unsigned char)((i * 2654435761u + dimension) >> 11);
    write_all(b, from.address, before, bytes);
    OK(b->ops->mem_copy(b->d, NULL, between, from.address, bytes));
    OK(b->ops->mem_copy(b->d, NULL, to.address, between, cut));
    OK(b->ops->mem_copy(b->d, NULL, to.address + 2 * cut, between + 2 * cut, bytes - 2 * cut));
    OK(b->ops->mem_copy(b->d, NULL, to.address + cut, from.address + cut, cut));
    read_all(b, after, to.address, cut + 4);
    read_all(b, after + cut + 4, to.address + cut + 4, bytes - cut - 4);
    CHECK(memcmp(before, after, bytes) == 0, "texels of a texture that is %s", texture_dimension_of(&t)->name);
    free(before);
    free(after);
    OK(b->ops->texture_destroy(b->d, from.texture));
    OK(b->ops->texture_destroy(b->d, to.texture));
    OK(b->ops->mem_free(b->d, between));
}

void case_texels_in_every_dimension(struct bench *b)
{
    struct device_memory m0, m;

    OK(b->ops->memory(b->d, &m0));
    round_trip(b, TEXTURE_1D, (const uint32_t[]){1001, 1, 1}, 1);
    round_trip(b, TEXTURE_2D, (const uint32_t[]){101, 37, 1}, 1);
    round_trip(b, TEXTURE_3D, (const uint32_t[]){11, 13, 17}, 1);
    round_trip(b, TEXTURE_1D_LAYERED, (const uint32_t[]){101, 1, 1}, 7);
    round_trip(b, TEXTURE_2D_LAYERED, (const uint32_t[]){33, 5, 1}, 7);
    round_trip(b, TEXTURE_CUBE, (const uint32_t[]){15, 1, 1}, 1);
    round_trip(b, TEXTURE_CUBE_LAYERED, (const uint32_t[]){7, 1, 1}, 3);
    OK(await(b, NULL)); /* a free takes effect after the work before it */
    OK(b->ops->memory(b->d, &m));
    CHECK(m.allocated_bytes == m0.allocated_bytes, "%zu bytes are left", (size_t)(m.allocated_bytes - m0.allocated_bytes));
}

static void run(struct bench *b, const struct device_module *m, const char *kernel, const void *params, uint32_t bytes)
{
    struct device_launch l = launch_of(b, m, kernel, params, bytes, 1, TEXELS);

    OK(b->ops->launch(b->d, NULL, &l, &b->why));
    OK(await(b, NULL));
}

void case_kernels_sample_and_write(struct bench *b)
{
    const struct texture_desc t = {
        .dimension = TEXTURE_2D, .format = TEXTURE_FORMAT_F32, .channels = 1, .extent = {WIDTH, HEIGHT, 1}, .layers = 1, .surface = 1};
    struct device_texture made = make(b, &t);
    struct device_module *m = load(b, b->images->textures);
    uint64_t              out = allocate(b, 4 * TEXELS), look[] = {made.texture, out};
    float                 texels[TEXELS], got[TEXELS];

    for (int i = 0; i < TEXELS; i++)
        texels[i] = 1.5f * (float)i - 7;
    write_all(b, made.address, texels, sizeof texels);
    run(b, m, "look", look, sizeof look);
    read_all(b, got, out, sizeof got);
    CHECK(memcmp(texels, got, sizeof got) == 0, "sampled texels");
    run(b, m, "number", &made.surface, sizeof made.surface);
    run(b, m, "look", look, sizeof look);
    read_all(b, got, out, sizeof got);
    read_all(b, texels, made.address, sizeof texels);
    for (int i = 0; i < TEXELS; i++)
        CHECK(got[i] == (float)i && texels[i] == (float)i, "texel %d: %g, %g", i, (double)got[i], (double)texels[i]);
    OK(b->ops->texture_destroy(b->d, made.texture));
    b->ops->module_unload(b->d, m);
}

void case_memory_as_a_texture(struct bench *b)
{
    uint64_t                  memory = allocate(b, 4 * TEXELS), out = allocate(b, 4 * TEXELS);
    const struct texture_desc t = {
        .dimension = TEXTURE_2D, .format = TEXTURE_FORMAT_F32, .channels = 1, .extent = {WIDTH, HEIGHT, 1}, .layers = 1, .address = memory};
    struct device_texture made = make(b, &t);
    struct device_module *m = load(b, b->images->textures);
    uint64_t              look[] = {made.texture, out};
    float                 texels[TEXELS], got[TEXELS];

    CHECK(made.address == memory, "its texels are the memory");
    for (int i = 0; i < TEXELS; i++)
        texels[i] = (float)(i * i);
    write_all(b, memory, texels, sizeof texels);
    run(b, m, "look", look, sizeof look);
    read_all(b, got, out, sizeof got);
    CHECK(memcmp(texels, got, sizeof got) == 0, "sampled memory");
    OK(b->ops->texture_destroy(b->d, made.texture));
    b->ops->module_unload(b->d, m);
}

void case_a_texture_without_memory_for_it(struct bench *b)
{
    struct texture_desc t = {
        .dimension = TEXTURE_3D, .format = TEXTURE_FORMAT_F32, .channels = 4, .extent = {16384, 16384, 16384}, .layers = 1};
    struct device_texture made;

    if (!b->ops->texture_create)
        contract_skip("the device has no textures");
    CHECK(b->ops->texture_create(b->d, &t, &made, &b->why) == STATUS_DEVICE_MEMORY_EXHAUSTED, "64 TiB: %s", status_code(b->why.status));
    t.extent[0] = t.extent[1] = t.extent[2] = 4;
    made = make(b, &t);
    OK(b->ops->texture_destroy(b->d, made.texture));
}
