//! Sessions: worker processes with their own GPU context.

use std::mem::{size_of, MaybeUninit};
use std::os::raw::c_int;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::time::Duration;

use crate::batch::Batch;
use crate::buffer::Buffer;
use crate::client::{field, made, path_text, Client};
use crate::error::{c_string, check, text, Error, Result};
use crate::ffi;
use crate::module::{CompileOptions, Module};
use crate::plain::Plain;

/// What a session is to be like. Unset, the service chooses.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    device: Option<String>,
    name: Option<String>,
    memory_limit: u64,
    memory_fraction: Option<String>,
    pool_bytes_max: u64,
    idle_timeout: Option<Duration>,
    lease: Option<Duration>,
    memcheck: bool,
    keep: bool,
    fault_domain: Option<String>,
    fault_domain_optional: bool,
}

impl SessionOptions {
    /// The service's choice of everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// The device's id, such as "cuda:0".
    pub fn device(mut self, id: impl Into<String>) -> Self {
        self.device = Some(id.into());
        self
    }

    /// `[a-z0-9][a-z0-9_-]{0,62}`: joins the session of this name, which must have the same options, or makes it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The most device memory that it may have; 0: as much as the service lets it.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Instead of a limit in bytes: a part of the device's memory, such as `"80%"`. Default: none.
    pub fn memory_fraction(mut self, part: impl Into<String>) -> Self {
        self.memory_fraction = Some(part.into());
        self
    }

    /// Bytes of freed memory that its worker keeps for later allocations, at most. Default: 0, all of it.
    pub fn pool_bytes_max(mut self, bytes: u64) -> Self {
        self.pool_bytes_max = bytes;
        self
    }

    /// The service ends the session after so long without a request (no lease), in whole seconds; a thread of the client sends some while this process
    /// lives.
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = Some(time);
        self
    }

    /// The service ends the session when nothing used it for so long (10 minutes), in whole seconds, or less if its operator says so.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle_timeout = Some(time);
        self
    }

    /// Whether out-of-bounds accesses are detected, on devices that can (no).
    pub fn memcheck(mut self, yes: bool) -> Self {
        self.memcheck = yes;
        self
    }

    /// Sessions of one domain run side by side on a GPU, and a fault of one is a fault of all. Default: none, it falls alone.
    pub fn fault_domain(mut self, name: impl Into<String>) -> Self {
        self.fault_domain = Some(name.into());
        self
    }

    /// Whether the sessions of its domain take turns where the service has no server for it (no: the session is refused).
    pub fn fault_domain_optional(mut self, yes: bool) -> Self {
        self.fault_domain_optional = yes;
        self
    }

    /// Whether the session goes on at the service when it is dropped here (no).
    pub fn keep(mut self, yes: bool) -> Self {
        self.keep = yes;
        self
    }
}

/// 0 without a time.
fn whole_seconds(what: &str, time: Option<Duration>) -> Result<u32> {
    time.map_or(Ok(0), |time| match u32::try_from(time.as_secs()) {
        Ok(seconds) if seconds > 0 => Ok(seconds),
        _ => Err(Error::invalid(format!("{what} of {} seconds is not from 1 to {}", time.as_secs(), u32::MAX))),
    })
}

/// Memory of a session, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// In buffers.
    pub allocated_bytes: u64,
    /// Kept for later allocations.
    pub cached_bytes: u64,
    /// Taken from the device.
    pub reserved_bytes: u64,
    /// What the device has left.
    pub free_bytes: u64,
    /// The most that was allocated at once.
    pub peak_bytes: u64,
    /// What the session may have; None: no limit.
    pub limit_bytes: Option<u64>,
    /// From 0 to 1; NaN: the device cannot tell.
    pub fragmentation: f64,
}

/// What the service says of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// As [`Session::id`].
    pub id: String,
    /// Such as "cuda:0".
    pub device: String,
    /// "starting", "ready", "faulted", "closing", "hibernated".
    pub state: String,
}

/// A session: a process at the service with a device context of its own, which holds buffers and modules. Any number of threads may use it at
/// once; calls of one thread take effect in their order.
///
/// Dropped, it ends at the service with its running kernels and all contents, unless [`SessionOptions::keep`].
#[derive(Debug)]
pub struct Session<'c> {
    raw: NonNull<ffi::gpurest_session>,
    client: &'c Client,
}

// SAFETY: "any number of threads may use … sessions" (gpurest.h), and it is closed by its only owner.
unsafe impl Send for Session<'_> {}
// SAFETY: as above.
unsafe impl Sync for Session<'_> {}

impl<'c> Session<'c> {
    pub(crate) fn open(client: &'c Client, options: &SessionOptions) -> Result<Self> {
        // SAFETY: the client is open, and the pointers that it is called with are valid.
        Self::open_by(client, options, |out, options| unsafe { ffi::gpurest_session_open(out, client.raw(), options) })
    }

