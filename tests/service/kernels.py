"""CUDA sources and launch requests that several tests use."""

FAULTS = r"""
extern "C" __global__ void illegal(volatile int *p) { *p = 7; }
extern "C" __global__ void trap() { asm volatile("trap;"); }
extern "C" __global__ void endless(volatile int *p) { for (;;) *p = *p + 1; }
extern "C" __global__ void fill7(unsigned *p, unsigned n) { if (threadIdx.x < n) p[threadIdx.x] = 7; }
extern "C" __global__ void hello(unsigned n) { printf("hello %u\n", n); }
"""

# Declares what assert() needs, so that no header is needed.
ASSERTS = r"""
extern "C" __device__ void __assertfail(const char *text, const char *file, unsigned line, const char *function, size_t size);
extern "C" __global__ void asserts(int n) { if (n != 1) __assertfail("n == 1", "k.cu", 3, "asserts", 1); }
"""

PTX = """.version 6.0
.target sm_50
.address_size 64
.visible .entry put7(.param .u64 p)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 7;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""


def launch_vadd(**changes):
    request = {"module": "m", "kernel": "vadd", "grid": [4], "block": [256],
               "args": [{"buf": "a"}, {"buf": "b"}, {"buf": "c"}, {"i32": 1024}]}
    request.update(changes)
    return {name: value for name, value in request.items() if value is not None}


BAD_ADDRESS = {"u64": 64}  # on a page that is never mapped


def fill7(**changes):
    return launch("fill7", {"buf": "x"}, {"u32": 1}, **changes)


def launch(kernel, *args, module="f", **changes):
    return {"module": module, "kernel": kernel, "grid": [1], "block": [1], "args": list(args), **changes}
