/* An asynchronous pipeline: while the service uploads, computes and downloads one chunk, this program makes the next one.
 * Two sets of buffers take turns. Usage: pipeline [CHUNKS]; GPUREST_URL names the service. */
#include <gpurest/gpurest.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK = 65536, SETS = 2, CHUNKS_MAX = 1000 };

static const char source[] = "extern \"C\" __global__ void square_and_add(float *x, float plus, int n)\n"
                             "{\n"
                             "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n) x[i] = x[i] * x[i] + plus;\n"
                             "}\n";

struct set {
    gpurest_buffer buffer;
    float          in[CHUNK], out[CHUNK];
    gpurest_op    *ops[3]; /* upload, kernel and download of the current chunk */
    int            chunk;
};

struct pipeline {
    gpurest_session      *session;
    gpurest_module       *module;
    const gpurest_kernel *kernel;
    struct set            sets[SETS];
    long                  wrong;
};

static float value_of(int chunk, int i)
{
    return (float)((chunk * 31 + i) % 1000) / 8;
}

static gpurest_status begin(struct pipeline *p, struct set *s, int chunk)
{
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_arg           args[] = {GPUREST_BUF(s->buffer), GPUREST_F32(chunk), GPUREST_I32(CHUNK)};
    gpurest_status        st;

    s->chunk = chunk;
    for (int i = 0; i < CHUNK; i++)
        s->in[i] = value_of(chunk, i);
    config.threads = CHUNK;
    if ((st = gpurest_write_async(p->session, s->buffer, 0, s->in, sizeof s->in, &s->ops[0])))
        return st;
    if ((st = gpurest_launch_async(p->session, p->kernel, &config, args, 3, NULL, &s->ops[1])))
        return st;
    return gpurest_read_async(p->session, s->buffer, 0, s->out, sizeof s->out, &s->ops[2]);
}

/* Waits for the current chunk, if any, and checks it. */
static gpurest_status end(struct pipeline *p, struct set *s)
{
    gpurest_status st = GPUREST_OK;

    if (!s->ops[2])
        return GPUREST_OK;
    for (int i = 0; i < 3 && !st; i++)
        st = gpurest_op_wait(s->ops[i], -1);
    for (int i = 0; i < CHUNK && !st; i++)
        p->wrong += s->out[i] != value_of(s->chunk, i) * value_of(s->chunk, i) + (float)s->chunk;
    for (int i = 0; i < 3; i++) {
        gpurest_op_free(s->ops[i]);
        s->ops[i] = NULL;
    }
    return st;
}

static gpurest_status run(struct pipeline *p, int chunks)
{
    gpurest_status st = gpurest_compile(p->session, &p->module, source, NULL, 0);

    if (!st)
        st = gpurest_kernel_get(p->module, "square_and_add", &p->kernel);
    for (int i = 0; i < SETS && !st; i++)
        st = gpurest_alloc(p->session, &p->sets[i].buffer, sizeof p->sets[i].in);
    for (int chunk = 0; chunk < chunks && !st; chunk++) {
        struct set *s = &p->sets[chunk % SETS];
        st = end(p, s);
        if (!st)
            st = begin(p, s, chunk);
    }
    for (int i = 0; i < SETS && !st; i++)
        st = end(p, &p->sets[(chunks + i) % SETS]);
    return st;
}

/* Pending operations write into the sets, so they must end first. */
static void give_up(struct pipeline *p)
{
    for (int i = 0; i < SETS; i++)
        for (int k = 0; k < 3; k++) {
            gpurest_op_cancel(p->sets[i].ops[k]);
            gpurest_op_free(p->sets[i].ops[k]);
        }
}

int main(int argc, char **argv)
{
    int              chunks = argc > 1 ? atoi(argv[1]) : 12;
    struct pipeline *p = calloc(1, sizeof *p);
    gpurest_client  *client = NULL;
    gpurest_status   st = GPUREST_E_INVAL;

    if (!p || chunks < 1 || chunks > CHUNKS_MAX) {
        fprintf(stderr, "usage: pipeline [CHUNKS], from 1 to %d\n", CHUNKS_MAX);
        free(p);
        return EXIT_FAILURE;
    }
    if (!(st = gpurest_open(&client, NULL)) && !(st = gpurest_session_open(&p->session, client, NULL)))
        st = run(p, chunks);
    if (st)
        fprintf(stderr, "%s\n%s\n", gpurest_last_error()->message, gpurest_last_error()->hint);
    else
        printf("%d chunks of %d values, %ld wrong\n", chunks, CHUNK, p->wrong);
    give_up(p);
    gpurest_module_unload(p->module);
    gpurest_session_close(p->session);
    gpurest_close(client);
    st = st || p->wrong ? GPUREST_E_INVAL : GPUREST_OK;
    free(p);
    return st ? EXIT_FAILURE : EXIT_SUCCESS;
}
