//! Modules, kernels, launches and runs, against the service that GPUREST_URL names.

use std::time::Duration;

use gpurest::{
    Bytes, Client, CompileOptions, ErrorKind, Kernel, Plain, RunArgument, Session, Shape,
    WarmOptions,
};

const SAXPY: &str = "extern \"C\" __global__ void saxpy(float a, const float *x, float *y, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }";

fn with_session(test: impl FnOnce(&Session<'_>)) {
    let client = Client::open().expect("GPUREST_URL names a service");
    test(&client.session().unwrap());
}

/// The kernel `f` of a source.
fn with_kernel(source: &str, test: impl FnOnce(&Session<'_>, Kernel<'_>)) {
    with_session(|session| {
        let module = session.compile(source).unwrap();
        test(session, module.kernel("f").unwrap());
    });
}

#[test]
fn code_is_compiled_ahead_of_its_use() {
    let client = Client::open().unwrap();
    let source = "extern \"C\" __global__ void ahead(int *x) { *x = N; }";
    let with = CompileOptions::new().option("-DN=7");
    let warm = client
        .warm(
            &WarmOptions::new()
                .kernel("axpy")
                .dtype("f32")
                .source(source, with.clone()),
        )
        .unwrap();
    warm.wait(Some(Duration::from_secs(240))).unwrap();
    let told = warm.progress().unwrap();
    assert_eq!(
        (told.state.as_str(), told.total, told.succeeded, told.failed),
        ("succeeded", 2, 2, 0)
    );
    warm.cancel().unwrap();
    let before = client.cache_info(false).unwrap();
    assert!(before.entries > 0 && before.bytes > 0 && before.entries_max >= before.entries);
    assert!(client.cache_info(true).unwrap().entries > before.entries);
    let session = client.session().unwrap();
    session.compile_with(source, &with).unwrap();
    assert!(client.cache_info(false).unwrap().hits > before.hits);
    assert_eq!(
        client.cache_clear(Duration::MAX, false).unwrap(),
        (0, 0),
        "nothing is so old"
    );
    let wrong = client
        .warm(&WarmOptions::new().source("this is no C", CompileOptions::new()))
        .unwrap();
    assert_eq!(wrong.wait(None).unwrap_err().kind(), ErrorKind::Compile);
    assert_eq!(
        client.warm(&WarmOptions::new()).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn a_kernel_is_compiled_and_launched() {
    with_session(|session| {
        let module = session.compile(SAXPY).unwrap();
        let saxpy = module.kernel("saxpy").unwrap();
        assert_eq!(
            (
                saxpy.name(),
                saxpy.parameter_count(),
                module.kernels().unwrap().len()
            ),
            ("saxpy".to_owned(), 4, 1)
        );
        assert!(saxpy.info().unwrap().max_threads > 0);
        let x = session.alloc_from(&[1.0f32, 2.0, 3.0]).unwrap();
        let y = session.alloc_from(&[0.5f32; 3]).unwrap();
        saxpy.launch(1, 32, &[&2.0f32, &x, &y, &3i32]).unwrap();
        saxpy
            .launch_with(&Shape::threads(3), &[&1.0f32, &x, &y, &3i32])
            .unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.5, 6.5, 9.5]);
        saxpy
            .launch((1, 1), (1, 1, 1), &[&-1.0f32, &x.at(2), &y.at(1), &1i32])
            .unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.5, 3.5, 9.5]);
    });
}

