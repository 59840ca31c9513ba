//! What a launch is made of: shape, arguments, result.

use std::fmt;
use std::mem::size_of;
use std::ptr;
use std::time::Duration;

use crate::buffer::{Address, Buffer};
use crate::error::{text, Error, Result};
use crate::ffi;
use crate::plain::{bytes_of, Plain};
use crate::session::{Stream, DEFAULT_STREAM};

/// The size of a grid, in blocks, or of a block, in threads: `x`, `(x, y)` or `(x, y, z)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    /// Along x.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Dim3 { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Dim3 { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Dim3 { x, y, z }
    }
}

impl Dim3 {
    /// The library takes 0 for 1, or for its own choice; here it is an error.
    pub(crate) fn raw(self, what: &str) -> Result<ffi::gpurest_dim3> {
        let Dim3 { x, y, z } = self;
        if x == 0 || y == 0 || z == 0 {
            return Err(Error::invalid(format!("a {} of {} x {} x {} is empty", what, x, y, z)));
        }
        Ok(ffi::gpurest_dim3 { x, y, z })
    }
}

#[derive(Clone, Copy)]
enum Extent {
    GridAndBlock(Dim3, Dim3),
    Threads(u64),
}

/// How a kernel is launched.
#[derive(Clone, Copy)]
#[must_use]
pub struct Shape<'s> {
    extent: Extent,
    shared_bytes: u32,
    stream: Option<Stream<'s>>,
    timeout: Option<Duration>,
    cooperative: bool,
}

impl<'s> Shape<'s> {
    /// `grid` blocks of `block` threads.
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        Self::of(Extent::GridAndBlock(grid.into(), block.into()))
    }

    /// At least so many threads along x, in blocks of the service's choice.
    pub fn threads(count: u64) -> Self {
        Self::of(Extent::Threads(count))
    }

    fn of(extent: Extent) -> Self {
        Shape { extent, shared_bytes: 0, stream: None, timeout: None, cooperative: false }
    }

    /// Dynamic shared memory of a block (0).
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// The stream (the default one).
    pub fn stream(mut self, stream: Stream<'s>) -> Self {
        self.stream = Some(stream);
        self
    }

    /// How long the kernel may run (60 s), to the millisecond: beyond that it is stopped, and the session is lost. Not in a batch, which has
    /// [a timeout of its own](crate::Batch::timeout).
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// All blocks run at once and may wait for each other, as `grid.sync()` of cooperative groups does. Refused where the device has no room for
    /// all of them.
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    pub(crate) fn config(&self) -> Result<ffi::gpurest_launch_config> {
        let one = ffi::gpurest_dim3 { x: 1, y: 1, z: 1 };
        let (grid, block, threads) = match self.extent {
            Extent::GridAndBlock(grid, block) => (grid.raw("grid")?, block.raw("block")?, 0),
            Extent::Threads(0) => return Err(Error::invalid("a launch of 0 threads is empty")),
            Extent::Threads(count) => (one, one, count),
        };
        Ok(ffi::gpurest_launch_config {
            struct_size: size_of::<ffi::gpurest_launch_config>(),
            grid,
            block,
            threads,
            shared_bytes: self.shared_bytes,
            stream: self.stream.map_or(DEFAULT_STREAM, |stream| stream.raw()),
            timeout_ms: self.timeout.map_or(Ok(0), timeout_ms)?,
            cooperative: self.cooperative.into(),
        })
    }
}

/// A deadline at the service. 0 would be its default.
pub(crate) fn timeout_ms(time: Duration) -> Result<u64> {
    match u64::try_from(time.as_millis()) {
        Ok(ms) if ms > 0 => Ok(ms),
        _ => Err(Error::invalid(format!("a timeout of {} ms is not from 1 to {}", time.as_millis(), u64::MAX))),
    }
}

/// A kernel's argument: a number, a [`Buffer`], an [`Address`] in one, or [`Bytes`].
///
/// ```no_run
/// # fn example(kernel: gpurest::Kernel, x: gpurest::Buffer<f32>) -> gpurest::Result<()> {
/// kernel.launch(4, 256, &[&2.5f32, &x, &x.at(512), &1024i32])?;
/// # Ok(()) }
/// ```
pub trait Argument: private::ToRaw {}

