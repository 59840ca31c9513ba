"""The C SDK and the command line for macOS and Windows: what was built, and the programs for Windows in Wine against a real service."""
import hashlib
import json
import pathlib
import re
import struct
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DECLARED = sorted(name for header in (ROOT / "sdk/c/include/gpurest").glob("*.h")
                  for name in re.findall(r"^GPUREST_API .*?\b(gpurest_\w+)\(", header.read_text(), re.M))
TWICE = 'extern "C" __global__ void twice(unsigned char *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }'
OK, FAILED, USAGE, UNREACHABLE, NOT_FOUND, COMPILE = 0, 1, 2, 3, 5, 7
BYTES = bytes(range(256)) + b"\r\n\n\r\x1a\x00"  # translated if a stream is taken for text

# ---- Mach-O ----

X86_64, ARM64 = 0x01000007, 0x0100000C
EXECUTE, DYLIB = 2, 6
SYMTAB, CODE_SIGNATURE, BUILD_VERSION, LOAD_DYLIB = 0x02, 0x1D, 0x32, 0x0C


class MachO:
    def __init__(self, path):
        self.bytes = path.read_bytes()
        magic, self.processor, _, self.kind, count = struct.unpack_from("<5I", self.bytes)
        assert magic == 0xFEEDFACF, f"{path} is no 64-bit Mach-O file"
        self.commands, at = [], 32
        for _ in range(count):
            command, size = struct.unpack_from("<2I", self.bytes, at)
            self.commands.append((command, self.bytes[at:at + size]))
            at += size

    def of(self, wanted):
        return [data for command, data in self.commands if command == wanted]

    def libraries(self):
        return [data[struct.unpack_from("<I", data, 8)[0]:].split(b"\0")[0].decode() for data in self.of(LOAD_DYLIB)]

    def exports(self):
        """External symbols that are defined in a section, without the underscore of C names."""
        symbols, count, strings, _ = struct.unpack_from("<4I", self.of(SYMTAB)[0], 8)
        for i in range(count):
            name, kind, _, _, _ = struct.unpack_from("<IBBHQ", self.bytes, symbols + 16 * i)
            if kind & 0x01 and not kind & 0x10 and kind & 0x0E == 0x0E:  # external, not private external, in a section
                yield self.bytes[strings + name:].split(b"\0", 1)[0].decode()[1:]


@pytest.mark.parametrize("target, processor", [("aarch64-macos", ARM64), ("x86_64-macos", X86_64)])
def test_files_for_macos(built, target, processor):
    tool, library = MachO(built / target / "bin/gpurest"), MachO(built / target / "lib/libgpurest.dylib")
    assert (tool.processor, tool.kind) == (processor, EXECUTE) and (library.processor, library.kind) == (processor, DYLIB)
    assert tool.libraries() == ["/usr/lib/libSystem.B.dylib"] == library.libraries()
    assert struct.unpack_from("<I", tool.of(BUILD_VERSION)[0], 12)[0] >> 16 == 11, "macOS 11 is the oldest"
    assert sorted(name for name in library.exports() if not name.startswith("_")) == DECLARED
    if processor == ARM64:  # Apple's processors run nothing unsigned
        assert tool.of(CODE_SIGNATURE) and library.of(CODE_SIGNATURE)
    assert (built / target / "lib/libgpurest.a").read_bytes().startswith(b"!<arch>\n")


# ---- PE ----

AMD64, PE64, IS_DLL = 0x8664, 0x20B, 0x2000


class Pe:
    def __init__(self, path):
        self.bytes = path.read_bytes()
        at = struct.unpack_from("<I", self.bytes, 0x3C)[0]
        assert self.bytes.startswith(b"MZ") and self.bytes[at:at + 4] == b"PE\0\0", f"{path} is no PE file"
        self.machine, sections, _, _, _, optional, self.flags = struct.unpack_from("<HHIIIHH", self.bytes, at + 4)
        self.magic = struct.unpack_from("<H", self.bytes, at + 24)[0]
        self.directories = at + 24 + 112
        self.sections = [struct.unpack_from("<4I", self.bytes, at + 24 + optional + 40 * i + 8) for i in range(sections)]

    def offset(self, address):
        (found,) = [raw + address - start for size, start, raw_size, raw in self.sections if start <= address < start + max(size, raw_size)]
        return found

    def text(self, address):
        return self.bytes[self.offset(address):].split(b"\0", 1)[0].decode()

    def exports(self):
        at = self.offset(struct.unpack_from("<I", self.bytes, self.directories)[0])
        count, names = struct.unpack_from("<I", self.bytes, at + 24)[0], struct.unpack_from("<I", self.bytes, at + 32)[0]
        return [self.text(name) for name in struct.unpack_from(f"<{count}I", self.bytes, self.offset(names))]

    def libraries(self):
        at = self.offset(struct.unpack_from("<I", self.bytes, self.directories + 8)[0])
        while name := struct.unpack_from("<I", self.bytes, at + 12)[0]:
            yield self.text(name).lower()
            at += 20


def test_files_for_windows(built):
    folder = built / "x86_64-windows"
    tool, library = Pe(folder / "bin/gpurest.exe"), Pe(folder / "bin/libgpurest.dll")
    assert (tool.machine, tool.magic, tool.flags & IS_DLL) == (AMD64, PE64, 0)
    assert (library.machine, library.magic, library.flags & IS_DLL) == (AMD64, PE64, IS_DLL)
    assert sorted(library.exports()) == DECLARED
    ours = [name for file in (tool, library) for name in file.libraries() if not name.startswith("api-ms-win-crt-")]
    assert set(ours) <= {"kernel32.dll", "shell32.dll", "ws2_32.dll", "bcrypt.dll"}, "a file that Windows does not have"
    assert (folder / "lib/libgpurest.a").read_bytes().startswith(b"!<arch>\n") and (folder / "lib/libgpurest.dll.a").exists()


