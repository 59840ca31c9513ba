/* Starts and stops the service under test. */
#include "fixture.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START_DEADLINE_MS = 60 * 1000 };

const char kernels_source[] =
    "extern \"C\" __global__ void add_one(unsigned char *x, unsigned n)\n"
    "{\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) x[i]++;\n"
    "}\n"
    "extern \"C\" __global__ void axpy(float a, const float *x, float *y, int n)\n"
    "{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n"
    "struct mixed { char c; double d; short s; };\n"
    "extern \"C\" __global__ void store(long long *out, signed char a, short b, int c, long long d, unsigned char e,\n"
    "                                 unsigned short f, unsigned g, unsigned long long h, float i, double j, mixed k)\n"
    "{\n"
    "    out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f; out[6] = g; out[7] = (long long)h;\n"
    "    out[8] = __float_as_int(i); out[9] = __double_as_longlong(j); out[10] = k.c; out[11] = (long long)k.d; out[12] = k.s;\n"
    "}\n"
    "extern \"C\" __global__ void talk(int n) { printf(\"n is %d\\n\", n); }\n"
    "extern \"C\" __global__ void fault(int *x) { x[1 << 28] = 1; }\n"
    "extern \"C\" __global__ void spin(volatile int *x) { while (*x == 0) { } }\n"
    "template <class T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }\n";

static void give_up(const char *what)
{
    fprintf(stderr, "fixture: %s\n", what);
    abort();
}

static void run(const struct service *s, const char *argument, const char *value)
{
    char        listen[128], port_file[128], log[128], cache[128];
    const char *service = getenv("GPURESTD") ? getenv("GPURESTD") : GPURESTD_PATH;
    const char *arguments[24] = {
        service,      "--listen", "127.0.0.1:0",     "--listen", listen,          "--port-file", port_file,
        "--backends", "cpu",      "--drain-timeout", "0",        "--staging-mib", "16",          "--no-warm-compiler",
        "--cache",    cache,      "--log-level",     "warn",     argument,        value,         NULL};

    snprintf(listen, sizeof listen, "unix:%s/s.sock", s->folder);
    snprintf(port_file, sizeof port_file, "%s/ports", s->folder);
    snprintf(cache, sizeof cache, "%s/cache", s->folder);
    snprintf(log, sizeof log, "%s/log", s->folder);
    if (!freopen(log, "w", stdout) || !freopen(log, "a", stderr))
        _exit(2);
    execv(service, (char *const *)(uintptr_t)arguments);
    _exit(2);
}

static bool read_port(struct service *s)
{
    char  path[128], line[96] = "";
    int   port;
    FILE *file;

    snprintf(path, sizeof path, "%s/ports", s->folder);
    file = fopen(path, "r");
    if (!file)
        return false;
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    fclose(file);
    if (sscanf(line, "127.0.0.1:%d\n", &port) != 1)
        return false;
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", port);
    snprintf(s->unix_url, sizeof s->unix_url, "unix://%s/s.sock", s->folder);
    return true;
}

void service_start(struct service *s, const char *argument, const char *value)
{
    struct timespec pause = {0, 5 * 1000 * 1000};
    int             left;

    *s = (struct service){.folder = "/tmp/gpurest_sdk_XXXXXX"};
    if (!mkdtemp(s->folder))
        give_up("no folder");
    s->pid = fork();
    if (s->pid == 0)
        run(s, argument, value);
    for (left = START_DEADLINE_MS / 5; left && !read_port(s); left--) {
        if (waitpid(s->pid, NULL, WNOHANG) != 0)
            give_up("the service has ended at once");
        nanosleep(&pause, NULL);
    }
    if (!left)
        give_up("the service does not serve");
}

void service_stop(struct service *s)
{
    char command[128];
    int  wait_status = -1;

    kill(s->pid, SIGTERM);
    if (waitpid(s->pid, &wait_status, 0) != s->pid || wait_status != 0) {
        snprintf(command, sizeof command, "tail -n 40 %s/log >&2", s->folder);
        if (system(command))
            perror("tail");
        give_up("the service has ended badly");
    }
    snprintf(command, sizeof command, "rm -rf %s", s->folder);
    if (system(command))
        perror("rm");
}

int bad(gpurest_status st)
{
    const gpurest_error *e = gpurest_last_error();

    if (st)
        fprintf(stderr, "%s: %s [%s] %s\n%s\n", gpurest_status_name(st), e->message, e->code, e->hint, e->log);
    return st != GPUREST_OK;
}

gpurest_client *client_of(const char *url, int use_libcurl)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;
    gpurest_client *c;

    o.url = url;
    o.use_libcurl = use_libcurl;
    if (bad(gpurest_open_with(&c, &o)))
        give_up("no client");
    return c;
}

gpurest_session *session_of(gpurest_client *c)
{
    gpurest_session *s;

    if (bad(gpurest_session_open(&s, c, NULL)))
        give_up("no session");
    return s;
}

const gpurest_kernel *kernel_of(gpurest_session *s, gpurest_module **m, const char *name)
{
    const gpurest_kernel *k;

    if (bad(gpurest_compile(s, m, kernels_source, NULL, 0)) || bad(gpurest_kernel_get(*m, name, &k)))
        give_up("no kernel");
    return k;
}

struct world w;

const gpurest_kernel *world_kernel(const char *name)
{
    const gpurest_kernel *k;

    if (bad(gpurest_kernel_get(w.module, name, &k)))
        give_up("no kernel");
    return k;
}

void world_serve(const char *argument, const char *value)
{
    service_start(&w.service, argument, value);
}

void world_connect(const char *url)
{
    w.client = client_of(url, 0);
    w.session = session_of(w.client);
}

void world_start_bare(void)
{
    world_serve(NULL, NULL);
    world_connect(w.service.url);
}

void world_start(void)
{
    world_start_bare();
    w.add_one = kernel_of(w.session, &w.module, "add_one");
    w.axpy = world_kernel("axpy");
    w.talk = world_kernel("talk");
    w.spin = world_kernel("spin");
}

void world_end(void)
{
    gpurest_module_unload(w.module);
    gpurest_session_close(w.session);
    gpurest_close(w.client);
    service_stop(&w.service);
}
