//! Types whose values are plain bytes.

use std::alloc::{alloc_zeroed, Layout};
use std::mem::{size_of, size_of_val};
use std::slice;

use crate::error::{Error, ErrorKind, Result};

/// A type whose values are their bytes: the element of a [`Buffer`](crate::Buffer).
///
/// Integers, floats and arrays of them are plain. A `#[repr(C)]` struct of them without padding may be declared so:
///
/// ```
/// #[repr(C)]
/// #[derive(Clone, Copy)]
/// struct Particle {
///     place: [f32; 3],
///     mass: f32,
/// }
/// // SAFETY: 16 bytes of floats, without padding.
/// unsafe impl gpurest::Plain for Particle {}
/// ```
///
/// # Safety
/// Every value of all its bytes is a value of the type, including all zeros. It has no padding, no reference or pointer, and no interior
/// mutability.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($scalar:ty)*) => {$(
        // SAFETY: a number without padding; all bit patterns are values.
        unsafe impl Plain for $scalar {}
    )*};
}
plain!(i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64);

// SAFETY: as its elements, which have no padding between them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// The bytes of values.
pub(crate) fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain values have no padding, so all of these bytes are initialized. They live and stay unchanged as long as `values` is borrowed.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of values, to be overwritten with any others.
pub(crate) fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as bytes_of(); any bytes that are written are values of T.
    unsafe { slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Zeros, for bytes to be read into. Their number may be any: where memory does not suffice, that is an error.
pub(crate) fn zeros<T: Plain>(len: usize) -> Result<Vec<T>> {
    let none =
        || Error::local(ErrorKind::OutOfHostMemory, format!("{} elements of {} bytes do not fit into memory", len, size_of::<T>()), "read a part");
    let layout = Layout::array::<T>(len).map_err(|_| none())?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is that of a Vec's memory, and has a size. All zeros are a value of a plain type.
    unsafe {
        let memory: *mut T = alloc_zeroed(layout).cast();
        if memory.is_null() {
            return Err(none());
        }
        Ok(Vec::from_raw_parts(memory, len, len))
    }
}

/// The shortest pattern of 4, 2 or 1 bytes that the value is a repetition of, with its width in bytes; None if there is none.
pub(crate) fn pattern_of<T: Plain>(value: &T) -> Option<(u32, usize)> {
    let bytes = bytes_of(slice::from_ref(value));
    let width = [4, 2, 1].into_iter().find(|&width| size_of::<T>() % width == 0)?;
    let pattern = bytes.get(..width)?;
    if bytes.chunks(width).any(|piece| piece != pattern) {
        return None;
    }
    let mut word = [0; 4];
    word.iter_mut().zip(pattern).for_each(|(to, from)| *to = *from);
    Some((u32::from_le_bytes(word), width))
}