def test_an_unknown_target_is_refused():
    done = subprocess.run([ROOT / "scripts/cross-clients.sh", "m68k-amiga"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "unknown target m68k-amiga: use aarch64-macos" in done.stderr


# ---- in Wine ----


def test_version_needs_no_service(gpurest):
    done = gpurest("--version", GPUREST_URL="http://127.0.0.1:1")
    assert done.returncode == OK and re.fullmatch(rb"gpurest \d+\.\d+\.\d+\n", done.stdout), done


def test_status(gpurest):
    done = gpurest("status")
    assert done.returncode == OK and done.stdout.startswith(b"ready\n") and b"DEVICES" in done.stdout, done
    assert json.loads(gpurest("status", "--json").stdout)["item"]["ready"] is True


def test_buffers_hold_the_very_bytes(gpurest, tmp_path):
    (tmp_path / "a").write_bytes(BYTES)
    assert gpurest("connect", "windows-buf").returncode == OK
    assert gpurest("buf", "put", "a", "a").returncode == OK  # the session is the one that connect stored
    assert gpurest("buf", "get", "a", "grüße.raw").returncode == OK and (tmp_path / "grüße.raw").read_bytes() == BYTES
    assert gpurest("buf", "get", "a", "-").stdout == BYTES
    assert gpurest("buf", "put", "b", "-", stdin=BYTES[::-1]).returncode == OK and gpurest("buf", "get", "b", "-").stdout == BYTES[::-1]
    assert gpurest("buf", "get", "a", "grüße.raw").returncode == OK, "an existing file is replaced"
    assert sorted(path.name for path in tmp_path.iterdir() if "part" in path.name) == []
    assert gpurest("disconnect", "--force").returncode == OK and gpurest("buffers").returncode == USAGE


def test_large_buffers_take_several_connections(gpurest, tmp_path):
    data = b"".join(hashlib.sha256(i.to_bytes(4, "little")).digest() * 1024 for i in range(2200))  # 68.75 MiB
    (tmp_path / "large").write_bytes(data)
    named = ("--session", "windows-large")
    assert gpurest("connect", "windows-large").returncode == OK
    assert gpurest("buf", "put", "a", "large", *named).returncode == OK
    assert gpurest("buf", "get", "a", "back", *named).returncode == OK and (tmp_path / "back").read_bytes() == data
    assert gpurest("disconnect", "windows-large", "--force").returncode == OK


def test_run(gpurest, tmp_path):
    (tmp_path / "twice.cu").write_text(TWICE)
    done = gpurest("-q", "run", "twice.cu", "twice", "--grid", "1", "--block", "8", "--inout", "-:-", "--arg", "i32:8", stdin=bytes(range(8)))
    assert done.returncode == OK and done.stdout == bytes(range(0, 16, 2)), done


def test_exit_codes(gpurest, tmp_path):
    (tmp_path / "bad.cu").write_text("this is no CUDA\n")
    done = gpurest("run", "bad.cu", "f", "--grid", "1", "--block", "1")
    assert done.returncode == COMPILE and b"bad.cu(1)" in done.stderr, done
    assert gpurest("nonsense").returncode == USAGE
    assert gpurest("buffers", "--session", "windows-none").returncode == NOT_FOUND
    done = gpurest("status", GPUREST_URL="http://127.0.0.1:1")
    assert done.returncode == UNREACHABLE and b"no connection to 127.0.0.1:1: connection refused" in done.stderr, done


@pytest.mark.parametrize("url, words, hint", [("https://localhost:1", b"no libcurl, which https:// needs", b"-DGPUREST_CURL=ON"),
                                              ("unix:///tmp/socket", b"no Unix sockets for unix:///tmp/socket", b"ssh -L")])
def test_what_this_build_does_not_have_is_refused(gpurest, url, words, hint):
    done = gpurest("status", GPUREST_URL=url)
    assert done.returncode == FAILED and words in done.stderr and hint in done.stderr, done


SHARE = r"""
#include <gpurest/share.h>
#include <stdio.h>

int main(void)
{
    gpurest_client *client;
    gpurest_session *session;
    gpurest_buffer buffer;
    void *memory = NULL;
    gpurest_status st;

    if (gpurest_open(&client, NULL) || gpurest_session_open(&session, client, NULL) || gpurest_alloc(session, &buffer, 4096)) {
        fprintf(stderr, "%s\n", gpurest_last_error()->message);
        return 1;
    }
    st = gpurest_share(session, buffer, &memory);
    printf("%s: %s", gpurest_status_name(st), gpurest_last_error()->message);
    gpurest_session_close(session);
    gpurest_close(client);
    return memory != NULL;
}
"""


def test_a_program_with_the_library(built, wine, service, tmp_path):
    """Compiled as a user would, with the installed headers and the import library; the DLL lies beside it. Shared memory is refused."""
    folder = built / "x86_64-windows"
    (tmp_path / "share.c").write_text(SHARE)
    (tmp_path / "libgpurest.dll").write_bytes((folder / "bin/libgpurest.dll").read_bytes())
    subprocess.run([built / "tools/cc-x86_64-windows", "-I", folder / "include", "share.c", folder / "lib/libgpurest.dll.a", "-o", "share.exe"], cwd=tmp_path,
                   check=True, timeout=600)
    done = wine(tmp_path / "share.exe", GPUREST_URL=f"http://127.0.0.1:{service.port}", cwd=tmp_path)
    assert done.returncode == OK, done
    assert done.stdout == b"GPUREST_E_UNSUPPORTED: shared memory needs Linux, on the service's own host", done
