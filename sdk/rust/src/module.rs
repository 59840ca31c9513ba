//! Modules and their kernels.

use std::ffi::CString;
use std::mem::{size_of, MaybeUninit};
use std::os::raw::c_char;
use std::ptr::{self, NonNull};

use crate::client::made;
use crate::error::{c_string, check, text, Result};
use crate::ffi;
use crate::launch::{Argument, Dim3, Launched, Shape};
use crate::session::Session;

/// How to compile a module.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    options: Vec<String>,
    headers: Vec<(String, String)>,
    name_expressions: Vec<String>,
    glsl: bool,
}

impl CompileOptions {
    /// Without any.
    pub fn new() -> Self {
        Self::default()
    }

    /// An option of the compiler, such as "-DN=4", if the service allows it.
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// A header, for `#include "name"`.
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.headers.push((name.into(), text.into()));
        self
    }

    /// A template instantiation such as `scale<float>`, usable as a kernel's name.
    pub fn name_expression(mut self, expression: impl Into<String>) -> Self {
        self.name_expressions.push(expression.into());
        self
    }

    /// The source is a compute shader in GLSL, for `vulkan` devices, not CUDA C++.
    pub fn glsl(mut self) -> Self {
        self.glsl = true;
        self
    }
}

pub(crate) fn c_strings(what: &str, from: &[String]) -> Result<Vec<CString>> {
    from.iter().map(|one| c_string(what, one)).collect()
}

pub(crate) fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}

/// Options as the library takes them, with the strings that they point to.
pub(crate) struct RawCompileOptions {
    options: Vec<*const c_char>,
    headers: Vec<ffi::gpurest_header>,
    name_expressions: Vec<*const c_char>,
    glsl: bool,
    _strings: [Vec<CString>; 4],
}

impl RawCompileOptions {
    pub(crate) fn new(from: &CompileOptions) -> Result<Self> {
        let options = c_strings("a compiler's option", &from.options)?;
        let expressions = c_strings("a name expression", &from.name_expressions)?;
        let names = from.headers.iter().map(|(name, _)| c_string("a header's name", name)).collect::<Result<Vec<_>>>()?;
        let texts = from.headers.iter().map(|(_, text)| c_string("a header", text)).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            options: pointers(&options),
            headers: names.iter().zip(&texts).map(|(name, text)| ffi::gpurest_header { name: name.as_ptr(), text: text.as_ptr() }).collect(),
            name_expressions: pointers(&expressions),
            glsl: from.glsl,
            _strings: [options, expressions, names, texts],
        })
    }

    /// Valid as long as this object is.
    pub(crate) fn raw(&self) -> ffi::gpurest_compile_options {
        ffi::gpurest_compile_options {
            struct_size: size_of::<ffi::gpurest_compile_options>(),
            options: self.options.as_ptr(),
            options_count: self.options.len(),
            headers: self.headers.as_ptr(),
            headers_count: self.headers.len(),
            name_expressions: self.name_expressions.as_ptr(),
            name_expressions_count: self.name_expressions.len(),
            language: if self.glsl { b"glsl\0".as_ptr().cast() } else { ptr::null() },
        }
    }
}

/// Compiled code in a session. Dropped, it is unloaded.
#[derive(Debug)]
pub struct Module<'s> {
    raw: NonNull<ffi::gpurest_module>,
    session: &'s Session<'s>,
}

// SAFETY: "any number of threads may use … modules" (gpurest.h), and it is unloaded by its only owner.
unsafe impl Send for Module<'_> {}
// SAFETY: as above.
unsafe impl Sync for Module<'_> {}

impl<'s> Module<'s> {
    pub(crate) fn compile(session: &'s Session<'s>, source: &str, options: &CompileOptions) -> Result<Self> {
        let source = c_string("the source", source)?;
        let options = RawCompileOptions::new(options)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the session is open; everything that is pointed to lives until the end of this function.
        check(unsafe { ffi::gpurest_compile_with(session.raw(), &mut raw, source.as_ptr(), &options.raw()) })?;
        Ok(Module { raw: made(raw)?, session })
    }

    pub(crate) fn load(session: &'s Session<'s>, image: &[u8], options: &[String]) -> Result<Self> {
        let strings = c_strings("an option", options)?;
        let options = pointers(&strings);
        let mut raw = ptr::null_mut();
        // SAFETY: the session is open, `raw` is valid, the image is as long as is said, and the options live until the end of this function.
        check(unsafe { ffi::gpurest_module_load_with(session.raw(), &mut raw, image.as_ptr().cast(), image.len(), options.as_ptr(), options.len()) })?;
        Ok(Module { raw: made(raw)?, session })
    }

    pub(crate) fn builtin(session: &'s Session<'s>, name: &str, dtype: &str, engine: Option<&str>) -> Result<Self> {
        let (name, dtype) = (c_string("the kernel's name", name)?, c_string("the element type", dtype)?);
        let engine = engine.map(|engine| c_string("the engine", engine)).transpose()?;
        let engine_raw = engine.as_ref().map_or(ptr::null(), |engine| engine.as_ptr());
        let mut raw = ptr::null_mut();
        // SAFETY: the session is open; the strings live until the end of this function.
        check(unsafe { ffi::gpurest_module_builtin(session.raw(), &mut raw, name.as_ptr(), dtype.as_ptr(), engine_raw) })?;
        Ok(Module { raw: made(raw)?, session })
    }