    pub(crate) fn restore(client: &'c Client, path: &Path, options: &SessionOptions) -> Result<Self> {
        let path = c_string("the file", path_text("the file", path)?)?;
        // SAFETY: the client is open, and the pointers that it is called with are valid.
        Self::open_by(client, options, |out, options| unsafe { ffi::gpurest_session_load(out, client.raw(), path.as_ptr(), options) })
    }

    fn open_by(
        client: &'c Client,
        options: &SessionOptions,
        open: impl FnOnce(&mut *mut ffi::gpurest_session, &ffi::gpurest_session_options) -> ffi::gpurest_status,
    ) -> Result<Self> {
        let device = options.device.as_deref().map(|id| c_string("the device", id)).transpose()?;
        let name = options.name.as_deref().map(|name| c_string("the name", name)).transpose()?;
        let fraction = options.memory_fraction.as_deref().map(|text| c_string("the memory fraction", text)).transpose()?;
        let seconds = whole_seconds("an idle_timeout", options.idle_timeout)?;
        let lease = whole_seconds("a lease", options.lease)?;
        let domain = options.fault_domain.as_deref().map(|name| c_string("the fault domain", name)).transpose()?;
        let options = ffi::gpurest_session_options {
            struct_size: size_of::<ffi::gpurest_session_options>(),
            device: device.as_ref().map_or(ptr::null(), |id| id.as_ptr()),
            name: name.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
            memory_limit: options.memory_limit,
            idle_timeout_s: seconds,
            memcheck: c_int::from(options.memcheck),
            keep: c_int::from(options.keep),
            memory_fraction: fraction.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            pool_bytes_max: options.pool_bytes_max,
            lease_s: lease,
            fault_domain: domain.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
            fault_domain_optional: c_int::from(options.fault_domain_optional),
        };
        let mut raw = ptr::null_mut();
        check(open(&mut raw, &options))?; // the options' strings live until the end of this function
        Ok(Session { raw: made(raw)?, client })
    }

