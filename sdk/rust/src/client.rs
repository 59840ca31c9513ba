//! Clients: connections to one service.

use std::fmt;
use std::mem::{size_of, MaybeUninit};
use std::os::raw::{c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::time::Duration;

use crate::error::{c_string, check, text, Error, Result};
use crate::ffi;
use crate::session::{Session, SessionOptions};

/// How to reach a service. Unset, each option has the C SDK's default.
///
/// ```no_run
/// # fn main() -> gpurest::Result<()> {
/// let client = gpurest::Options::new().url("unix:///run/gpurest.sock").max_retries(0).open()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use = "open() opens the client"]
pub struct Options {
    url: Option<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    connect_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    max_retries: Option<u32>,
    max_connections: Option<u32>,
    bulk_connections: Option<u32>,
    use_libcurl: bool,
}

/// Does not show the token.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("url", &self.url).finish_non_exhaustive()
    }
}

// As GPUREST_OPTIONS_INIT, which a test compares.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(5000);
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_millis(60000);
pub(crate) const MAX_RETRIES: u32 = 2;
pub(crate) const MAX_CONNECTIONS: u32 = 8;
pub(crate) const BULK_CONNECTIONS: u32 = 4;

fn milliseconds(what: &str, time: Duration) -> Result<c_int> {
    c_int::try_from(time.as_millis()).map_err(|_| Error::invalid(format!("{} of {} ms is too long", what, time.as_millis())))
}

fn number(what: &str, value: u32) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| Error::invalid(format!("{} of {} is too large", what, value)))
}

