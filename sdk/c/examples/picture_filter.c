/* A 3 x 3 filter on a picture: reads 8-bit PGM (P5) or PNG, colours as grey; writes the format that OUT's name ends with.
 * Usage: picture_filter blur|sharpen|edges IN OUT; GPUREST_URL names the service. */
#include <gpurest/gpurest.h>
#include <stdio.h>
#include <stdlib.h>

#include "png.h"

enum { SIDE_MAX = 32768, FILE_BYTES_MAX = 1 << 30 };

static const char source[] =
    "extern \"C\" __global__ void filter(const unsigned char *in, unsigned char *out, int width, int height, const float *weights)\n"
    "{\n"
    "    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
    "    if (x >= width || y >= height) return;\n"
    "    float sum = 0;\n"
    "    for (int j = -1; j <= 1; j++)\n"
    "        for (int i = -1; i <= 1; i++) {\n"
    "            int u = min(max(x + i, 0), width - 1), v = min(max(y + j, 0), height - 1);\n"
    "            sum += weights[(j + 1) * 3 + i + 1] * in[(size_t)v * width + u];\n"
    "        }\n"
    "    out[(size_t)y * width + x] = (unsigned char)fminf(fmaxf(sum + 0.5f, 0.0f), 255.0f);\n"
    "}\n";

static const struct filter {
    const char *name;
    float       weights[9];
} filters[] = {
    {"blur", {1 / 16.f, 2 / 16.f, 1 / 16.f, 2 / 16.f, 4 / 16.f, 2 / 16.f, 1 / 16.f, 2 / 16.f, 1 / 16.f}},
    {"sharpen", {0, -1, 0, -1, 5, -1, 0, -1, 0}},
    {"edges", {-1, -1, -1, -1, 8, -1, -1, -1, -1}},
};

struct picture {
    int            width, height;
    unsigned char *pixels;
};

/* Reads a number of the header; comments start with '#'. -1: invalid. */
static int read_number(FILE *file)
{
    int c, value = -1;

    while ((c = getc(file)) == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '#')
        if (c == '#')
            while (c != '\n' && c != EOF)
                c = getc(file);
    for (; c >= '0' && c <= '9' && value <= SIDE_MAX; c = getc(file))
        value = 10 * (value < 0 ? 0 : value) + (c - '0');
    return value; /* also consumes one blank */
}

static int read_pgm(FILE *file, struct picture *p)
{
    char kind[2] = "";
    int  good = 0, depth;

    if (fread(kind, 1, sizeof kind, file) == sizeof kind && kind[0] == 'P' && kind[1] == '5') {
        p->width = read_number(file);
        p->height = read_number(file);
        depth = read_number(file);
        if (p->width > 0 && p->width <= SIDE_MAX && p->height > 0 && p->height <= SIDE_MAX && depth == 255) {
            p->pixels = malloc((size_t)p->width * (size_t)p->height);
            good = p->pixels && fread(p->pixels, (size_t)p->width, (size_t)p->height, file) == (size_t)p->height;
        }
    }
    return good;
}

static int read_png(FILE *file, struct picture *p, const char **why)
{
    unsigned char *text = NULL;
    long           bytes = fseek(file, 0, SEEK_END) ? -1 : ftell(file);

    *why = "cannot be read";
    rewind(file);
    if (bytes > 0 && bytes <= FILE_BYTES_MAX && (text = malloc((size_t)bytes)) && fread(text, 1, (size_t)bytes, file) == (size_t)bytes)
        p->pixels = png_decode(text, (size_t)bytes, SIDE_MAX, &p->width, &p->height, why);
    free(text);
    return p->pixels != NULL;
}

/* Recognizes the format by the first byte. */
static int read_picture(const char *path, struct picture *p, const char **why)
{
    FILE *file = fopen(path, "rb");
    int   good, first;

    *why = "is no binary PGM or PNG picture of 8 bits";
    if (!file)
        return 0;
    first = getc(file);
    rewind(file);
    good = first == 0x89 ? read_png(file, p, why) : read_pgm(file, p);
    fclose(file);
    return good;
}

static int write_png(FILE *file, const struct picture *p)
{
    size_t         bytes = 0;
    unsigned char *text = png_encode(p->pixels, p->width, p->height, &bytes);
    int            good = text && fwrite(text, 1, bytes, file) == bytes;

    free(text);
    return good;
}

static int write_pgm(FILE *file, const struct picture *p)
{
    return fprintf(file, "P5\n%d %d\n255\n", p->width, p->height) > 0 &&
           fwrite(p->pixels, (size_t)p->width, (size_t)p->height, file) == (size_t)p->height;
}

static int write_picture(const char *path, const struct picture *p)
{
    FILE  *file = fopen(path, "wb");
    size_t n = strlen(path);
    int    good = file && (n > 4 && strcmp(path + n - 4, ".png") == 0 ? write_png : write_pgm)(file, p);

    if (file && fclose(file))
        good = 0;
    return good;
}

static gpurest_status apply(const struct filter *f, const struct picture *in, struct picture *out)
{
    size_t      bytes = (size_t)in->width * (size_t)in->height;
    gpurest_arg args[] = {GPUREST_IN(in->pixels, bytes), GPUREST_OUT(out->pixels, bytes), GPUREST_I32(in->width), GPUREST_I32(in->height),
                          GPUREST_IN(f->weights, sizeof f->weights)};
    gpurest_client *client;
    gpurest_status  st = gpurest_open(&client, NULL);

    if (st)
        return st;
    st = gpurest_run(client, source, "filter", GPUREST_2D(((uint32_t)in->width + 15) / 16, ((uint32_t)in->height + 15) / 16),
                     GPUREST_2D(16, 16), args, 5, NULL);
    gpurest_close(client);
    return st;
}

static const struct filter *find(const char *name)
{
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        if (strcmp(filters[i].name, name) == 0)
            return &filters[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct filter *f = argc == 4 ? find(argv[1]) : NULL;
    struct picture       in = {0}, out = {0};
    const char          *why;
    int                  code = EXIT_FAILURE;

    if (!f) {
        fprintf(stderr, "usage: picture_filter blur|sharpen|edges IN OUT\n");
        return EXIT_FAILURE;
    }
    if (!read_picture(argv[2], &in, &why)) {
        fprintf(stderr, "%s %s\n", argv[2], why);
    } else {
        out = in;
        out.pixels = malloc((size_t)in.width * (size_t)in.height);
        if (!out.pixels || apply(f, &in, &out))
            fprintf(stderr, "%s\n%s\n%s", gpurest_last_error()->message, gpurest_last_error()->hint, gpurest_last_error()->log);
        else if (!write_picture(argv[3], &out))
            fprintf(stderr, "%s cannot be written\n", argv[3]);
        else
            code = printf("%s: %d x %d, %s\n", argv[3], in.width, in.height, f->name) < 0;
    }
    free(in.pixels);
    free(out.pixels);
    return code;
}
