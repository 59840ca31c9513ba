//! The C SDK's declarations that this crate uses, with the C names: the only file with `extern "C"`. The tests compare every struct, constant
//! and function with sdk/c/include/gpurest (tests/sdk/rust/layout.rs and test_declarations.py).

#![allow(non_camel_case_types)]
#![allow(missing_docs)] // the headers have them

use std::os::raw::{c_char, c_double, c_float, c_int, c_uint, c_void};

/// Not a Rust enum: a later library may return other values.
pub type gpurest_status = c_int;
pub const GPUREST_OK: gpurest_status = 0;
pub const GPUREST_E_INVAL: gpurest_status = -1;
pub const GPUREST_E_NOMEM_HOST: gpurest_status = -2;
pub const GPUREST_E_CONNECT: gpurest_status = -3;
pub const GPUREST_E_TIMEOUT: gpurest_status = -4;
pub const GPUREST_E_PROTO: gpurest_status = -5;
pub const GPUREST_E_AUTH: gpurest_status = -6;
pub const GPUREST_E_NOTFOUND: gpurest_status = -7;
pub const GPUREST_E_BUSY: gpurest_status = -8;
pub const GPUREST_E_OOM_DEVICE: gpurest_status = -9;
pub const GPUREST_E_COMPILE: gpurest_status = -10;
pub const GPUREST_E_CUDA: gpurest_status = -11;
pub const GPUREST_E_SESSION_LOST: gpurest_status = -12;
pub const GPUREST_E_ABORTED: gpurest_status = -13;
pub const GPUREST_E_CANCELLED: gpurest_status = -14;
pub const GPUREST_E_UNSUPPORTED: gpurest_status = -15;
pub const GPUREST_E_FORK: gpurest_status = -16;
pub const GPUREST_E_LIMIT: gpurest_status = -17;
pub const GPUREST_E_SERVER: gpurest_status = -18;

pub type gpurest_arg_kind = c_uint;
pub const GPUREST_ARG_I8: gpurest_arg_kind = 1;
pub const GPUREST_ARG_I16: gpurest_arg_kind = 2;
pub const GPUREST_ARG_I32: gpurest_arg_kind = 3;
pub const GPUREST_ARG_I64: gpurest_arg_kind = 4;
pub const GPUREST_ARG_U8: gpurest_arg_kind = 5;
pub const GPUREST_ARG_U16: gpurest_arg_kind = 6;
pub const GPUREST_ARG_U32: gpurest_arg_kind = 7;
pub const GPUREST_ARG_U64: gpurest_arg_kind = 8;
pub const GPUREST_ARG_F32: gpurest_arg_kind = 9;
pub const GPUREST_ARG_F64: gpurest_arg_kind = 10;
pub const GPUREST_ARG_BYTES: gpurest_arg_kind = 11;
pub const GPUREST_ARG_BUFFER: gpurest_arg_kind = 12;
pub const GPUREST_ARG_IN: gpurest_arg_kind = 13;
pub const GPUREST_ARG_OUT: gpurest_arg_kind = 14;
pub const GPUREST_ARG_INOUT: gpurest_arg_kind = 15;
#[allow(dead_code)] // textures have no safe wrapper yet
pub const GPUREST_ARG_TEXTURE: gpurest_arg_kind = 16;
#[allow(dead_code)] // textures have no safe wrapper yet
pub const GPUREST_ARG_SURFACE: gpurest_arg_kind = 17;