#[test]
fn what_does_not_compile_comes_with_the_compilers_output() {
    with_session(|session| {
        let why = session
            .compile("extern \"C\" __global__ void f() { int x = ; }")
            .unwrap_err();
        assert_eq!(
            (why.kind(), why.code()),
            (ErrorKind::Compile, "compile_failed")
        );
        assert!(
            why.log().contains("expected an expression"),
            "{}",
            why.log()
        );
        assert_eq!(
            session.compile("a\0b").unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert_eq!(
            session.load(b"neither of them").unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert_eq!(
            session.load(b"").unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        let module = session.compile(SAXPY).unwrap();
        assert_eq!(
            module.kernel("other").unwrap_err().kind(),
            ErrorKind::NotFound
        );
    });
}

#[test]
fn headers_options_and_templates() {
    with_session(|session| {
        let options = CompileOptions::new()
            .option("-DBY=3")
            .header("by.h", "#define MORE 4")
            .name_expression("scale<int>");
        let source = "#include \"by.h\"\ntemplate <typename T> __global__ void scale(T *x) { *x = *x * BY + MORE; }";
        let module = session.compile_with(source, &options).unwrap();
        let x = session.alloc_from(&[5i32]).unwrap();
        module
            .kernel("scale<int>")
            .unwrap()
            .launch(1, 1, &[&x])
            .unwrap();
        assert_eq!(x.to_vec().unwrap(), [19]);
        assert_eq!(
            session
                .compile_with(SAXPY, &CompileOptions::new().option("-D\0"))
                .unwrap_err()
                .kind(),
            ErrorKind::InvalidArgument
        );
    });
}

#[test]
fn ptx_needs_no_compiler() {
    let ptx = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry put(.param .u64 to, .param .u32 value)\n{\n.reg .b64 %to;\n.reg .b32 %v;\n\
               ld.param.u64 %to, [to];\nld.param.u32 %v, [value];\nst.global.u32 [%to], %v;\nret;\n}\n";
    with_session(|session| {
        let module = session.load(ptx.as_bytes()).unwrap();
        let x = session.alloc_from(&[0u32]).unwrap();
        module
            .kernel("put")
            .unwrap()
            .launch(1, 1, &[&x, &0xdead_beefu32])
            .unwrap();
        assert_eq!(x.to_vec().unwrap(), [0xdead_beef]);
    });
}

#[test]
fn built_in_kernels_need_no_source() {
    with_session(|session| {
        let module = session.builtin("axpy", "f32", None).unwrap();
        let kernels = module.kernels().unwrap();
        let y = session.alloc_from(&[1.0f32, 2.0]).unwrap();
        let x = session.alloc_from(&[10.0f32, 20.0]).unwrap();
        assert_eq!(kernels.len(), 1);
        assert_eq!(kernels[0].parameter_count(), 4);
        kernels[0].launch(1, 1, &[&0.5f32, &x, &y, &2u64]).unwrap();
        assert_eq!(y.to_vec().unwrap(), [6.0, 12.0]);
        assert_eq!(
            session.builtin("nothing", "f32", None).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(
            session
                .builtin("axpy", "f32", Some("other"))
                .unwrap_err()
                .kind(),
            ErrorKind::InvalidArgument
        );
    });
}

#[test]
fn numbers_of_all_types_arrive_whole() {
    let source = "struct numbers { signed char a; short b; int c; long long d; unsigned char e; unsigned short f; unsigned g; unsigned long long h; float i; double j; };
extern \"C\" __global__ void f(signed char a, short b, int c, long long d, unsigned char e, unsigned short f, unsigned g, unsigned long long h, float i,
double j, char *out) { numbers one = {a, b, c, d, e, f, g, h, i, j}; *(numbers *)out = one; }";
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct All(i8, u8, i16, i32, i64, u8, u8, u16, u32, u64, f32, u32, f64);
    // SAFETY: 48 bytes of numbers; what would be padding has names.
    unsafe impl Plain for All {}
    with_kernel(source, |session, f| {
        let out = session
            .alloc_from(&[All(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0.0)])
            .unwrap();
        let (d, h, j) = (-(1i64 << 53) - 1, u64::MAX, f64::MIN_POSITIVE);
        f.launch(
            1,
            1,
            &[
                &i8::MIN,
                &-2i16,
                &i32::MIN,
                &d,
                &200u8,
                &u16::MAX,
                &u32::MAX,
                &h,
                &f32::NEG_INFINITY,
                &j,
                &out,
            ],
        )
        .unwrap();
        let got = out.to_vec().unwrap()[0];
        assert_eq!((got.0, got.2, got.3, got.4), (i8::MIN, -2, i32::MIN, d));
        assert_eq!(
            (got.5, got.7, got.8, got.9, got.10, got.12),
            (200, u16::MAX, u32::MAX, h, f32::NEG_INFINITY, j)
        );
    });
}

#[test]
fn a_struct_is_passed_by_value() {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Line {
        slope: f64,
        start: f64,
    }
    // SAFETY: 16 bytes of floats.
    unsafe impl Plain for Line {}
    with_kernel("struct line { double slope, start; }; extern \"C\" __global__ void f(line l, double *y) { *y = l.slope * *y + l.start; }", |session, f| {
        let y = session.alloc_from(&[10.0f64]).unwrap();
        f.launch(1, 1, &[&Bytes::of(&Line { slope: 0.5, start: 3.0 }), &y]).unwrap();
        assert_eq!(y.to_vec().unwrap(), [8.0]);
    });
}

#[test]
fn wrong_arguments_are_refused_before_anything_runs() {
    with_kernel(
        "extern \"C\" __global__ void f(int *x, int by) { *x += by; }",
        |session, f| {
            let x = session.alloc_from(&[1i32]).unwrap();
            let other = session.client().session().unwrap();
            let theirs = other.alloc_from(&[1i32]).unwrap();
            let refused = [
                f.launch(1, 1, &[&x]),
                f.launch(1, 1, &[&x, &1i64]),
                f.launch(1, 1, &[&x, &1.0f32]),
                f.launch(1, 1, &[&x, &Bytes::of(&[0u8; 3])]),
                f.launch(1, 1, &[&theirs, &1i32]),
                f.launch(1, 1, &[&x.at(usize::MAX), &1i32]),
                f.launch(0, 1, &[&x, &1i32]),
                f.launch(1, (1, 0), &[&x, &1i32]),
                f.launch(1, 1 << 20, &[&x, &1i32]),
                f.launch_with(&Shape::threads(0), &[&x, &1i32]).map(drop),
                f.launch_with(
                    &Shape::new(1, 1).timeout(Duration::from_nanos(1)),
                    &[&x, &1i32],
                )
                .map(drop),
                f.launch_with(
                    &Shape::new(1, 1).stream(other.stream().unwrap()),
                    &[&x, &1i32],
                )
                .map(drop),
            ];
            for (index, result) in refused.into_iter().enumerate() {
                assert_eq!(
                    result.unwrap_err().kind(),
                    ErrorKind::InvalidArgument,
                    "{index}"
                );
            }
            assert_eq!(x.to_vec().unwrap(), [1]);
        },
    );
}

#[test]
fn a_launch_has_output_shared_memory_and_a_stream() {
    let source = "extern \"C\" __global__ void f(int *x) { extern __shared__ int s[]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads();
x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x]; if (!threadIdx.x) printf(\"turned %d\\n\", blockDim.x); }";
    with_kernel(source, |session, f| {
        let x = session.alloc_from(&[1, 2, 3]).unwrap();
        let stream = session.stream().unwrap();
        let launched = f
            .launch_with(
                &Shape::new(1, 3)
                    .shared_bytes(12)
                    .stream(stream)
                    .timeout(Duration::from_secs(60)),
                &[&x],
            )
            .unwrap();
        stream.sync().unwrap();
        assert_eq!(
            (
                x.to_vec().unwrap(),
                launched.output(),
                launched.output_truncated()
            ),
            (vec![3, 2, 1], "turned 3\n".to_owned(), false)
        );
        assert!(launched.gpu_us() > 0.0);
    });
}

#[test]
fn a_run_needs_no_session() {
    let client = Client::open().expect("GPUREST_URL names a service");
    let source = "extern \"C\" __global__ void f(const int *a, int *sum, int *twice, int by) { *sum = a[0] + a[1]; twice[0] *= by; }";
    let (a, mut sum, mut twice) = ([20, 22], [0], [21i64]);
    let arguments = &mut [
        RunArgument::input(&a),
        RunArgument::output(&mut sum),
        RunArgument::in_out(&mut twice),
        RunArgument::value(&2),
    ];
    let times = client.run(source, "f", 1, 1, arguments).unwrap();
    assert!(times.run_ms > 0.0);
    assert_eq!((sum, twice), ([42], [42]));

    let session = client.session().unwrap();
    let buffer = session.alloc_from(&[1]).unwrap();
    let refuse =
        |arguments: &mut [RunArgument<'_>]| client.run(source, "f", 1, 1, arguments).unwrap_err();
    assert_eq!(
        refuse(&mut [RunArgument::value(&buffer)]).kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        refuse(&mut [RunArgument::input::<i32>(&[])]).kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        client
            .run("nonsense", "f", 1, 1, &mut [])
            .unwrap_err()
            .kind(),
        ErrorKind::Compile
    );
    assert_eq!(
        client.run(source, "f", 0, 1, &mut []).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}