pub(crate) mod private {
    /// Nobody else can implement it, or name what it makes.
    pub trait ToRaw {
        /// Its pointers are valid as long as `self` is borrowed.
        fn raw(&self) -> crate::ffi::gpurest_arg;
    }
}

pub(crate) fn raw_argument(kind: ffi::gpurest_arg_kind, value: ffi::gpurest_arg_value) -> ffi::gpurest_arg {
    ffi::gpurest_arg { kind, bytes: 0, offset: 0, r#in: ptr::null(), out: ptr::null_mut(), value }
}

pub(crate) const NO_VALUE: ffi::gpurest_arg_value = ffi::gpurest_arg_value { u: 0 };

macro_rules! number {
    ($($number:ty, $kind:ident, $member:ident;)*) => {$(
        impl Argument for $number {}
        impl private::ToRaw for $number {
            fn raw(&self) -> ffi::gpurest_arg {
                raw_argument(ffi::$kind, ffi::gpurest_arg_value { $member: (*self).into() })
            }
        }
    )*};
}
number! {
    i8, GPUREST_ARG_I8, i;
    i16, GPUREST_ARG_I16, i;
    i32, GPUREST_ARG_I32, i;
    i64, GPUREST_ARG_I64, i;
    u8, GPUREST_ARG_U8, u;
    u16, GPUREST_ARG_U16, u;
    u32, GPUREST_ARG_U32, u;
    u64, GPUREST_ARG_U64, u;
    f32, GPUREST_ARG_F32, f32;
    f64, GPUREST_ARG_F64, f64;
}

impl<T: Plain> Argument for Buffer<'_, T> {}
impl<T: Plain> private::ToRaw for Buffer<'_, T> {
    fn raw(&self) -> ffi::gpurest_arg {
        raw_argument(ffi::GPUREST_ARG_BUFFER, ffi::gpurest_arg_value { buffer: Buffer::raw(self) })
    }
}

impl<T: Plain> Argument for Address<'_, T> {}
impl<T: Plain> private::ToRaw for Address<'_, T> {
    fn raw(&self) -> ffi::gpurest_arg {
        // Beyond any buffer where the product is too large: the library refuses it.
        let offset = self.position.saturating_mul(size_of::<T>());
        ffi::gpurest_arg { offset, ..private::ToRaw::raw(self.buffer) }
    }
}

/// The bytes of a parameter of any type, such as a struct.
#[derive(Clone, Copy)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// The bytes of a value.
    pub fn of<T: Plain>(value: &'a T) -> Self {
        Bytes(bytes_of(std::slice::from_ref(value)))
    }
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.0.len())
    }
}

impl Argument for Bytes<'_> {}
impl private::ToRaw for Bytes<'_> {
    fn raw(&self) -> ffi::gpurest_arg {
        ffi::gpurest_arg { r#in: self.0.as_ptr().cast(), bytes: self.0.len(), ..raw_argument(ffi::GPUREST_ARG_BYTES, NO_VALUE) }
    }
}

/// What a launch gave, besides what is in buffers.
#[repr(transparent)] // a Vec of them is an array of results for the library
pub struct Launched(ffi::gpurest_launch_result);

// SAFETY: it owns its string, which never changes.
unsafe impl Send for Launched {}
// SAFETY: as above.
unsafe impl Sync for Launched {}

impl Launched {
    pub(crate) fn empty() -> Self {
        Launched(ffi::gpurest_launch_result {
            struct_size: size_of::<ffi::gpurest_launch_result>(),
            gpu_us: 0.0,
            output: ptr::null_mut(),
            output_truncated: 0,
        })
    }

    pub(crate) fn raw_mut(&mut self) -> *mut ffi::gpurest_launch_result {
        &mut self.0
    }

    /// How long the kernel took on the device, in microseconds.
    pub fn gpu_us(&self) -> f64 {
        self.0.gpu_us
    }

    /// What the kernel printed with printf.
    pub fn output(&self) -> String {
        // SAFETY: NULL, or a string that this object owns.
        unsafe { text(self.0.output) }
    }

    /// Whether it printed more than the service keeps.
    pub fn output_truncated(&self) -> bool {
        self.0.output_truncated != 0
    }
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched").field("gpu_us", &self.gpu_us()).field("output", &self.output()).finish()
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // SAFETY: NULL, or a string that the library gave to us.
        unsafe { ffi::gpurest_mem_free(self.0.output.cast()) }
    }
}
