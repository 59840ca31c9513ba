//! The structs and constants of sdk/rust/src/ffi.rs against the C headers: a C program prints sizes, offsets and values, and so do we.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::mem::{size_of, size_of_val, MaybeUninit};
use std::path::Path;
use std::process::Command;
use std::ptr::addr_of;

use crate::client;
use crate::ffi::*;

const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../c/include");

/// What the C program prints, as statements, and what it should print.
#[derive(Default)]
struct Comparison {
    statements: String,
    expected: String,
}

impl Comparison {
    fn size(&mut self, name: &str, size: usize) {
        writeln!(self.statements, "printf(\"{name} %zu\\n\", sizeof({name}));").unwrap();
        writeln!(self.expected, "{name} {size}").unwrap();
    }

    fn field(&mut self, owner: &str, path: &str, offset: usize, size: usize) {
        writeln!(self.statements, "printf(\"{owner}.{path} %zu %zu\\n\", offsetof({owner}, {path}), sizeof((({owner} *)0)->{path}));").unwrap();
        writeln!(self.expected, "{owner}.{path} {offset} {size}").unwrap();
    }

    fn value(&mut self, name: &str, value: i64) {
        writeln!(self.statements, "printf(\"{name} %lld\\n\", (long long){name});").unwrap();
        writeln!(self.expected, "{name} {value}").unwrap();
    }
}

/// All fields of each struct: one that is missing here does not compile.
macro_rules! structs {
    ($all:ident, $($name:ident { $($field:ident)* })*) => {$(
        $all.size(stringify!($name), size_of::<$name>());
        let place = MaybeUninit::<$name>::uninit();
        let start = place.as_ptr();
        // SAFETY: only addresses are taken.
        unsafe { $($all.field(
            stringify!($name),
            stringify!($field).trim_start_matches("r#"),
            addr_of!((*start).$field) as usize - start as usize,
            size_of_field(addr_of!((*start).$field)),
        );)* }
        #[allow(dead_code)]
        fn $name(all: $name) {
            let $name { $($field: _),* } = all;
        }
    )*};
}

fn size_of_field<T>(_: *const T) -> usize {
    size_of::<T>()
}

macro_rules! values {
    ($all:ident, $($name:ident)*) => {$( $all.value(stringify!($name), i64::from($name)); )*};
}

