//! A client of a gpurest service: buffers, kernels and launches on a GPU that another process or another machine owns.
//!
//! It is a thin, safe layer over the C SDK, libgpurest, and has no other dependency. Objects borrow what they belong to: a [`Session`] its
//! [`Client`], a [`Buffer`] and a [`Module`] their session, a [`Kernel`] its module. Dropped, they are released at the service, too.
//!
//! ```
//! # fn main() -> gpurest::Result<()> {
//! let client = gpurest::Client::open()?; // $GPUREST_URL, or 127.0.0.1:8080
//! let session = client.session()?;
//! let module = session.compile("extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }")?;
//! let x = session.alloc_from(&[1.0f32, 2.0, 3.0])?;
//! module.kernel("twice")?.launch(1, 3, &[&x])?;
//! assert_eq!(x.to_vec()?, [2.0, 4.0, 6.0]);
//! # Ok(()) }
//! ```
//!
//! A buffer does not outlive its session:
//!
//! ```compile_fail,E0505
//! # fn example(client: gpurest::Client) -> gpurest::Result<()> {
//! let session = client.session()?;
//! let x = session.alloc::<f32>(16)?;
//! drop(session);
//! x.fill(0.0)?;
//! # Ok(()) }
//! ```
//!
//! What a batch reads is not to be used before it is submitted:
//!
//! ```compile_fail,E0502
//! # fn example(session: gpurest::Session, x: gpurest::Buffer<f32>) -> gpurest::Result<()> {
//! let mut y = [0.0; 16];
//! let mut batch = session.batch();
//! batch.read(&x, 0, &mut y)?;
//! assert_eq!(y[0], 0.0);
//! batch.submit()?;
//! # Ok(()) }
//! ```
//!
//! A buffer that a batch uses is not to be freed before:
//!
//! ```compile_fail,E0505
//! # fn example(session: gpurest::Session, x: gpurest::Buffer<f32>) -> gpurest::Result<()> {
//! let mut batch = session.batch();
//! batch.fill(&x, 0.0)?;
//! drop(x);
//! batch.submit()?;
//! # Ok(()) }
//! ```
//!
//! # Threads
//!
//! Clients, sessions, buffers, modules and kernels may be used by any number of threads at once. Calls of one thread on one session take effect
//! in their order. A [`Batch`] stays in its thread:
//!
//! ```compile_fail,E0277
//! fn sent_to_another_thread<T: Send>() {}
//! sent_to_another_thread::<gpurest::Batch<'static>>();
//! ```
//!
//! Calls wait for the service as long as it lives: see [`Options::connect_timeout`] and [`Options::idle_timeout`]. After `fork()` a child must open
//! a client of its own: calls on the parent's fail with [`ErrorKind::Forked`].

#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]
#![deny(clippy::undocumented_unsafe_blocks)]
// Nothing here panics, but for want of memory.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::unreachable))]

mod batch;
mod buffer;
mod cache;
mod client;
mod error;
mod ffi;
mod launch;
mod module;
mod plain;
mod run;
mod session;

#[cfg(test)]
#[path = "../../../tests/sdk/rust/layout.rs"]
mod layout;

pub use batch::Batch;
pub use buffer::{Address, Buffer};
pub use cache::{CacheInfo, Warm, WarmOptions, WarmProgress};
pub use client::{Client, Device, Options};
pub use error::{Error, ErrorKind, Result};
pub use launch::{Argument, Bytes, Dim3, Launched, Shape};
pub use module::{CompileOptions, Kernel, KernelInfo, Module};
pub use plain::Plain;
pub use run::{RunArgument, Times};
pub use session::{MemoryInfo, Session, SessionInfo, SessionOptions, Stream};

/// The version of the library at run time, such as "1.0.0".
pub fn library_version() -> String {
    // SAFETY: a static string.
    unsafe { error::text(ffi::gpurest_version()) }
}

/// The programs of README.md run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