    /// The compiler's output, such as warnings, or "".
    pub fn log(&self) -> String {
        // SAFETY: the module is loaded; the string lives as long as it is.
        unsafe { text(ffi::gpurest_module_log(self.raw.as_ptr())) }
    }

    /// A kernel by its plain or mangled name, or its name expression.
    pub fn kernel(&self, name: &str) -> Result<Kernel<'_>> {
        let name = c_string("the kernel's name", name)?;
        let mut raw = ptr::null();
        // SAFETY: the module is loaded, and `raw` is valid.
        check(unsafe { ffi::gpurest_kernel_get(self.raw.as_ptr(), name.as_ptr(), &mut raw) })?;
        self.owned(raw)
    }

    /// All kernels; of a built-in one there is one.
    pub fn kernels(&self) -> Result<Vec<Kernel<'_>>> {
        // SAFETY: the module is loaded.
        let count = unsafe { ffi::gpurest_module_kernel_count(self.raw.as_ptr()) };
        (0..count)
            .map(|index| {
                let mut raw = ptr::null();
                // SAFETY: the module is loaded, and `raw` is valid.
                check(unsafe { ffi::gpurest_kernel_at(self.raw.as_ptr(), index, &mut raw) })?;
                self.owned(raw)
            })
            .collect()
    }

    fn owned(&self, raw: *const ffi::gpurest_kernel) -> Result<Kernel<'_>> {
        Ok(Kernel { raw: made(raw as *mut ffi::gpurest_kernel)?, module: self })
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: its session is open, and nobody else uses the module: kernels borrow it.
        unsafe { ffi::gpurest_module_unload(self.raw.as_ptr()) }
    }
}

/// What a kernel needs of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelInfo {
    /// Registers of a thread.
    pub registers: u32,
    /// The largest block that it can be launched with.
    pub max_threads: u32,
    /// Static shared memory of a block.
    pub shared_bytes: u64,
    /// Local memory of a thread.
    pub local_bytes: u64,
    /// Constant memory.
    pub const_bytes: u64,
}

/// A kernel of a module. Any number of threads may use it at once.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'m> {
    raw: NonNull<ffi::gpurest_kernel>,
    module: &'m Module<'m>,
}

// SAFETY: "any number of threads may use … kernels" (gpurest.h). It belongs to its module and is never written.
unsafe impl Send for Kernel<'_> {}
// SAFETY: as above.
unsafe impl Sync for Kernel<'_> {}

impl Kernel<'_> {
    /// Its name.
    pub fn name(&self) -> String {
        // SAFETY: the module is loaded; the string lives as long as it is.
        unsafe { text(ffi::gpurest_kernel_name(self.raw())) }
    }

    /// The number of its parameters.
    pub fn parameter_count(&self) -> usize {
        // SAFETY: the module is loaded.
        unsafe { ffi::gpurest_kernel_param_count(self.raw()) }
    }

    /// What it needs of its device.
    pub fn info(&self) -> Result<KernelInfo> {
        // SAFETY: a C struct of numbers, for which zeros are values.
        let mut info: ffi::gpurest_kernel_info_t = unsafe { MaybeUninit::zeroed().assume_init() };
        info.struct_size = size_of::<ffi::gpurest_kernel_info_t>();
        // SAFETY: the module is loaded, and `info` is as long as it says.
        check(unsafe { ffi::gpurest_kernel_info(self.raw(), &mut info) })?;
        Ok(KernelInfo {
            registers: info.registers,
            max_threads: info.max_threads,
            shared_bytes: info.shared_bytes,
            local_bytes: info.local_bytes,
            const_bytes: info.const_bytes,
        })
    }

    /// Launches the kernel with `grid` blocks of `block` threads and waits until it ends. The number, sizes and kinds of the arguments are checked
    /// against its parameters before anything is sent.
    pub fn launch(&self, grid: impl Into<Dim3>, block: impl Into<Dim3>, arguments: &[&dyn Argument]) -> Result<()> {
        self.launch_with(&Shape::new(grid, block), arguments).map(drop)
    }

    /// As [`launch`](Self::launch), with all that may be said about a launch, and its result.
    pub fn launch_with(&self, shape: &Shape<'_>, arguments: &[&dyn Argument]) -> Result<Launched> {
        let (config, mut result) = (shape.config()?, Launched::empty());
        let raw: Vec<_> = arguments.iter().map(|argument| argument.raw()).collect();
        // SAFETY: the session is open and the module loaded; config, arguments and result live until the end of this function.
        check(unsafe { ffi::gpurest_launch_with(self.module.session.raw(), self.raw(), &config, raw.as_ptr(), raw.len(), result.raw_mut()) })?;
        Ok(result)
    }

    pub(crate) fn raw(&self) -> *const ffi::gpurest_kernel {
        self.raw.as_ptr()
    }
}
