/* What memcheck finds: memcheck KERNEL OFFSET HOW launches the kernel with an allocation of 1024 bytes and the offset, in the way that is asked for. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

#define KERNEL(name, body)                                                                                                                 \
    ".visible .entry " name "(.param .u64 p, .param .u64 offset)\n{\n .reg .b64 %rd<5>; .reg .b32 %r<5>; .reg .pred %p<2>;\n"              \
    " ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [offset]; add.s64 %rd3, %rd1, %rd2; mov.u32 %r1, 1;\n" body "\n ret;\n}\n"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.shared .align 8 .b8 tile[64];\n"
    /* lines 5 to 11, and so on: the access is in line 9 of the text, 15, 21, … */
    KERNEL("store", " st.global.u32 [%rd3], %r1;") KERNEL("load", " ld.global.u32 %r2, [%rd3];")
        KERNEL("add", " atom.global.add.u32 %r2, [%rd3], 1;") KERNEL("vector", " st.global.v2.u64 [%rd3], {%rd1, %rd1};")
            KERNEL("share", " cvt.u32.u64 %r2, %rd2; st.shared.u64 [%r2], %rd1;") KERNEL("stop", " trap;")
                KERNEL("second", " mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.z; and.b32 %r2, %r2, %r3; setp.ne.u32 %p1, %r2, 0;\n"
                                 " @%p1 st.global.u32 [%rd3], %r1;") KERNEL("forever", " L: bra L;")
                    KERNEL("line", " .loc 1 5 3\n st.global.u32 [%rd3], %r1;") ".file 1 \"a\rb\033[2K%s.cu\"\n";

static CUmodule module;

static void launch(const char *name, CUdeviceptr p, uint64_t offset)
{
    unsigned wide = strcmp(name, "second") == 0 ? 2 : 1;
    void    *args[] = {&p, &offset};

    OK(cuLaunchKernel(kernel(module, name), 1, 1, wide, 1, wide, 1, 0, NULL, args, NULL));
}

static void in_child(void)
{
    pid_t id = fork();
    int   status;

    if (id == 0)
        exit(0);
    CHECK(waitpid(id, &status, 0) == id && status == 0);
}

static void *wait_for_device(void *context)
{
    OK(cuCtxSetCurrent(context));
    cuCtxSynchronize();
    return NULL;
}

static void wait_in_threads(CUcontext c)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_for_device, c) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Standard output becomes a pipe that nobody reads. */
static void stop_reading(void)
{
    int ends[2];

    CHECK(pipe(ends) == 0 && dup2(ends[1], 1) == 1);
    close(ends[0]);
}

static void finish(CUcontext c, const char *how)
{
    static int later[4]; /* a copy that nobody waits for */

    if (strcmp(how, "leave") == 0)
        exit(3);
    if (strcmp(how, "copy") == 0) {
        CUdeviceptr q;
        void       *to;

        OK(cuMemAllocHost_v2(&to, sizeof later));
        OK(cuMemAlloc_v2(&q, sizeof later));
        OK(cuMemcpyDtoHAsync_v2(to, q, sizeof later, NULL));
        exit(0);
    }
    if (strcmp(how, "closed") == 0)
        fclose(stdout);
    if (strcmp(how, "unread") == 0)
        stop_reading();
    if (strcmp(how, "threads") == 0)
        wait_in_threads(c);
    cuCtxSynchronize();
    if (strcmp(how, "fork") == 0)
        in_child();
    if (strcmp(how, "abort") == 0)
        abort();
}

int main(int argc, char **argv)
{
    CUcontext   c;
    CUdeviceptr p;

    if (argc != 4)
        return 2;
    if (strcmp(argv[3], "without") == 0)
        close(1);
    printf("%s\n", argv[1]); /* stays in the buffer of the C library, before a pipe */
    c = context_of_first_device();
    OK(cuModuleLoadData(&module, ptx));
    OK(cuMemAlloc_v2(&p, 1024));
    if (strcmp(argv[3], "fresh") != 0)
        OK(cuMemsetD8_v2(p, 0, 1024));
    if (strcmp(argv[3], "freed") == 0)
        OK(cuMemFree_v2(p));
    launch(argv[1], p, strtoull(argv[2], NULL, 0));
    finish(c, argv[3]);
    if (strcmp(argv[3], "closed") != 0)
        puts("end");
    return 0;
}