    /// The client that it was opened with.
    pub fn client(&self) -> &'c Client {
        self.client
    }

    /// Its id at the service.
    pub fn id(&self) -> String {
        // SAFETY: the session is open; the string lives as long as it does.
        unsafe { text(ffi::gpurest_session_id(self.raw())) }
    }

    /// Starts a new worker, for example after a fault. Buffers, modules and streams become void: calls with them fail.
    pub fn reset(&self) -> Result<()> {
        // SAFETY: the session is open.
        check(unsafe { ffi::gpurest_session_reset(self.raw()) })
    }

    /// Writes a snapshot of the session to a file, which [`Client::load_session`] makes a session from: buffers, textures, modules as source, their
    /// variables, programs, labels and limits. Waits for work under way, or fails as busy. A file of that name is replaced only by a whole one. Whoever can
    /// read the file can read the session's memory.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_string("the file", path_text("the file", path.as_ref())?)?;
        // SAFETY: the session is open, and the string lives until the call returns.
        check(unsafe { ffi::gpurest_session_save(self.raw(), path.as_ptr()) })
    }

    /// How it is, which wakes nothing.
    pub fn info(&self) -> Result<SessionInfo> {
        self.info_by(ffi::gpurest_session_info)
    }

    /// Takes its large buffers off the device, until it is used again, which wakes it; addresses, modules and streams stay. Fails as busy if work is
    /// under way after 10 seconds, and as unsupported if the service keeps no buffers elsewhere.
    pub fn hibernate(&self) -> Result<SessionInfo> {
        self.info_by(ffi::gpurest_session_hibernate)
    }

    /// Has the buffers of a hibernated session on the device again, as its next use would.
    pub fn wake(&self) -> Result<SessionInfo> {
        self.info_by(ffi::gpurest_session_wake)
    }

    fn info_by(
        &self,
        ask: unsafe extern "C" fn(*mut ffi::gpurest_session, *mut ffi::gpurest_session_info_t) -> ffi::gpurest_status,
    ) -> Result<SessionInfo> {
        // SAFETY: a C struct of numbers and characters, for which zeros are values.
        let mut info: ffi::gpurest_session_info_t = unsafe { MaybeUninit::zeroed().assume_init() };
        info.struct_size = size_of::<ffi::gpurest_session_info_t>();
        // SAFETY: the session is open, and `info` is as long as it says.
        check(unsafe { ask(self.raw(), &mut info) })?;
        Ok(SessionInfo { id: field(&info.id), device: field(&info.device), state: field(&info.state) })
    }

    /// Waits for all work of the session.
    pub fn sync(&self) -> Result<()> {
        // SAFETY: the session is open.
        check(unsafe { ffi::gpurest_sync(self.raw()) })
    }

    /// What memory it has.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.memory_by(ffi::gpurest_memory_info)
    }

    /// Gives memory that is cached for later allocations back to the device, and returns what it has then.
    pub fn memory_trim(&self) -> Result<MemoryInfo> {
        self.memory_by(ffi::gpurest_memory_trim)
    }

    /// `peak_bytes` counts from what is allocated now; returns what the session has then.
    pub fn memory_reset_peak(&self) -> Result<MemoryInfo> {
        self.memory_by(ffi::gpurest_memory_reset_peak)
    }

    fn memory_by(
        &self,
        ask: unsafe extern "C" fn(*mut ffi::gpurest_session, *mut ffi::gpurest_memory_info_t) -> ffi::gpurest_status,
    ) -> Result<MemoryInfo> {
        // SAFETY: a C struct of numbers, for which zeros are values.
        let mut info: ffi::gpurest_memory_info_t = unsafe { MaybeUninit::zeroed().assume_init() };
        info.struct_size = size_of::<ffi::gpurest_memory_info_t>();
        // SAFETY: the session is open, and `info` is as long as it says.
        check(unsafe { ask(self.raw(), &mut info) })?;
        Ok(MemoryInfo {
            allocated_bytes: info.allocated_bytes,
            cached_bytes: info.cached_bytes,
            reserved_bytes: info.reserved_bytes,
            free_bytes: info.free_bytes,
            peak_bytes: info.peak_bytes,
            limit_bytes: Some(info.limit_bytes).filter(|&limit| limit != u64::MAX),
            fragmentation: info.fragmentation,
        })
    }

    /// A buffer of `len` elements with undefined contents; `len` > 0.
    pub fn alloc<T: Plain>(&self, len: usize) -> Result<Buffer<'_, T>> {
        Buffer::alloc(self, len)
    }

    /// A buffer with these elements, of which there must be any.
    pub fn alloc_from<T: Plain>(&self, elements: &[T]) -> Result<Buffer<'_, T>> {
        Buffer::alloc_from(self, elements)
    }

    /// Compiles CUDA C++. A failure of kind [`Compile`](crate::ErrorKind::Compile) has the compiler's output as [`Error::log`].
    pub fn compile(&self, source: &str) -> Result<Module<'_>> {
        self.compile_with(source, &CompileOptions::new())
    }

    /// Compiles CUDA C++, or GLSL, with options, headers or template instantiations.
    pub fn compile_with(&self, source: &str, options: &CompileOptions) -> Result<Module<'_>> {
        Module::compile(self, source, options)
    }

    /// Loads PTX, SPIR-V, a cubin or a fatbin; the service may refuse the latter two.
    pub fn load(&self, image: &[u8]) -> Result<Module<'_>> {
        Module::load(self, image, &[])
    }

    /// Loads SPIR-V with options: "--specialize=NUMBER=VALUE" sets a specialisation constant.
    pub fn load_with(&self, image: &[u8], options: &[String]) -> Result<Module<'_>> {
        Module::load(self, image, options)
    }

    /// A module with one built-in kernel for elements of `dtype`, such as "f32"; `gpurest builtins` lists them. `engine` is "builtin", "vendor"
    /// (the library of the GPU's vendor) or None, the service's choice. Its launches ignore grid, block and shared memory.
    pub fn builtin(&self, name: &str, dtype: &str, engine: Option<&str>) -> Result<Module<'_>> {
        Module::builtin(self, name, dtype, engine)
    }

    /// A stream: work of different streams may run in parallel. At most 64 per session.
    pub fn stream(&self) -> Result<Stream<'_>> {
        let mut raw = DEFAULT_STREAM;
        // SAFETY: the session is open, and `raw` is valid.
        check(unsafe { ffi::gpurest_stream_create(self.raw(), &mut raw) })?;
        Ok(Stream { raw, session: self })
    }

    /// An empty batch.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    pub(crate) fn raw(&self) -> *mut ffi::gpurest_session {
        self.raw.as_ptr()
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody else uses the session: buffers, modules, streams and batches borrow it.
        unsafe { ffi::gpurest_session_close(self.raw()) }
    }
}

pub(crate) const DEFAULT_STREAM: ffi::gpurest_stream = ffi::gpurest_stream { id: 0 };

/// A stream of a session. It lives at the service until the session ends.
#[derive(Clone, Copy)]
pub struct Stream<'s> {
    raw: ffi::gpurest_stream,
    session: &'s Session<'s>,
}

impl Stream<'_> {
    /// Waits for the work of this stream.
    pub fn sync(&self) -> Result<()> {
        // SAFETY: the session is open.
        check(unsafe { ffi::gpurest_stream_sync(self.session.raw(), self.raw) })
    }

    pub(crate) fn raw(&self) -> ffi::gpurest_stream {
        self.raw
    }
}
