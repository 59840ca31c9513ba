//! Batches: many operations in one request.

use std::ops::Range;
use std::os::raw::c_int;
use std::ptr;
use std::time::Duration;

use crate::buffer::{fill_of, place, place_of_range, Buffer};
use crate::error::{check, Result};
use crate::ffi;
use crate::launch::{timeout_ms, Argument, Dim3, Launched, Shape};
use crate::module::Kernel;
use crate::plain::{bytes_of, bytes_of_mut, Plain};
use crate::session::{Session, DEFAULT_STREAM};

/// Of gpurest_op_wait: the service bounds the batch itself.
const NO_LIMIT: c_int = -1;

/// Operations that are sent in one request. What they read and write is borrowed until [`submit`](Self::submit).
///
/// ```no_run
/// # fn example(session: &gpurest::Session, twice: gpurest::Kernel, x: gpurest::Buffer<f32>) -> gpurest::Result<()> {
/// let (input, mut output) = ([1.0; 256], [0.0; 256]);
/// let mut batch = session.batch();
/// batch.write(&x, 0, &input)?;
/// batch.launch(&twice, 1, 256, &[&x])?;
/// batch.read(&x, 0, &mut output)?;
/// batch.submit()?;
/// # Ok(()) }
/// ```
///
/// A failing operation ends the batch: operations before it took effect, those after it may or may not have. Where the batch was refused before
/// it was sent, none has.
#[must_use = "submit() sends it"]
pub struct Batch<'b> {
    session: &'b Session<'b>,
    operations: Vec<Operation<'b>>,
    launches: usize,
    timeout_ms: u64,
}