#[allow(non_snake_case)]
fn comparison() -> Comparison {
    let mut all = Comparison::default();
    structs! { all,
        gpurest_error { status http_status cuda_result retryable fatal_for_session code message hint pointer request_id log }
        gpurest_buffer { id }
        gpurest_stream { id }
        gpurest_options { struct_size url token token_file ca_file connect_timeout_ms idle_timeout_ms max_retries max_connections bulk_connections
                          use_libcurl log log_arg log_level address }
        gpurest_device_info_t { struct_size id backend name uuid compute_capability state memory_total_bytes memory_free_bytes multiprocessors
                                clock_khz warp_size max_threads_per_block max_shared_bytes_per_block }
        gpurest_session_options { struct_size device name memory_limit idle_timeout_s memcheck keep memory_fraction pool_bytes_max lease_s fault_domain fault_domain_optional }
        gpurest_memory_info_t { struct_size allocated_bytes cached_bytes reserved_bytes free_bytes peak_bytes limit_bytes fragmentation }
        gpurest_session_info_t { struct_size id device state }
        gpurest_cache_info_t { struct_size entries bytes hits misses entries_max bytes_max shared }
        gpurest_warm_source { source options }
        gpurest_warm_options { struct_size kernels kernels_count dtypes dtypes_count sources sources_count devices devices_count }
        gpurest_warm_progress_t { struct_size state total succeeded failed }
        gpurest_header { name text }
        gpurest_compile_options { struct_size options options_count headers headers_count name_expressions name_expressions_count language }
        gpurest_kernel_info_t { struct_size registers max_threads shared_bytes local_bytes const_bytes }
        gpurest_dim3 { x y z }
        gpurest_arg { kind bytes offset r#in out value }
        gpurest_launch_config { struct_size grid block threads shared_bytes stream timeout_ms cooperative }
        gpurest_texture_desc { struct_size dimension format channels extent layers addressing filter read normalized_coordinates surface buffer offset pitch }
        gpurest_launch_result { struct_size gpu_us output output_truncated }
        gpurest_times { compile_ms upload_ms run_ms gpu_us }
    }
    all.size("gpurest_status", size_of::<gpurest_status>());
    all.size("gpurest_arg_kind", size_of::<gpurest_arg_kind>());
    let value = gpurest_arg_value { u: 0 };
    // SAFETY: all members are plain and of at most the union's size, which is zeroed.
    unsafe {
        for (member, size) in [
            ("i", size_of_val(&value.i)),
            ("u", size_of_val(&value.u)),
            ("f32", size_of_val(&value.f32)),
            ("f64", size_of_val(&value.f64)),
            ("buffer", size_of_val(&value.buffer)),
        ] {
            let start = all.value_start();
            all.field("gpurest_arg", &format!("value.{member}"), start, size);
        }
    }
    values! { all,
        GPUREST_OK GPUREST_E_INVAL GPUREST_E_NOMEM_HOST GPUREST_E_CONNECT GPUREST_E_TIMEOUT GPUREST_E_PROTO GPUREST_E_AUTH GPUREST_E_NOTFOUND
        GPUREST_E_BUSY GPUREST_E_OOM_DEVICE GPUREST_E_COMPILE GPUREST_E_CUDA GPUREST_E_SESSION_LOST GPUREST_E_ABORTED GPUREST_E_CANCELLED
        GPUREST_E_UNSUPPORTED GPUREST_E_FORK GPUREST_E_LIMIT GPUREST_E_SERVER
        GPUREST_ARG_I8 GPUREST_ARG_I16 GPUREST_ARG_I32 GPUREST_ARG_I64 GPUREST_ARG_U8 GPUREST_ARG_U16 GPUREST_ARG_U32 GPUREST_ARG_U64 GPUREST_ARG_F32
        GPUREST_ARG_F64 GPUREST_ARG_BYTES GPUREST_ARG_BUFFER GPUREST_ARG_IN GPUREST_ARG_OUT GPUREST_ARG_INOUT
        GPUREST_ARG_TEXTURE GPUREST_ARG_SURFACE
    }
    all
}

/// The defaults that Options has of its own.
fn defaults(all: &mut Comparison) {
    let expected = [
        ("connect_timeout_ms", client::CONNECT_TIMEOUT.as_millis() as i64),
        ("idle_timeout_ms", client::IDLE_TIMEOUT.as_millis() as i64),
        ("max_retries", client::MAX_RETRIES.into()),
        ("max_connections", client::MAX_CONNECTIONS.into()),
        ("bulk_connections", client::BULK_CONNECTIONS.into()),
        ("use_libcurl", 0),
    ];
    for (field, value) in expected {
        all.value(&format!("((gpurest_options)GPUREST_OPTIONS_INIT).{field}"), value);
    }
}

impl Comparison {
    /// The offset of an argument's value.
    fn value_start(&self) -> usize {
        let place = MaybeUninit::<gpurest_arg>::uninit();
        // SAFETY: only an address is taken.
        unsafe { addr_of!((*place.as_ptr()).value) as usize - place.as_ptr() as usize }
    }
}

#[test]
fn structs_and_constants_are_those_of_the_c_header() {
    let mut all = comparison();
    defaults(&mut all);
    let folder = env::temp_dir().join(format!("gpurest-layout-{}", std::process::id()));
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "#include <gpurest/gpurest.h>\n#include <gpurest/cache.h>\n#include <gpurest/texture.h>\n#include <stdio.h>\nint main(void)\n{{\n{}return 0;\n}}\n",
        all.statements
    );
    fs::write(&source, text).unwrap();
    let built = Command::new("cc").args(["-std=c11", "-Werror", "-I", INCLUDE, "-o"]).args([&program, &source]).output().expect("cc runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let printed = run(&program);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(printed, all.expected);
}

fn run(program: &Path) -> String {
    let done = Command::new(program).output().unwrap();
    assert!(done.status.success());
    String::from_utf8(done.stdout).unwrap()
}
