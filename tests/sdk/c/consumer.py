"""consumer.py BUILD HEADER GPURESTD: installs the SDK into a temporary folder and builds with it as users do: by find_package (shared and
static), by pkg-config, and as C++; runs the README's first program as C and C++; then checks what is exported and documented."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import service

PROGRAM = """#include <gpurest/gpurest.h>
#include <gpurest/share.h>
#include <gpurest/builtin.h>
#include <gpurest/cache.h>
#include <stdio.h>
int main(void)
{
    gpurest_client *c = NULL;
    gpurest_status st = gpurest_open(&c, "http://127.0.0.1:1");
    gpurest_arg args[] = {GPUREST_I32(1), GPUREST_F32(2)};
    printf("%s %s %d\\n", gpurest_version(), gpurest_status_name(st), (int)(sizeof args / sizeof args[0]));
    return c != NULL;
}
"""
STRICT_CXX = ("-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wold-style-cast", "-Werror")
EXPECTED = "1.0.0 GPUREST_E_CONNECT 2\n"
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(consumer C)
find_package(gpurest 1.0 REQUIRED)
add_executable(shared main.c)
target_link_libraries(shared PRIVATE gpurest::gpurest)
add_executable(static main.c)
target_link_libraries(static PRIVATE gpurest::gpurest_static)
"""


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def library_folder(prefix):
    return next(prefix.rglob("libgpurest.so.1")).parent


def with_cmake(prefix, work):
    (work / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-S", work, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", work / "build")
    assert run(work / "build" / "shared") == EXPECTED
    assert run(work / "build" / "static") == EXPECTED
    assert "libgpurest" in run("ldd", work / "build" / "shared")
    assert "libgpurest" not in run("ldd", work / "build" / "static")


def with_pkg_config(prefix, work):
    where = {**os.environ, "PKG_CONFIG_PATH": str(next(prefix.rglob("gpurest.pc")).parent)}
    flags = run("pkg-config", "--cflags", "--libs", "gpurest", env=where).split()
    assert run("pkg-config", "--modversion", "gpurest", env=where).strip() == "1.0.0"
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", work / "main.c", "-o", work / "by_pkg_config", *flags)
    assert run(work / "by_pkg_config", env={**os.environ, "LD_LIBRARY_PATH": str(library_folder(prefix))}) == EXPECTED
    if shutil.which("g++"):
        shutil.copy(work / "main.c", work / "main.cc")
        run("g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", work / "main.cc", "-o",
            work / "as_cxx", *flags)
        assert run(work / "as_cxx", env={**os.environ, "LD_LIBRARY_PATH": str(library_folder(prefix))}) == EXPECTED


def first_program(prefix, work, readme, executable):
    where = {**os.environ, "PKG_CONFIG_PATH": str(next(prefix.rglob("gpurest.pc")).parent)}
    flags = run("pkg-config", "--cflags", "--libs", "gpurest", env=where).split()
    (work / "first.c").write_text(re.search(r"```c\n(.*?)```", readme.read_text(), re.S)[1])
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", work / "first.c", "-o", work / "first", *flags)
    programs = [work / "first"]
    if shutil.which("g++"):
        run("g++", *STRICT_CXX, "-x", "c++", work / "first.c", "-o", work / "first_cxx", *flags)
        programs.append(work / "first_cxx")
    with service.running(executable) as url:
        for program in programs:
            out = run(program, env={**os.environ, "LD_LIBRARY_PATH": str(library_folder(prefix)), "GPUREST_URL": url})
            assert out == "2 4 6 8\n", out


