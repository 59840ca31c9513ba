//! The service's cache of compiled code, and compiling into it ahead of use.

use std::marker::PhantomData;
use std::mem::{size_of, MaybeUninit};
use std::os::raw::c_int;
use std::ptr::{self, NonNull};
use std::time::Duration;

use crate::client::{field, made, Client};
use crate::error::{c_string, check, Result};
use crate::ffi;
use crate::module::{c_strings, pointers, CompileOptions, RawCompileOptions};

/// What is in the cache of compiled code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheInfo {
    /// Sources whose code is kept.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// How often code was found since the service started.
    pub hits: u64,
    /// How often it was not found.
    pub misses: u64,
    /// Of the whole cache, over all callers; 0: nothing is kept.
    pub entries_max: u64,
    /// Of the whole cache, over all callers.
    pub bytes_max: u64,
    /// Whether callers share the code of their sources.
    pub shared: bool,
}

/// What to compile ahead of its use: each kernel for each of its dtypes, and each source, for each device.
#[derive(Clone, Debug, Default)]
pub struct WarmOptions {
    kernels: Vec<String>,
    dtypes: Vec<String>,
    devices: Vec<String>,
    sources: Vec<(String, CompileOptions)>,
}

impl WarmOptions {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A built-in kernel, by name.
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.kernels.push(name.into());
        self
    }

    /// An element type that all of the kernels have, such as "f32". Without any: all of each kernel.
    pub fn dtype(mut self, dtype: impl Into<String>) -> Self {
        self.dtypes.push(dtype.into());
        self
    }

    /// A source, with the options that [`Session::compile_with`](crate::Session::compile_with) will have.
    pub fn source(mut self, source: impl Into<String>, options: CompileOptions) -> Self {
        self.sources.push((source.into(), options));
        self
    }

    /// A device's id, or a backend. Without any: the device that a new session gets.
    pub fn device(mut self, device: impl Into<String>) -> Self {
        self.devices.push(device.into());
        self
    }
}

/// How compilations ahead stand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarmProgress {
    /// "running", "succeeded", "failed" (at least one has), "cancelled".
    pub state: String,
    /// All of them.
    pub total: u64,
    /// Compiled, or found in the cache.
    pub succeeded: u64,
    /// Not compiled.
    pub failed: u64,
}

/// Compilations under way at the service, of [`Client::warm`]. Dropped, they go on.
#[derive(Debug)]
pub struct Warm<'c> {
    raw: NonNull<ffi::gpurest_warm>,
    client: PhantomData<&'c Client>,
}

// SAFETY: "any number of threads may ask, and wait" (cache.h), and it is freed by its only owner.
unsafe impl Send for Warm<'_> {}
// SAFETY: as above.
unsafe impl Sync for Warm<'_> {}

impl Client {
    /// The cache of compiled code: what this caller's sources have there, or, with the scope admin, `all` callers and the built-in kernels.
    pub fn cache_info(&self, all: bool) -> Result<CacheInfo> {
        // SAFETY: a C struct of numbers, for which zeros are values.
        let mut info: ffi::gpurest_cache_info_t = unsafe { MaybeUninit::zeroed().assume_init() };
        info.struct_size = size_of::<ffi::gpurest_cache_info_t>();
        // SAFETY: the client is open, and `info` is as long as it says.
        check(unsafe { ffi::gpurest_cache_info(self.raw(), c_int::from(all), &mut info) })?;
        Ok(CacheInfo {
            entries: info.entries,
            bytes: info.bytes,
            hits: info.hits,
            misses: info.misses,
            entries_max: info.entries_max,
            bytes_max: info.bytes_max,
            shared: info.shared != 0,
        })
    }

    /// Removes code that was not used for that time, in whole seconds, and returns how many entries and bytes that was. Loaded modules stay. `all`
    /// as in [`cache_info`](Self::cache_info).
    pub fn cache_clear(&self, unused: Duration, all: bool) -> Result<(u64, u64)> {
        let (mut entries, mut bytes) = (0, 0);
        // SAFETY: the client is open, and both places are valid.
        check(unsafe { ffi::gpurest_cache_clear(self.raw(), unused.as_secs(), c_int::from(all), &mut entries, &mut bytes) })?;
        Ok((entries, bytes))
    }

    /// Has the service compile into its cache in the background, one after the other.
    pub fn warm(&self, options: &WarmOptions) -> Result<Warm<'_>> {
        let kernels = c_strings("a kernel's name", &options.kernels)?;
        let dtypes = c_strings("an element type", &options.dtypes)?;
        let devices = c_strings("a device", &options.devices)?;
        let texts = options.sources.iter().map(|(source, _)| c_string("a source", source)).collect::<Result<Vec<_>>>()?;
        let compile = options.sources.iter().map(|(_, options)| RawCompileOptions::new(options)).collect::<Result<Vec<_>>>()?;
        let compile_raw: Vec<_> = compile.iter().map(RawCompileOptions::raw).collect();
        let sources: Vec<_> =
            texts.iter().zip(&compile_raw).map(|(source, options)| ffi::gpurest_warm_source { source: source.as_ptr(), options }).collect();
        let (kernels_raw, dtypes_raw, devices_raw) = (pointers(&kernels), pointers(&dtypes), pointers(&devices));
        let options_raw = ffi::gpurest_warm_options {
            struct_size: size_of::<ffi::gpurest_warm_options>(),
            kernels: kernels_raw.as_ptr(),
            kernels_count: kernels_raw.len(),
            dtypes: dtypes_raw.as_ptr(),
            dtypes_count: dtypes_raw.len(),
            sources: sources.as_ptr(),
            sources_count: sources.len(),
            devices: devices_raw.as_ptr(),
            devices_count: devices_raw.len(),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the client is open; everything that is pointed to lives until the end of this function.
        check(unsafe { ffi::gpurest_warm_start(self.raw(), &mut raw, &options_raw) })?;
        Ok(Warm { raw: made(raw)?, client: PhantomData })
    }
}

impl Warm<'_> {
    /// How they stand now.
    pub fn progress(&self) -> Result<WarmProgress> {
        // SAFETY: a C struct of numbers and characters, for which zeros are values.
        let mut told: ffi::gpurest_warm_progress_t = unsafe { MaybeUninit::zeroed().assume_init() };
        told.struct_size = size_of::<ffi::gpurest_warm_progress_t>();
        // SAFETY: the object is there, and `told` is as long as it says.
        check(unsafe { ffi::gpurest_warm_progress(self.raw.as_ptr(), &mut told) })?;
        Ok(WarmProgress { state: field(&told.state), total: told.total, succeeded: told.succeeded, failed: told.failed })
    }

    /// Waits until all is compiled; else the error of the first that failed, [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), or
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) after that time, to the millisecond: then they go on. `None`: no limit.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        let ms = timeout.map_or(-1, |timeout| c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX));
        // SAFETY: the object is there.
        check(unsafe { ffi::gpurest_warm_wait(self.raw.as_ptr(), ms) })
    }

    /// Compiles nothing further; what is compiled stays. Fine if they had ended.
    pub fn cancel(&self) -> Result<()> {
        // SAFETY: the object is there.
        check(unsafe { ffi::gpurest_warm_cancel(self.raw.as_ptr()) })
    }
}

impl Drop for Warm<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody else uses it.
        unsafe { ffi::gpurest_warm_free(self.raw.as_ptr()) }
    }
}
