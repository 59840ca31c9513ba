//! Buffers: device memory.

use std::marker::PhantomData;
use std::mem::{size_of, size_of_val, ManuallyDrop};
use std::ops::Range;

use crate::error::{check, Error, ErrorKind, Result};
use crate::ffi;
use crate::plain::{bytes_of, bytes_of_mut, pattern_of, zeros, Plain};
use crate::session::{Session, DEFAULT_STREAM};

/// Elements in a session's device memory. Any number of threads may use it at once. Dropped, it is freed after kernels that use it end.
///
/// Positions and lengths are in elements.
#[derive(Debug)]
pub struct Buffer<'s, T: Plain> {
    raw: ffi::gpurest_buffer,
    session: &'s Session<'s>,
    len: usize,
    element: PhantomData<fn() -> T>, // it holds none here
}

/// Where elements are in a buffer, in bytes. The library checks it against the buffer's size.
pub(crate) struct Place {
    pub offset: usize,
    pub bytes: usize,
}

pub(crate) fn place<T: Plain>(first: usize, len: usize) -> Result<Place> {
    let scaled = |count: usize| {
        count
            .checked_mul(size_of::<T>())
            .ok_or_else(|| Error::invalid(format!("{} elements of {} bytes do not fit into the address space", count, size_of::<T>())))
    };
    Ok(Place { offset: scaled(first)?, bytes: scaled(len)? })
}

pub(crate) fn place_of_range<T: Plain>(range: &Range<usize>) -> Result<Place> {
    let len = range.end.checked_sub(range.start);
    place::<T>(range.start, len.ok_or_else(|| Error::invalid(format!("the range {:?} ends before it starts", range)))?)
}

/// A value as the pattern, width in bytes and number of patterns that fill a buffer of `len` elements.
pub(crate) fn fill_of<T: Plain>(value: T, len: usize) -> Result<(u32, usize, usize)> {
    let (pattern, width) = pattern_of(&value).ok_or_else(|| {
        Error::local(
            ErrorKind::Unsupported,
            format!("this value of {} bytes is no repetition of 1, 2 or 4 bytes, which a fill writes", size_of::<T>()),
            "write a slice, or fill with a kernel",
        )
    })?;
    Ok((pattern, width, place::<T>(0, len)?.bytes / width))
}

impl<'s, T: Plain> Buffer<'s, T> {
    fn made(raw: ffi::gpurest_buffer, session: &'s Session<'s>, len: usize) -> Self {
        Buffer { raw, session, len, element: PhantomData }
    }

    pub(crate) fn alloc(session: &'s Session<'s>, len: usize) -> Result<Self> {
        let (mut raw, bytes) = (ffi::gpurest_buffer { id: 0 }, place::<T>(0, len)?.bytes);
        // SAFETY: the session is open, and `raw` is valid.
        check(unsafe { ffi::gpurest_alloc(session.raw(), &mut raw, bytes) })?;
        Ok(Self::made(raw, session, len))
    }

    pub(crate) fn alloc_from(session: &'s Session<'s>, elements: &[T]) -> Result<Self> {
        let mut raw = ffi::gpurest_buffer { id: 0 };
        // SAFETY: the session is open, `raw` is valid, and the elements are as many bytes as is said.
        check(unsafe { ffi::gpurest_alloc_from(session.raw(), &mut raw, elements.as_ptr().cast(), size_of_val(elements)) })?;
        Ok(Self::made(raw, session, elements.len()))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a buffer has at least one element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The session that it belongs to.
    pub fn session(&self) -> &'s Session<'s> {
        self.session
    }

    /// Copies `elements` to the position `first` and further.
    pub fn write(&self, first: usize, elements: &[T]) -> Result<()> {
        let (at, bytes) = (place::<T>(first, 0)?, bytes_of(elements));
        // SAFETY: the session is open, and `bytes` is as long as is said. The library is done with it when it returns.
        check(unsafe { ffi::gpurest_write(self.session.raw(), self.raw, at.offset, bytes.as_ptr().cast(), bytes.len()) })
    }

    /// Fills `elements` from the position `first` and further, after earlier work. After a failure they may be partly written.
    pub fn read(&self, first: usize, elements: &mut [T]) -> Result<()> {
        let (at, bytes) = (place::<T>(first, 0)?, bytes_of_mut(elements));
        // SAFETY: the session is open, and `bytes` is as long as is said. Any bytes are values of T. The library is done with it when it returns.
        check(unsafe { ffi::gpurest_read(self.session.raw(), self.raw, at.offset, bytes.as_mut_ptr().cast(), bytes.len()) })
    }

    /// All elements.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut elements = zeros(self.len)?;
        self.read(0, &mut elements)?;
        Ok(elements)
    }

    /// Copies a range of another buffer, or a disjoint one of this buffer, to the position `first` and further, on the device.
    pub fn copy_from(&self, first: usize, from: &Buffer<'_, T>, range: Range<usize>) -> Result<()> {
        let (to, source) = (place::<T>(first, 0)?, place_of_range::<T>(&range)?);
        // SAFETY: the session is open; the library checks both handles and ranges.
        check(unsafe { ffi::gpurest_copy(self.session.raw(), self.raw, to.offset, from.raw, source.offset, source.bytes, DEFAULT_STREAM) })
    }

    /// Sets all elements to a value whose bytes repeat 1, 2 or 4 bytes: any value of at most 4 bytes, and zeros of any type.
    pub fn fill(&self, value: T) -> Result<()> {
        let (pattern, width, count) = fill_of(value, self.len)?;
        // SAFETY: the session is open.
        check(unsafe { ffi::gpurest_fill(self.session.raw(), self.raw, 0, pattern, width as u32, count, DEFAULT_STREAM) })
    }

    /// The address of an element, as a kernel's argument.
    pub fn at(&self, position: usize) -> Address<'_, T> {
        Address { buffer: self, position }
    }

    /// Frees it, and says whether that worked; dropping it does the same in silence.
    pub fn free(self) -> Result<()> {
        ManuallyDrop::new(self).release()
    }

    fn release(&self) -> Result<()> {
        // SAFETY: the session is open. The handle becomes stale; nobody has another one.
        check(unsafe { ffi::gpurest_free(self.session.raw(), self.raw) })
    }

    pub(crate) fn raw(&self) -> ffi::gpurest_buffer {
        self.raw
    }
}

impl<T: Plain> Drop for Buffer<'_, T> {
    fn drop(&mut self) {
        drop(self.release()); // of no use to anybody: the session's end frees it, too
    }
}

/// The address of an element of a buffer: a kernel's argument.
#[derive(Clone, Copy, Debug)]
pub struct Address<'b, T: Plain> {
    pub(crate) buffer: &'b Buffer<'b, T>,
    pub(crate) position: usize,
}
