//! A kernel from source to results in one request, without a session.

use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of_val;

use crate::client::Client;
use crate::error::{c_string, check, Result};
use crate::ffi;
use crate::launch::{raw_argument, Argument, Dim3, NO_VALUE};
use crate::plain::Plain;

/// How long the parts of a run took.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Times {
    /// To compile; 0 if the code was cached.
    pub compile_ms: f64,
    /// Until the service had received everything.
    pub upload_ms: f64,
    /// All operations, copies included.
    pub run_ms: f64,
    /// The kernel alone.
    pub gpu_us: f64,
}

/// An argument of [`Client::run`]: memory of this process, or a value.
pub struct RunArgument<'a> {
    raw: ffi::gpurest_arg,
    memory: PhantomData<&'a mut [u8]>,
}

impl fmt::Debug for RunArgument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunArgument(kind {}, {} bytes)", self.raw.kind, self.raw.bytes)
    }
}

impl<'a> RunArgument<'a> {
    fn new(raw: ffi::gpurest_arg) -> Self {
        RunArgument { raw, memory: PhantomData }
    }

    /// Elements that are uploaded; the kernel gets a pointer to them.
    pub fn input<T: Plain>(elements: &'a [T]) -> Self {
        Self::new(ffi::gpurest_arg { bytes: size_of_val(elements), r#in: elements.as_ptr().cast(), ..raw_argument(ffi::GPUREST_ARG_IN, NO_VALUE) })
    }

    /// Elements that are downloaded; the kernel gets a pointer to as many that are undefined.
    pub fn output<T: Plain>(elements: &'a mut [T]) -> Self {
        Self::new(ffi::gpurest_arg {
            bytes: size_of_val(elements),
            out: elements.as_mut_ptr().cast(),
            ..raw_argument(ffi::GPUREST_ARG_OUT, NO_VALUE)
        })
    }

    /// Elements that are uploaded and downloaded.
    pub fn in_out<T: Plain>(elements: &'a mut [T]) -> Self {
        let (bytes, memory) = (size_of_val(elements), elements.as_mut_ptr().cast());
        Self::new(ffi::gpurest_arg { bytes, r#in: memory, out: memory, ..raw_argument(ffi::GPUREST_ARG_INOUT, NO_VALUE) })
    }

    /// A number, or [`Bytes`](crate::Bytes). A buffer is refused, because a run has no session.
    pub fn value(value: &'a dyn Argument) -> Self {
        Self::new(value.raw())
    }
}

impl Client {
    /// Compiles the source, uploads inputs, launches the kernel with `grid` blocks of `block` threads, downloads outputs and frees everything, in
    /// one request. Never sent twice. After a failure outputs may be partly written.
    pub fn run(&self, source: &str, kernel: &str, grid: impl Into<Dim3>, block: impl Into<Dim3>, arguments: &mut [RunArgument<'_>]) -> Result<Times> {
        let (source, kernel) = (c_string("the source", source)?, c_string("the kernel's name", kernel)?);
        let (grid, block) = (grid.into().raw("grid")?, block.into().raw("block")?);
        let raw: Vec<_> = arguments.iter().map(|argument| argument.raw).collect();
        let mut times = ffi::gpurest_times { compile_ms: 0.0, upload_ms: 0.0, run_ms: 0.0, gpu_us: 0.0 };
        // SAFETY: the client is open. Strings and `times` are valid; the arguments' memory is borrowed, for writing where it is an output.
        check(unsafe { ffi::gpurest_run(self.raw(), source.as_ptr(), kernel.as_ptr(), grid, block, raw.as_ptr(), raw.len(), &mut times) })?;
        Ok(Times { compile_ms: times.compile_ms, upload_ms: times.upload_ms, run_ms: times.run_ms, gpu_us: times.gpu_us })
    }
}
