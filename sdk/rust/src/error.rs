//! Errors: the C SDK's status as an enum, and what the service said.

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;

use crate::ffi;

/// The outcome of a call that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of failure it is: the status codes of the C SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Invalid argument: found here, or refused by the service with 400, 409 or 422.
    InvalidArgument,
    /// This process is out of memory.
    OutOfHostMemory,
    /// The service is unreachable, or the connection broke.
    Connect,
    /// No data for too long; or a kernel exceeded its deadline (then [`Error::is_fatal_for_session`]).
    Timeout,
    /// The peer does not support this protocol or version.
    Protocol,
    /// No token, an invalid one, or one without the required scope.
    Unauthorized,
    /// No such kernel, buffer, device, path.
    NotFound,
    /// At capacity now; the same call may succeed later.
    Busy,
    /// Device memory is exhausted.
    OutOfDeviceMemory,
    /// The source does not compile, or the image does not load: see [`Error::log`].
    Compile,
    /// A kernel faulted, or the device failed: see [`Error::cuda_result`].
    Cuda,
    /// The session faulted or ended and its contents are lost; [`Session::reset`](crate::Session::reset) may help.
    SessionLost,
    /// Not executed, because an earlier operation of the batch failed.
    Aborted,
    /// Cancelled.
    Cancelled,
    /// Not supported by the service or the library.
    Unsupported,
    /// The client was opened by another process: open one after `fork()`.
    Forked,
    /// A limit or quota of the service; `GET /v1/limits` lists them.
    Limit,
    /// Internal error of the service (5xx).
    Server,
    /// A status that this version of the crate does not know.
    Unknown(i32),
}

impl ErrorKind {
    fn of(status: ffi::gpurest_status) -> Self {
        match status {
            ffi::GPUREST_E_INVAL => Self::InvalidArgument,
            ffi::GPUREST_E_NOMEM_HOST => Self::OutOfHostMemory,
            ffi::GPUREST_E_CONNECT => Self::Connect,
            ffi::GPUREST_E_TIMEOUT => Self::Timeout,
            ffi::GPUREST_E_PROTO => Self::Protocol,
            ffi::GPUREST_E_AUTH => Self::Unauthorized,
            ffi::GPUREST_E_NOTFOUND => Self::NotFound,
            ffi::GPUREST_E_BUSY => Self::Busy,
            ffi::GPUREST_E_OOM_DEVICE => Self::OutOfDeviceMemory,
            ffi::GPUREST_E_COMPILE => Self::Compile,
            ffi::GPUREST_E_CUDA => Self::Cuda,
            ffi::GPUREST_E_SESSION_LOST => Self::SessionLost,
            ffi::GPUREST_E_ABORTED => Self::Aborted,
            ffi::GPUREST_E_CANCELLED => Self::Cancelled,
            ffi::GPUREST_E_UNSUPPORTED => Self::Unsupported,
            ffi::GPUREST_E_FORK => Self::Forked,
            ffi::GPUREST_E_LIMIT => Self::Limit,
            ffi::GPUREST_E_SERVER => Self::Server,
            other => Self::Unknown(other),
        }
    }
}

/// Why a call failed. Displays as the message and the hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Contents>); // boxed: a Result stays small

#[derive(Clone, Debug, PartialEq, Eq)]
struct Contents {
    kind: ErrorKind,
    message: String,
    hint: String,
    code: String,
    pointer: String,
    request_id: String,
    log: String,
    http_status: i32,
    cuda_result: i32,
    retryable: bool,
    fatal_for_session: bool,
}

impl Error {
    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong, in one or two sentences.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do next, or "".
    pub fn hint(&self) -> &str {
        &self.0.hint
    }

    /// The service's problem code, such as "argument_mismatch", or "" if the failure was found here.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// A JSON pointer into the request, such as "/args/2", or "".
    pub fn pointer(&self) -> &str {
        &self.0.pointer
    }

    /// The request's id in the service's log, or "".
    pub fn request_id(&self) -> &str {
        &self.0.request_id
    }

    /// The compiler's output, or "".
    pub fn log(&self) -> &str {
        &self.0.log
    }

    /// The status of the service's answer; None without an answer.
    pub fn http_status(&self) -> Option<i32> {
        Some(self.0.http_status).filter(|&status| status != 0)
    }

    /// The driver's CUresult, if it is the device that failed.
    pub fn cuda_result(&self) -> Option<i32> {
        Some(self.0.cuda_result).filter(|&result| result != 0)
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// Whether the session's contents are lost.
    pub fn is_fatal_for_session(&self) -> bool {
        self.0.fatal_for_session
    }

    /// A failure that is found here.
    pub(crate) fn local(kind: ErrorKind, message: impl Into<String>, hint: &str) -> Self {
        Error(Box::new(Contents {
            kind,
            message: message.into(),
            hint: hint.to_owned(),
            code: String::new(),
            pointer: String::new(),
            request_id: String::new(),
            log: String::new(),
            http_status: 0,
            cuda_result: 0,
            retryable: false,
            fatal_for_session: false,
        }))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::local(ErrorKind::InvalidArgument, message, "")
    }

    /// The same failure, with the place where it happened before its message.
    pub(crate) fn at(mut self, place: &str) -> Self {
        self.0.message = format!("{}: {}", place, self.0.message);
        self
    }

    /// This thread's last error.
    fn last(status: ffi::gpurest_status) -> Self {
        // SAFETY: never NULL, and valid until this thread's next failing call, which cannot come before the end of this function. Its strings
        // are never NULL.
        unsafe {
            let e = &*ffi::gpurest_last_error();
            Error(Box::new(Contents {
                kind: ErrorKind::of(status),
                message: text(e.message),
                hint: text(e.hint),
                code: text(e.code),
                pointer: text(e.pointer),
                request_id: text(e.request_id),
                log: text(e.log),
                http_status: e.http_status,
                cuda_result: e.cuda_result,
                retryable: e.retryable != 0,
                fatal_for_session: e.fatal_for_session != 0,
            }))
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if self.0.hint.is_empty() {
            return Ok(());
        }
        write!(f, "; {}", self.0.hint)
    }
}

impl std::error::Error for Error {}

/// The result of a call of the library, made just before on this thread.
pub(crate) fn check(status: ffi::gpurest_status) -> Result<()> {
    if status == ffi::GPUREST_OK {
        Ok(())
    } else {
        Err(Error::last(status))
    }
}

/// A copy of a C string; bytes that are not UTF-8 are replaced.
///
/// # Safety
/// `from` is NULL, which gives "", or a string that ends with NUL.
pub(crate) unsafe fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

/// A string for the library.
pub(crate) fn c_string(what: &str, from: &str) -> Result<CString> {
    CString::new(from).map_err(|why| Error::invalid(format!("{} has a NUL at byte {}", what, why.nul_position())))
}