/// Operations are kept here and given to the library at once when the batch is submitted: between its begin and its submission all calls of the
/// thread on the session would be queued, and what they point to might be gone by then.
enum Operation<'b> {
    Write { to: ffi::gpurest_buffer, offset: usize, bytes: &'b [u8] },
    Read { from: ffi::gpurest_buffer, offset: usize, bytes: &'b mut [u8] },
    Copy { to: ffi::gpurest_buffer, to_offset: usize, from: ffi::gpurest_buffer, from_offset: usize, bytes: usize },
    Fill { to: ffi::gpurest_buffer, pattern: u32, width: usize, count: usize },
    Launch { kernel: Kernel<'b>, config: ffi::gpurest_launch_config, arguments: Vec<ffi::gpurest_arg>, result: usize },
}

impl<'b> Batch<'b> {
    pub(crate) fn new(session: &'b Session<'b>) -> Self {
        Batch { session, operations: Vec::new(), launches: 0, timeout_ms: 0 }
    }

    /// How long the whole batch may run at the service (60 s), to the millisecond.
    pub fn timeout(&mut self, time: Duration) -> Result<()> {
        self.timeout_ms = timeout_ms(time)?;
        Ok(())
    }

    /// The number of operations so far.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there is no operation so far.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// As [`Buffer::write`].
    pub fn write<T: Plain>(&mut self, to: &'b Buffer<'_, T>, first: usize, elements: &'b [T]) -> Result<()> {
        let offset = place::<T>(first, 0)?.offset;
        self.operations.push(Operation::Write { to: to.raw(), offset, bytes: bytes_of(elements) });
        Ok(())
    }

    /// As [`Buffer::read`]: `elements` are set by [`submit`](Self::submit).
    pub fn read<T: Plain>(&mut self, from: &'b Buffer<'_, T>, first: usize, elements: &'b mut [T]) -> Result<()> {
        let offset = place::<T>(first, 0)?.offset;
        self.operations.push(Operation::Read { from: from.raw(), offset, bytes: bytes_of_mut(elements) });
        Ok(())
    }

    /// As [`Buffer::copy_from`].
    pub fn copy<T: Plain>(&mut self, to: &'b Buffer<'_, T>, first: usize, from: &'b Buffer<'_, T>, range: Range<usize>) -> Result<()> {
        let (target, source) = (place::<T>(first, 0)?, place_of_range::<T>(&range)?);
        self.operations.push(Operation::Copy {
            to: to.raw(),
            to_offset: target.offset,
            from: from.raw(),
            from_offset: source.offset,
            bytes: source.bytes,
        });
        Ok(())
    }

    /// As [`Buffer::fill`].
    pub fn fill<T: Plain>(&mut self, buffer: &'b Buffer<'_, T>, value: T) -> Result<()> {
        let (pattern, width, count) = fill_of(value, buffer.len())?;
        self.operations.push(Operation::Fill { to: buffer.raw(), pattern, width, count });
        Ok(())
    }

    /// As [`Kernel::launch`].
    pub fn launch(&mut self, kernel: &Kernel<'b>, grid: impl Into<Dim3>, block: impl Into<Dim3>, arguments: &[&'b dyn Argument]) -> Result<()> {
        self.launch_with(kernel, &Shape::new(grid, block), arguments)
    }

    /// As [`Kernel::launch_with`]; [`submit`](Self::submit) returns the result.
    pub fn launch_with(&mut self, kernel: &Kernel<'b>, shape: &Shape<'_>, arguments: &[&'b dyn Argument]) -> Result<()> {
        self.operations.push(Operation::Launch {
            kernel: *kernel,
            config: shape.config()?,
            arguments: arguments.iter().map(|argument| argument.raw()).collect(),
            result: self.launches,
        });
        self.launches += 1;
        Ok(())
    }

    /// Sends the operations and waits until they are done. Returns the results of the launches, in their order.
    pub fn submit(self) -> Result<Vec<Launched>> {
        self.perform(|raw| {
            // SAFETY: the batch is begun and not yet consumed; NULL: it is done when this returns.
            check(unsafe { ffi::gpurest_batch_submit(raw, ptr::null_mut()) })
        })
    }

    /// As [`submit`](Self::submit), but the service stores the batch and its result: no connection is held while it runs, and a broken one loses
    /// nothing. Such batches of a session run in their order; other calls do not wait for them.
    pub fn submit_background(self) -> Result<Vec<Launched>> {
        self.perform(|raw| {
            let mut operation = ptr::null_mut();
            // SAFETY: the batch is begun and not yet consumed. The operation is done when it is freed, so nothing is written to later.
            unsafe {
                check(ffi::gpurest_batch_submit_background(raw, &mut operation))?;
                let done = check(ffi::gpurest_op_wait(operation, NO_LIMIT));
                ffi::gpurest_op_free(operation);
                done
            }
        })
    }

    /// `submit` consumes the batch and returns when it is done.
    fn perform(mut self, submit: impl FnOnce(*mut ffi::gpurest_batch) -> Result<()>) -> Result<Vec<Launched>> {
        let mut results: Vec<_> = (0..self.launches).map(|_| Launched::empty()).collect();
        let mut raw = ptr::null_mut();
        // SAFETY: the session is open. The batch is this thread's: a Batch does not change threads, and no other call comes before its end.
        unsafe {
            check(ffi::gpurest_batch_begin(self.session.raw(), &mut raw))?;
            if let Err(why) = self.queue(raw, results.as_mut_ptr()) {
                ffi::gpurest_batch_discard(raw);
                return Err(why);
            }
        }
        submit(raw)?;
        Ok(results)
    }

    /// Gives all operations to the library.
    ///
    /// # Safety
    /// `raw` is the batch that this thread has begun. `results` are as many as launches. They and `self` are not touched until the batch is
    /// submitted or discarded.
    unsafe fn queue(&mut self, raw: *mut ffi::gpurest_batch, results: *mut Launched) -> Result<()> {
        // SAFETY: the caller's promise.
        check(unsafe { ffi::gpurest_batch_timeout_ms(raw, self.timeout_ms) })?;
        for (index, operation) in self.operations.iter_mut().enumerate() {
            // SAFETY: the session is open. The library copies inputs; what it is to write to is borrowed as long as `self`, or is `results`.
            check(unsafe { operation.queue(self.session.raw(), results) }).map_err(|why| why.at(&format!("operation {} of the batch", index)))?;
        }
        Ok(())
    }
}

impl Operation<'_> {
    /// # Safety
    /// As Batch::queue().
    unsafe fn queue(&mut self, session: *mut ffi::gpurest_session, results: *mut Launched) -> ffi::gpurest_status {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Operation::Write { to, offset, bytes } => ffi::gpurest_write(session, *to, *offset, bytes.as_ptr().cast(), bytes.len()),
                Operation::Read { from, offset, bytes } => ffi::gpurest_read(session, *from, *offset, bytes.as_mut_ptr().cast(), bytes.len()),
                Operation::Copy { to, to_offset, from, from_offset, bytes } => {
                    ffi::gpurest_copy(session, *to, *to_offset, *from, *from_offset, *bytes, DEFAULT_STREAM)
                }
                Operation::Fill { to, pattern, width, count } => ffi::gpurest_fill(session, *to, 0, *pattern, *width as u32, *count, DEFAULT_STREAM),
                Operation::Launch { kernel, config, arguments, result } => ffi::gpurest_launch_with(
                    session,
                    kernel.raw(),
                    config,
                    arguments.as_ptr(),
                    arguments.len(),
                    results.add(*result).cast(), // transparent
                ),
            }
        }
    }
}
