"""consumer.py BUILD HEADER GPURESTD: installs the SDK into a temporary folder and builds with it as users do: by find_package (shared and
static), by pkg-config, and as C++; runs the README's first program; then checks what is exported and documented."""
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
        run("g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-missing-field-initializers", work / "main.cc", "-o",
            work / "as_cxx", *flags)
        assert run(work / "as_cxx", env={**os.environ, "LD_LIBRARY_PATH": str(library_folder(prefix))}) == EXPECTED


def first_program(prefix, work, readme, executable):
    where = {**os.environ, "PKG_CONFIG_PATH": str(next(prefix.rglob("gpurest.pc")).parent)}
    flags = run("pkg-config", "--cflags", "--libs", "gpurest", env=where).split()
    (work / "first.c").write_text(re.search(r"```c\n(.*?)```", readme.read_text(), re.S)[1])
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", work / "first.c", "-o", work / "first", *flags)
    with service.running(executable) as url:
        out = run(work / "first", env={**os.environ, "LD_LIBRARY_PATH": str(library_folder(prefix)), "GPUREST_URL": url})
    assert out == "2 4 6 8\n", out


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
        exports_and_pages(prefix, header)
    print("builds, runs and is documented")


if __name__ == "__main__":
    main()