/// An object of the library, which only pointers name.
macro_rules! opaque {
    ($($name:ident)*) => {$(
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}
opaque!(gpurest_client gpurest_session gpurest_module gpurest_kernel gpurest_batch gpurest_op gpurest_warm);

#[repr(C)]
pub struct gpurest_error {
    pub status: gpurest_status,
    pub http_status: c_int,
    pub cuda_result: c_int,
    pub retryable: c_int,
    pub fatal_for_session: c_int,
    pub code: *const c_char,
    pub message: *const c_char,
    pub hint: *const c_char,
    pub pointer: *const c_char,
    pub request_id: *const c_char,
    pub log: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpurest_buffer {
    pub id: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpurest_stream {
    pub id: u64,
}

#[repr(C)]
pub struct gpurest_options {
    pub struct_size: usize,
    pub url: *const c_char,
    pub token: *const c_char,
    pub token_file: *const c_char,
    pub ca_file: *const c_char,
    pub connect_timeout_ms: c_int,
    pub idle_timeout_ms: c_int,
    pub max_retries: c_int,
    pub max_connections: c_int,
    pub bulk_connections: c_int,
    pub use_libcurl: c_int,
    pub log: Option<unsafe extern "C" fn(arg: *mut c_void, level: c_int, message: *const c_char)>,
    pub log_arg: *mut c_void,
    pub log_level: *const c_char,
    pub address: *const c_char,
}

#[repr(C)]
pub struct gpurest_device_info_t {
    pub struct_size: usize,
    pub id: [c_char; 32],
    pub backend: [c_char; 16],
    pub name: [c_char; 128],
    pub uuid: [c_char; 64],
    pub compute_capability: [c_char; 16],
    pub state: [c_char; 16],
    pub memory_total_bytes: u64,
    pub memory_free_bytes: u64,
    pub multiprocessors: c_int,
    pub clock_khz: c_int,
    pub warp_size: c_int,
    pub max_threads_per_block: c_int,
    pub max_shared_bytes_per_block: u64,
}

#[repr(C)]
pub struct gpurest_session_options {
    pub struct_size: usize,
    pub device: *const c_char,
    pub name: *const c_char,
    pub memory_limit: u64,
    pub idle_timeout_s: u32,
    pub memcheck: c_int,
    pub keep: c_int,
    pub memory_fraction: *const c_char,
    pub pool_bytes_max: u64,
    pub lease_s: u32,
    pub fault_domain: *const c_char,
    pub fault_domain_optional: c_int,
}

#[repr(C)]
pub struct gpurest_memory_info_t {
    pub struct_size: usize,
    pub allocated_bytes: u64,
    pub cached_bytes: u64,
    pub reserved_bytes: u64,
    pub free_bytes: u64,
    pub peak_bytes: u64,
    pub limit_bytes: u64,
    pub fragmentation: c_double,
}

#[repr(C)]
pub struct gpurest_session_info_t {
    pub struct_size: usize,
    pub id: [c_char; 128],
    pub device: [c_char; 32],
    pub state: [c_char; 16],
}

#[repr(C)]
pub struct gpurest_cache_info_t {
    pub struct_size: usize,
    pub entries: u64,
    pub bytes: u64,
    pub hits: u64,
    pub misses: u64,
    pub entries_max: u64,
    pub bytes_max: u64,
    pub shared: c_int,
}

#[repr(C)]
pub struct gpurest_warm_source {
    pub source: *const c_char,
    pub options: *const gpurest_compile_options,
}

#[repr(C)]
pub struct gpurest_warm_options {
    pub struct_size: usize,
    pub kernels: *const *const c_char,
    pub kernels_count: usize,
    pub dtypes: *const *const c_char,
    pub dtypes_count: usize,
    pub sources: *const gpurest_warm_source,
    pub sources_count: usize,
    pub devices: *const *const c_char,
    pub devices_count: usize,
}

#[repr(C)]
pub struct gpurest_warm_progress_t {
    pub struct_size: usize,
    pub state: [c_char; 16],
    pub total: u64,
    pub succeeded: u64,
    pub failed: u64,
}

#[repr(C)]
pub struct gpurest_header {
    pub name: *const c_char,
    pub text: *const c_char,
}

#[repr(C)]
pub struct gpurest_compile_options {
    pub struct_size: usize,
    pub options: *const *const c_char,
    pub options_count: usize,
    pub headers: *const gpurest_header,
    pub headers_count: usize,
    pub name_expressions: *const *const c_char,
    pub name_expressions_count: usize,
    pub language: *const c_char,
}

#[repr(C)]
pub struct gpurest_kernel_info_t {
    pub struct_size: usize,
    pub registers: u32,
    pub max_threads: u32,
    pub shared_bytes: u64,
    pub local_bytes: u64,
    pub const_bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpurest_dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union gpurest_arg_value {
    pub i: i64,
    pub u: u64,
    pub f32: c_float,
    pub f64: c_double,
    pub buffer: gpurest_buffer,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct gpurest_arg {
    pub kind: gpurest_arg_kind,
    pub bytes: usize,
    pub offset: usize,
    pub r#in: *const c_void,
    pub out: *mut c_void,
    pub value: gpurest_arg_value,
}

#[allow(dead_code)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpurest_texture_desc {
    pub struct_size: usize,
    pub dimension: *const c_char,
    pub format: *const c_char,
    pub channels: u32,
    pub extent: [u32; 3],
    pub layers: u32,
    pub addressing: [*const c_char; 3],
    pub filter: *const c_char,
    pub read: *const c_char,
    pub normalized_coordinates: c_int,
    pub surface: c_int,
    pub buffer: gpurest_buffer,
    pub offset: usize,
    pub pitch: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpurest_launch_config {
    pub struct_size: usize,
    pub grid: gpurest_dim3,
    pub block: gpurest_dim3,
    pub threads: u64,
    pub shared_bytes: u32,
    pub stream: gpurest_stream,
    pub timeout_ms: u64,
    pub cooperative: c_int,
}

#[repr(C)]
pub struct gpurest_launch_result {
    pub struct_size: usize,
    pub gpu_us: c_double,
    pub output: *mut c_char,
    pub output_truncated: c_int,
}

#[repr(C)]
pub struct gpurest_times {
    pub compile_ms: c_double,
    pub upload_ms: c_double,
    pub run_ms: c_double,
    pub gpu_us: c_double,
}

extern "C" {
    // errors
    pub fn gpurest_last_error() -> *const gpurest_error;
    pub fn gpurest_version() -> *const c_char;
    pub fn gpurest_mem_free(memory: *mut c_void);

    // client
    pub fn gpurest_open_with(out: *mut *mut gpurest_client, options: *const gpurest_options) -> gpurest_status;
    pub fn gpurest_close(client: *mut gpurest_client);
    pub fn gpurest_server_version(client: *const gpurest_client) -> *const c_char;
    pub fn gpurest_request(
        client: *mut gpurest_client,
        method: *const c_char,
        path: *const c_char,
        json: *const c_char,
        out_json: *mut *mut c_char,
    ) -> gpurest_status;

    // device
    pub fn gpurest_device_count(client: *mut gpurest_client, out: *mut c_int) -> gpurest_status;
    pub fn gpurest_device_info(client: *mut gpurest_client, device: c_int, out: *mut gpurest_device_info_t) -> gpurest_status;

    // session
    pub fn gpurest_session_open(
        out: *mut *mut gpurest_session,
        client: *mut gpurest_client,
        options: *const gpurest_session_options,
    ) -> gpurest_status;
    pub fn gpurest_session_close(session: *mut gpurest_session);
    pub fn gpurest_session_id(session: *const gpurest_session) -> *const c_char;
    pub fn gpurest_session_reset(session: *mut gpurest_session) -> gpurest_status;
    pub fn gpurest_session_save(session: *mut gpurest_session, path: *const c_char) -> gpurest_status;
    pub fn gpurest_session_load(
        out: *mut *mut gpurest_session,
        client: *mut gpurest_client,
        path: *const c_char,
        options: *const gpurest_session_options,
    ) -> gpurest_status;
    pub fn gpurest_sync(session: *mut gpurest_session) -> gpurest_status;
    pub fn gpurest_session_info(session: *mut gpurest_session, out: *mut gpurest_session_info_t) -> gpurest_status;
    pub fn gpurest_session_hibernate(session: *mut gpurest_session, out_or_null: *mut gpurest_session_info_t) -> gpurest_status;
    pub fn gpurest_session_wake(session: *mut gpurest_session, out_or_null: *mut gpurest_session_info_t) -> gpurest_status;
    pub fn gpurest_memory_info(session: *mut gpurest_session, out: *mut gpurest_memory_info_t) -> gpurest_status;
    pub fn gpurest_memory_trim(session: *mut gpurest_session, out_or_null: *mut gpurest_memory_info_t) -> gpurest_status;
    pub fn gpurest_memory_reset_peak(session: *mut gpurest_session, out_or_null: *mut gpurest_memory_info_t) -> gpurest_status;

    // memory
    pub fn gpurest_alloc(session: *mut gpurest_session, out: *mut gpurest_buffer, bytes: usize) -> gpurest_status;
    pub fn gpurest_alloc_from(session: *mut gpurest_session, out: *mut gpurest_buffer, src: *const c_void, bytes: usize) -> gpurest_status;
    pub fn gpurest_free(session: *mut gpurest_session, buffer: gpurest_buffer) -> gpurest_status;
    pub fn gpurest_write(session: *mut gpurest_session, buffer: gpurest_buffer, offset: usize, src: *const c_void, bytes: usize) -> gpurest_status;
    pub fn gpurest_read(session: *mut gpurest_session, buffer: gpurest_buffer, offset: usize, dst: *mut c_void, bytes: usize) -> gpurest_status;
    pub fn gpurest_copy(
        session: *mut gpurest_session,
        to: gpurest_buffer,
        to_offset: usize,
        from: gpurest_buffer,
        from_offset: usize,
        bytes: usize,
        stream: gpurest_stream,
    ) -> gpurest_status;
    pub fn gpurest_fill(
        session: *mut gpurest_session,
        buffer: gpurest_buffer,
        offset: usize,
        value: u32,
        width_bytes: c_uint,
        count: usize,
        stream: gpurest_stream,
    ) -> gpurest_status;

    // module
    pub fn gpurest_compile_with(
        session: *mut gpurest_session,
        out: *mut *mut gpurest_module,
        source: *const c_char,
        options: *const gpurest_compile_options,
    ) -> gpurest_status;
    pub fn gpurest_module_load_with(
        session: *mut gpurest_session,
        out: *mut *mut gpurest_module,
        image: *const c_void,
        bytes: usize,
        options: *const *const c_char,
        options_count: usize,
    ) -> gpurest_status;
    pub fn gpurest_module_builtin(
        session: *mut gpurest_session,
        out: *mut *mut gpurest_module,
        name: *const c_char,
        dtype: *const c_char,
        engine_or_null: *const c_char,
    ) -> gpurest_status;
    pub fn gpurest_module_unload(module: *mut gpurest_module);
    pub fn gpurest_module_log(module: *const gpurest_module) -> *const c_char;
    pub fn gpurest_module_kernel_count(module: *const gpurest_module) -> usize;
    pub fn gpurest_kernel_get(module: *mut gpurest_module, name: *const c_char, out: *mut *const gpurest_kernel) -> gpurest_status;
    pub fn gpurest_kernel_at(module: *mut gpurest_module, index: usize, out: *mut *const gpurest_kernel) -> gpurest_status;
    pub fn gpurest_kernel_name(kernel: *const gpurest_kernel) -> *const c_char;
    pub fn gpurest_kernel_param_count(kernel: *const gpurest_kernel) -> usize;
    pub fn gpurest_kernel_info(kernel: *const gpurest_kernel, out: *mut gpurest_kernel_info_t) -> gpurest_status;

    // cache, warm
    pub fn gpurest_cache_info(client: *mut gpurest_client, all: c_int, out: *mut gpurest_cache_info_t) -> gpurest_status;
    pub fn gpurest_cache_clear(
        client: *mut gpurest_client,
        unused_s: u64,
        all: c_int,
        removed_entries: *mut u64,
        removed_bytes: *mut u64,
    ) -> gpurest_status;
    pub fn gpurest_warm_start(client: *mut gpurest_client, out: *mut *mut gpurest_warm, options: *const gpurest_warm_options) -> gpurest_status;
    pub fn gpurest_warm_progress(warm: *mut gpurest_warm, out: *mut gpurest_warm_progress_t) -> gpurest_status;
    pub fn gpurest_warm_wait(warm: *mut gpurest_warm, timeout_ms: c_int) -> gpurest_status;
    pub fn gpurest_warm_cancel(warm: *mut gpurest_warm) -> gpurest_status;
    pub fn gpurest_warm_free(warm: *mut gpurest_warm);

    // launch
    pub fn gpurest_launch_with(
        session: *mut gpurest_session,
        kernel: *const gpurest_kernel,
        config: *const gpurest_launch_config,
        args: *const gpurest_arg,
        args_count: usize,
        result_or_null: *mut gpurest_launch_result,
    ) -> gpurest_status;
    #[allow(dead_code)]
    pub fn gpurest_texture_create(session: *mut gpurest_session, out: *mut gpurest_buffer, desc: *const gpurest_texture_desc) -> gpurest_status;
    #[allow(dead_code)]
    pub fn gpurest_texture_open(session: *mut gpurest_session, out: *mut gpurest_buffer, name: *const c_char) -> gpurest_status;
    #[allow(dead_code)]
    pub fn gpurest_texture_free(session: *mut gpurest_session, texture: gpurest_buffer) -> gpurest_status;
    pub fn gpurest_stream_create(session: *mut gpurest_session, out: *mut gpurest_stream) -> gpurest_status;
    pub fn gpurest_stream_sync(session: *mut gpurest_session, stream: gpurest_stream) -> gpurest_status;

    // batch
    pub fn gpurest_batch_begin(session: *mut gpurest_session, out: *mut *mut gpurest_batch) -> gpurest_status;
    pub fn gpurest_batch_timeout_ms(batch: *mut gpurest_batch, timeout_ms: u64) -> gpurest_status;
    pub fn gpurest_batch_submit(batch: *mut gpurest_batch, out_or_null: *mut *mut gpurest_op) -> gpurest_status;
    pub fn gpurest_batch_submit_background(batch: *mut gpurest_batch, out: *mut *mut gpurest_op) -> gpurest_status;
    pub fn gpurest_batch_discard(batch: *mut gpurest_batch);

    // op
    pub fn gpurest_op_wait(op: *mut gpurest_op, timeout_ms: c_int) -> gpurest_status;
    pub fn gpurest_op_free(op: *mut gpurest_op);

    // run
    pub fn gpurest_run(
        client: *mut gpurest_client,
        source: *const c_char,
        kernel: *const c_char,
        grid: gpurest_dim3,
        block: gpurest_dim3,
        args: *const gpurest_arg,
        args_count: usize,
        times_or_null: *mut gpurest_times,
    ) -> gpurest_status;
}
