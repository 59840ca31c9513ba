"""As much of OpenCL 1.2 as the comparison needs, through the ICD loader (libOpenCL.so.1) alone: no headers, no binding to install."""
import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p

DEVICE_TYPE_CPU, DEVICE_NAME, PLATFORM_NAME, PLATFORM_VERSION, BUILD_LOG = 1 << 1, 0x102B, 0x0902, 0x0901, 0x1183
READ_WRITE, TRUE = 1, 1


class Missing(Exception):
    """No loader, or no processor behind it."""


def _load():
    try:
        library = ctypes.CDLL("libOpenCL.so.1")
    except OSError as error:
        raise Missing("libOpenCL.so.1 is not installed") from error
    for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clCreateProgramWithSource", "clCreateKernel"):
        getattr(library, name).restype = c_void_p
    return library


def _check(code, what):
    if code:
        raise RuntimeError(f"{what}: OpenCL error {code}")


class Processor:
    """The first platform with a CPU device: a context and a queue. Used by one thread."""

    def __init__(self):
        self.cl = _load()
        self.platform, self.device = self._find()
        code = c_int()
        self.context = c_void_p(self.cl.clCreateContext(None, 1, byref(self.device), None, None, byref(code)))
        _check(code.value, "clCreateContext")
        self.queue = c_void_p(self.cl.clCreateCommandQueue(self.context, self.device, ctypes.c_ulong(0), byref(code)))
        _check(code.value, "clCreateCommandQueue")

    def _find(self):
        platforms, count, device = (c_void_p * 8)(), c_uint(), c_void_p()
        if self.cl.clGetPlatformIDs(8, platforms, byref(count)):
            raise Missing("no OpenCL platform is installed (Debian: pocl-opencl-icd)")
        for platform in platforms[:min(count.value, 8)]:
            if self.cl.clGetDeviceIDs(c_void_p(platform), ctypes.c_ulong(DEVICE_TYPE_CPU), 1, byref(device), None) == 0:
                return c_void_p(platform), device
        raise Missing("no OpenCL platform has a CPU device (Debian: pocl-opencl-icd)")

    def name(self):
        text = ctypes.create_string_buffer(256)
        self.cl.clGetPlatformInfo(self.platform, PLATFORM_VERSION, c_size_t(256), text, None)
        return text.value.decode()

    def build(self, source):
        code, text = c_int(), c_char_p(source.encode())
        program = c_void_p(self.cl.clCreateProgramWithSource(self.context, 1, byref(text), None, byref(code)))
        _check(code.value, "clCreateProgramWithSource")
        if self.cl.clBuildProgram(program, 1, byref(self.device), None, None, None):
            log = ctypes.create_string_buffer(1 << 16)
            self.cl.clGetProgramBuildInfo(program, self.device, c_uint(BUILD_LOG), c_size_t(1 << 16), log, None)
            raise RuntimeError(log.value.decode(errors="replace"))
        return program

    def kernel(self, program, name):
        code = c_int()
        kernel = c_void_p(self.cl.clCreateKernel(program, name.encode(), byref(code)))
        _check(code.value, name)
        return kernel

    def buffer(self, data):
        code = c_int()
        made = c_void_p(self.cl.clCreateBuffer(self.context, ctypes.c_ulong(READ_WRITE), c_size_t(len(data)), None, byref(code)))
        _check(code.value, "clCreateBuffer")
        self.write(made, data)
        return made

    def write(self, buffer, data):
        _check(self.cl.clEnqueueWriteBuffer(self.queue, buffer, TRUE, c_size_t(0), c_size_t(len(data)), c_char_p(data), 0, None, None), "write")

    def read(self, buffer, size):
        out = ctypes.create_string_buffer(size)
        _check(self.cl.clEnqueueReadBuffer(self.queue, buffer, TRUE, c_size_t(0), c_size_t(size), out, 0, None, None), "read")
        return out.raw

    def arguments(self, kernel, buffers, n):
        for i, buffer in enumerate(buffers):
            _check(self.cl.clSetKernelArg(kernel, c_uint(i), c_size_t(8), byref(buffer)), "clSetKernelArg")
        _check(self.cl.clSetKernelArg(kernel, c_uint(len(buffers)), c_size_t(4), byref(c_int(n))), "clSetKernelArg")

    def run(self, kernel, threads, group):
        """Waits for it."""
        size = (c_size_t * len(threads))(*threads)
        local = (c_size_t * len(group))(*group)
        _check(self.cl.clEnqueueNDRangeKernel(self.queue, kernel, c_uint(len(threads)), None, size, local, 0, None, None), "launch")
        _check(self.cl.clFinish(self.queue), "clFinish")