pub(crate) fn path_text<'p>(what: &str, path: &'p Path) -> Result<&'p str> {
    path.to_str().ok_or_else(|| Error::invalid(format!("{} {} is not UTF-8", what, path.display())))
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// `http://host[:port]`, `https://…` or `unix:///path`. Unset: `$GPUREST_URL`, else `http://127.0.0.1:8080`.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// The token. Unset: the file of [`token_file`](Self::token_file), else `$GPUREST_TOKEN`, else the file `$GPUREST_TOKEN_FILE`, else none.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// A file whose first line is the token.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token_file = Some(path.into());
        self
    }

    /// Certificates to trust with https, as PEM. Unset: `$GPUREST_CA_FILE`, else the system's.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// How long an attempt to connect may take (5 s), to the millisecond.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = Some(time);
        self
    }

    /// After so long without data in either direction (60 s, to the millisecond) the service is asked on another connection whether it lives. If it
    /// answers, the wait goes on; else the call fails with [`ErrorKind::Timeout`](crate::ErrorKind::Timeout). Opening, cancelling and closing fail without asking.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle_timeout = Some(time);
        self
    }

    /// How often a request is sent again after its first try (2); the C SDK's README says which are.
    pub fn max_retries(mut self, count: u32) -> Self {
        self.max_retries = Some(count);
        self
    }

    /// From 1 to 64 connections (8); further calls wait.
    pub fn max_connections(mut self, count: u32) -> Self {
        self.max_connections = Some(count);
        self
    }

    /// From 1 to 16 connections for a transfer of 64 MiB or more (4).
    pub fn bulk_connections(mut self, count: u32) -> Self {
        self.bulk_connections = Some(count);
        self
    }

    /// Whether libcurl is used for http and Unix sockets, too (no).
    pub fn use_libcurl(mut self, yes: bool) -> Self {
        self.use_libcurl = yes;
        self
    }

    /// Opens a client, and checks address, token and API version with one request.
    pub fn open(&self) -> Result<Client> {
        let file = |what, path: &Option<PathBuf>| path.as_deref().map(|path| c_string(what, path_text(what, path)?)).transpose();
        let url = self.url.as_deref().map(|url| c_string("the URL", url)).transpose()?;
        let token = self.token.as_deref().map(|token| c_string("the token", token)).transpose()?;
        let token_file = file("the token's file", &self.token_file)?;
        let ca_file = file("the certificates' file", &self.ca_file)?;
        let pointer = |value: &Option<std::ffi::CString>| value.as_ref().map_or(ptr::null(), |value| value.as_ptr());
        let options = ffi::gpurest_options {
            struct_size: size_of::<ffi::gpurest_options>(),
            url: pointer(&url),
            token: pointer(&token),
            token_file: pointer(&token_file),
            ca_file: pointer(&ca_file),
            connect_timeout_ms: milliseconds("a connect_timeout", self.connect_timeout.unwrap_or(CONNECT_TIMEOUT))?,
            idle_timeout_ms: milliseconds("an idle_timeout", self.idle_timeout.unwrap_or(IDLE_TIMEOUT))?,
            max_retries: number("max_retries", self.max_retries.unwrap_or(MAX_RETRIES))?,
            max_connections: number("max_connections", self.max_connections.unwrap_or(MAX_CONNECTIONS))?,
            bulk_connections: number("bulk_connections", self.bulk_connections.unwrap_or(BULK_CONNECTIONS))?,
            use_libcurl: c_int::from(self.use_libcurl),
            log: None,
            log_arg: ptr::null_mut(),
            log_level: ptr::null(),
            address: ptr::null(),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` and `options`, whose strings live until the end of this function, are valid.
        check(unsafe { ffi::gpurest_open_with(&mut raw, &options) })?;
        Ok(Client { raw: made(raw)? })
    }
}

/// An object that the library made.
pub(crate) fn made<T>(raw: *mut T) -> Result<NonNull<T>> {
    NonNull::new(raw).ok_or_else(|| Error::invalid("the library made no object"))
}

/// A client of one service: a pool of connections. Any number of threads may use it at once. Dropped, it is closed.
#[derive(Debug)]
pub struct Client {
    raw: NonNull<ffi::gpurest_client>,
}

// SAFETY: "any number of threads may use clients" (gpurest.h), and it is closed by its only owner.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Client {
    /// Opens the service that the environment names: [`Options`] without any.
    pub fn open() -> Result<Self> {
        Options::new().open()
    }

    /// Opens the service at this URL.
    pub fn connect(url: &str) -> Result<Self> {
        Options::new().url(url).open()
    }

    /// A new session on the service's choice of a device.
    pub fn session(&self) -> Result<Session<'_>> {
        self.session_with(&SessionOptions::new())
    }

    /// A new session, or an existing one that is joined by its name.
    pub fn session_with(&self, options: &SessionOptions) -> Result<Session<'_>> {
        Session::open(self, options)
    }

    /// A new session from a file of [`Session::save`]: all of it or none. Of the options, the name, the device and `keep` count; the others are the file's.
    /// Addresses in buffers are not translated.
    pub fn load_session(&self, path: impl AsRef<Path>, options: &SessionOptions) -> Result<Session<'_>> {
        Session::restore(self, path.as_ref(), options)
    }

    /// The service's devices.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let mut count = 0;
        // SAFETY: the client is open, and `count` is valid.
        check(unsafe { ffi::gpurest_device_count(self.raw(), &mut count) })?;
        (0..count).map(|index| Device::ask(self, index)).collect()
    }

    /// The service's answer to `GET /version` when the client was opened, as JSON.
    pub fn server_version(&self) -> String {
        // SAFETY: the client is open; the string lives as long as it does.
        unsafe { text(ffi::gpurest_server_version(self.raw())) }
    }

    /// Any request of the REST API: sends `json` and returns the answer's body. A status other than 2xx is an error. `path` begins with a slash.
    /// GET, PUT and DELETE are retried.
    pub fn request(&self, method: &str, path: &str, json: Option<&str>) -> Result<String> {
        let (method, path) = (c_string("the method", method)?, c_string("the path", path)?);
        let json = json.map(|json| c_string("the body", json)).transpose()?;
        let mut answer = ptr::null_mut();
        // SAFETY: the client is open, and the strings are valid until the end of this function.
        check(unsafe {
            ffi::gpurest_request(self.raw(), method.as_ptr(), path.as_ptr(), json.as_ref().map_or(ptr::null(), |json| json.as_ptr()), &mut answer)
        })?;
        // SAFETY: the library gave the string to us.
        Ok(unsafe { take_text(answer) })
    }

    pub(crate) fn raw(&self) -> *mut ffi::gpurest_client {
        self.raw.as_ptr()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: nobody else uses the client: sessions borrow it, and this crate has no callbacks.
        unsafe { ffi::gpurest_close(self.raw()) }
    }
}

/// A copy of a string of the library, which is freed.
///
/// # Safety
/// The caller owns `from`; it is a string that ends with NUL, or NULL.
pub(crate) unsafe fn take_text(from: *mut c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe {
        let copy = text(from);
        ffi::gpurest_mem_free(from.cast());
        copy
    }
}

/// What a device is, and how it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// "cuda:0", "cpu:0": for [`SessionOptions::device`].
    pub id: String,
    /// "cuda" or "cpu".
    pub backend: String,
    /// The product's name.
    pub name: String,
    /// The device's identity, or "".
    pub uuid: String,
    /// Such as "9.0".
    pub compute_capability: String,
    /// Such as "healthy".
    pub state: String,
    /// All memory.
    pub memory_total_bytes: u64,
    /// Memory that nobody uses now.
    pub memory_free_bytes: u64,
    /// The number of multiprocessors, or of processors.
    pub multiprocessors: i32,
    /// The clock rate.
    pub clock_khz: i32,
    /// Threads of a warp.
    pub warp_size: i32,
    /// The largest block.
    pub max_threads_per_block: i32,
    /// The largest shared memory of a block.
    pub max_shared_bytes_per_block: u64,
}

/// The text of a field, up to its NUL.
pub(crate) fn field(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().take_while(|&&byte| byte != 0).flat_map(|byte| byte.to_ne_bytes()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Device {
    fn ask(client: &Client, index: c_int) -> Result<Self> {
        // SAFETY: a C struct of numbers and characters, for which zeros are values.
        let mut info: ffi::gpurest_device_info_t = unsafe { MaybeUninit::zeroed().assume_init() };
        info.struct_size = size_of::<ffi::gpurest_device_info_t>();
        // SAFETY: the client is open, and `info` is as long as it says.
        check(unsafe { ffi::gpurest_device_info(client.raw(), index, &mut info) })?;
        Ok(Device {
            id: field(&info.id),
            backend: field(&info.backend),
            name: field(&info.name),
            uuid: field(&info.uuid),
            compute_capability: field(&info.compute_capability),
            state: field(&info.state),
            memory_total_bytes: info.memory_total_bytes,
            memory_free_bytes: info.memory_free_bytes,
            multiprocessors: info.multiprocessors,
            clock_khz: info.clock_khz,
            warp_size: info.warp_size,
            max_threads_per_block: info.max_threads_per_block,
            max_shared_bytes_per_block: info.max_shared_bytes_per_block,
        })
    }
}
