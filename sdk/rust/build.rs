//! Finds libgpurest, the C SDK's shared library: in the folder that GPUREST_LIB_DIR names, else where pkg-config says, else in the build
//! tree of the project that this crate is a part of.
//!
//! The library is linked from OUT_DIR, so that `cargo run` and `cargo test`, which add that folder to the loader's path, find it wherever it is.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

const VARIABLE: &str = "GPUREST_LIB_DIR";
const VERSION_MIN: &str = "1.0";
const BUILD_TREE: &str = "../../build/release/sdk/c";
/// What the linker looks for, and what the loader looks for.
const NAMES: [&str; 2] = ["libgpurest.so", "libgpurest.so.1"];

fn has_library(folder: &Path) -> bool {
    NAMES.iter().all(|name| folder.join(name).exists())
}

fn of_pkg_config() -> Option<PathBuf> {
    let minimum = format!("--atleast-version={}", VERSION_MIN);
    let asked = |argument: &str| Command::new("pkg-config").args([argument, "gpurest"]).output().ok().filter(|done| done.status.success());
    asked(&minimum)?;
    let said = asked("--variable=libdir")?;
    Some(PathBuf::from(String::from_utf8(said.stdout).ok()?.trim())).filter(|folder| has_library(folder))
}

fn find() -> Result<PathBuf, String> {
    if let Some(folder) = env::var_os(VARIABLE).map(PathBuf::from) {
        return if has_library(&folder) {
            Ok(folder)
        } else {
            Err(format!("{} is {}, where {} is not", VARIABLE, folder.display(), NAMES.join(" or ")))
        };
    }
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join(BUILD_TREE);
    of_pkg_config().or_else(|| Some(tree.clone()).filter(|folder| has_library(folder))).ok_or_else(|| {
        format!(
            "libgpurest is not found: pkg-config does not know gpurest {} or later, and {} is not built. Build and install sdk/c, or set {} to \
             the folder of {}",
            VERSION_MIN,
            tree.display(),
            VARIABLE,
            NAMES[0]
        )
    })
}

fn link(folder: &Path, out: &Path) -> io::Result<()> {
    for name in NAMES {
        let (from, to) = (folder.canonicalize()?.join(name), out.join(name));
        if to.symlink_metadata().is_ok() {
            fs::remove_file(&to)?;
        }
        symlink(&from, &to)?;
        println!("cargo:rerun-if-changed={}", from.display());
    }
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=dylib=gpurest");
    Ok(())
}

fn main() {
    for name in [VARIABLE, "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    println!("cargo:rerun-if-changed=build.rs");
    let done = find().and_then(|folder| {
        let out = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: cargo runs this program")?;
        link(&folder, Path::new(&out)).map_err(|why| format!("{} cannot be linked: {}", folder.display(), why))
    });
    if let Err(why) = done {
        eprintln!("gpurest: {}", why);
        process::exit(1);
    }
}