def macros_in_cxx(prefix, work):
    """Every macro that makes a value, in a function that C++ compilers look at with all their warnings."""
    headers = sorted(prefix.rglob("include/gpurest/*.h"))
    text = "".join(path.read_text() for path in headers)
    types = set(re.findall(r"^} (gpurest_\w+);", text, re.M))
    named = [(name, name[:-len("_INIT")].lower()) for name in re.findall(r"^#define (GPUREST_\w+_INIT)\b", text, re.M)]
    lines = [f"    {of if of in types else of + '_t'} v{at} = {name}; (void)v{at};" for at, (name, of) in enumerate(named)]
    lines += [f"    (void)GPUREST_{name}(n);" for name in ("I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F32", "F64", "1D")]
    lines += [f"    (void)GPUREST_{call};" for call in ("BYTES(x, 4)", "BUF(b)", "BUF_AT(b, 4)", "TEX(b)", "SURF(b)", "IN(x, 4)", "OUT(x, 4)", "INOUT(x, 4)", "2D(1, 2)", "3D(1, 2, 3)")]
    assert len(lines) > 30, lines
    functions = set(re.findall(r"^#define GPUREST_(\w+)\(", text, re.M)) - {"CAST"}
    assert functions == {line.partition("GPUREST_")[2].partition("(")[0] for line in lines if "_INIT" not in line}, "a macro is not tried here"
    includes = "".join(f"#include <gpurest/{path.name}>\n" for path in headers)
    (work / "macros.cc").write_text(includes + "int main()\n{\n    int n = 1; float x[1] = {}; gpurest_buffer b = {};\n" + "\n".join(lines) + "\n}\n")
    for compiler in filter(shutil.which, ("g++", "clang++")):
        run(compiler, *STRICT_CXX, f"-I{headers[0].parents[1]}", "-fsyntax-only", work / "macros.cc")


def exports_and_pages(prefix, header):
    text = "".join(path.read_text() for path in sorted(header.parent.glob("*.h")))
    declared = set(re.findall(r"^GPUREST_API [^(;]*?\b(gpurest_\w+)\(", text, re.M))
    symbols = run("nm", "-D", "--defined-only", "--with-symbol-versions", library_folder(prefix) / "libgpurest.so.1").split("\n")
    exported = {line.split()[-1] for line in symbols if line and " A " not in line}
    assert exported == {name + "@@GPUREST_1.0" for name in declared}, exported ^ {name + "@@GPUREST_1.0" for name in declared}
    pages = {page.stem for page in prefix.rglob("*.3")}
    assert declared <= pages, declared - pages
    for page in prefix.rglob("*.3"):
        refers = re.fullmatch(r"\.so man3/(.*)\n", page.read_text())
        assert not refers or (page.parent / refers[1]).is_file(), page


def documented_build(readme, work):
    """What README.md says to build is all that it then says to install. sdk/c alone, in a new folder."""
    text = readme.read_text()
    targets = re.search(r"cmake --build --preset release --target ([\w ]+)", text)[1].split()
    component = re.search(r"cmake --install build/release --prefix /usr/local --component (\w+)", text)[1]
    run("cmake", "-S", readme.parent, "-B", work / "alone")
    run("cmake", "--build", work / "alone", "--parallel", "2", "--target", *targets)
    run("cmake", "--install", work / "alone", "--prefix", work / "installed", "--component", component)
    files = {path.name for path in (work / "installed").rglob("*")}
    assert {"libgpurest.so", "libgpurest.a", "gpurest.h", "gpurest.pc", "gpurest_memory.3"} <= files, files


def main():
    build, header = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        prefix, work = pathlib.Path(folder) / "prefix", pathlib.Path(folder) / "work"
        work.mkdir()
        (work / "main.c").write_text(PROGRAM)
        run("cmake", "--install", build, "--prefix", prefix, "--component", "sdk")
        assert {path.name for path in (prefix / "include" / "gpurest").iterdir()} == {path.name for path in header.parent.glob("*.h")}
        with_cmake(prefix, work)
        with_pkg_config(prefix, work)
        first_program(prefix, work, header.parents[2] / "README.md", sys.argv[3])
        macros_in_cxx(prefix, work)
        documented_build(header.parents[2] / "README.md", work)
        exports_and_pages(prefix, header)
    print("builds, runs and is documented")


if __name__ == "__main__":
    main()
