"""run, compile and kernels with shaders: GLSL and SPIR-V for a vulkan device, and a device or options of the compiler for any kernel."""
import re
import shutil
import struct
import subprocess

import pytest

from conftest import ROOT
from fixtures import vulkan  # noqa: F401
from test_cli import npy

OK, FAILED, USAGE, COMPILE = 0, 1, 2, 7
SCALE = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 3) const uint TIMES = 2;
#ifndef PLUS
#define PLUS 0
#endif
layout(binding = 0) readonly buffer From { float from[]; };
layout(binding = 1) writeonly buffer To { float to[]; };
layout(push_constant) uniform Push { uint n; float by; };
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        to[i] = from[i] * by * TIMES + PLUS;
}
"""
FREE = """#version 450
layout(local_size_x_id = 0) in;
layout(binding = 0) buffer To { uint to[]; };
void main() { to[gl_WorkGroupID.x] = gl_WorkGroupSize.x; }
"""
RUN = ("main", "--grid", "2", "--in", "x", "--out", "y:400", "--arg", "u32:100", "--arg", "f32:0.5")


@pytest.fixture
def shades(bare, vulkan, tmp_path):  # noqa: F811
    (tmp_path / "scale.comp").write_text(SCALE)
    (tmp_path / "x").write_bytes(struct.pack("<100f", *range(100)))
    return lambda *arguments, **more: bare(*arguments, **{"GPUREST_URL": f"http://127.0.0.1:{vulkan.port}", **more})


def result(folder):
    return struct.unpack("<100f", (folder / "y").read_bytes())


@pytest.mark.parametrize("options,times,plus", [((), 2, 0), (("--", "-DPLUS=7"), 2, 7), (("--", "--specialize=3=5", "-DPLUS=1"), 5, 1)])
def test_a_shader_runs(shades, tmp_path, options, times, plus):
    done = shades("run", "--device", "vulkan:0", "scale.comp", *RUN, *options)
    assert done.returncode == OK and b"kernel " in done.stderr, done.stderr
    assert result(tmp_path) == tuple(i * 0.5 * times + plus for i in range(100))


def test_spirv_is_known_by_its_first_word(shades, tmp_path):
    assert shades("compile", "scale.comp", "-o", "scale.spv").returncode == OK
    shutil.copy(tmp_path / "scale.spv", tmp_path / "nameless")
    for name, options, times in (("scale.spv", (), 2), ("nameless", ("--", "--specialize=3=9"), 9)):
        done = shades("run", name, *RUN, *options)
        assert done.returncode == OK, done.stderr
        assert result(tmp_path) == tuple(i * 0.5 * times for i in range(100))
    assert b"u64@0 u64@8 u32@16 f32@20" in shades("kernels", "nameless", "--device", "vulkan:0").stdout


def test_spirv_of_a_compiler_elsewhere(shades, tmp_path):
    compiler = shutil.which("glslangValidator")
    if not compiler:
        pytest.skip("glslangValidator is not installed")
    subprocess.run([compiler, "--quiet", "--target-env", "vulkan1.2", "-V", "scale.comp", "-o", "k.spv"], check=True, cwd=tmp_path)
    assert shades("run", "k.spv", *RUN).returncode == OK and result(tmp_path) == tuple(range(100))


def test_glsl_is_known_by_its_first_word(shades, tmp_path):
    (tmp_path / "scale.txt").write_text("\n" + SCALE)
    assert shades("run", "scale.txt", *RUN).returncode == OK and result(tmp_path) == tuple(range(100))


def test_the_example_of_the_help_works(shades, tmp_path):
    rows = (ROOT / "sdk/cli/src/commands/examples.def").read_text().splitlines()
    (line,) = [re.match(r'EXAMPLE\("run", +"([^"]+)"', row)[1] for row in rows if row.startswith('EXAMPLE("run"') and "vulkan" in row]
    source = SCALE.replace("constant_id = 3", "constant_id = 0").replace("readonly buffer From { float from[]; };", "buffer To { float to[]; };")
    (tmp_path / "scale.comp").write_text(source.replace("layout(binding = 1) writeonly buffer To { float to[]; };\n", "").replace("= from[i]", "= to[i]"))
    (tmp_path / "x.npy").write_bytes(npy("<f4", "(1024,)", struct.pack("<1024f", *range(1024))))
    assert shades("run", *line.split()).returncode == OK
    assert struct.unpack("<1024f", (tmp_path / "x.npy").read_bytes()[-4096:]) == tuple(i * 2 * 3 + 1 for i in range(1024))


def test_a_workgroup_that_the_code_leaves_open(shades, tmp_path):
    (tmp_path / "free.comp").write_text(FREE)
    assert shades("run", "free.comp", "main", "--grid", "4", "--block", "32", "--out", "y:16").returncode == OK
    assert struct.unpack("<4I", (tmp_path / "y").read_bytes()) == (32,) * 4


def test_errors_of_a_shader_have_its_name(shades, tmp_path):
    (tmp_path / "bad.comp").write_text(SCALE.replace("PLUS;", "nobody;"))
    done = shades("run", "bad.comp", *RUN)
    assert done.returncode == COMPILE and b"bad.comp" in done.stderr and b"nobody" in done.stderr and b"kernel.comp" not in done.stderr, done.stderr
    (tmp_path / "bad.spv").write_bytes(b"\x03\x02\x23\x07" + bytes(40))
    done = shades("run", "bad.spv", *RUN)
    assert done.returncode != OK and b"SPIR-V" in done.stderr, done.stderr
    (tmp_path / "none.spv").write_bytes(b"nothing of this kind")
    done = shades("run", "none.spv", *RUN)
    assert done.returncode != OK and b"SPIR-V" in done.stderr, done.stderr


def test_mistakes_are_named(shades, tmp_path):
    done = shades("run", "scale.comp", "main", "--grid", "2", "--in", "x")
    assert done.returncode != OK and b"argument" in done.stderr
    done = shades("run", "scale.comp", *RUN, "--", "--specialize=4=1")
    assert done.returncode != OK and b"4" in done.stderr
    done = shades("run", "--device", "vulkan:9", "scale.comp", *RUN)
    assert done.returncode != OK and b"unknown device" in done.stderr, done.stderr
    assert not (tmp_path / "y").exists()


def test_built_in_kernels_run(shades, tmp_path):
    (tmp_path / "k").write_bytes(struct.pack("<4I", 7, 3, 9, 1))
    done = shades("run", "--builtin", "sort", "--dtype", "u32", "--device", "vulkan:0", "--in", "k", "--out", "s:16", "--arg", "u64:4", "--arg", "u8:1")
    assert done.returncode == OK, done.stderr
    assert struct.unpack("<4I", (tmp_path / "s").read_bytes()) == (1, 3, 7, 9)[::-1]
    done = shades("run", "--builtin", "erf", "--dtype", "f64", "--device", "vulkan:0", "--in", "k", "--out", "s:16", "--arg", "u64:2")
    assert done.returncode != OK and b"vulkan devices do not have erf of f64" in done.stderr, done.stderr


def test_a_kernel_of_cuda_on_a_device_and_with_options(gpurest, tmp_path):
    (tmp_path / "k.cu").write_text('extern "C" __global__ void k(int *x) { x[threadIdx.x] = N; printf("one\\n"); }')
    done = gpurest("run", "k.cu", "k", "--device", "cpu:0", "--grid", "1", "--block", "4", "--out", "y:16", "--", "-DN=7")
    assert done.returncode == OK and done.stdout == b"one\n" * 4, done.stderr
    assert struct.unpack("<4i", (tmp_path / "y").read_bytes()) == (7,) * 4
    assert gpurest("sessions", "--output", "name").stdout == b""  # none is left behind
    done = gpurest("run", "k.cu", "k", "--grid", "1", "--out", "y:16")
    assert done.returncode == USAGE and b"--block is required" in done.stderr
    done = gpurest("run", "--builtin", "fill", "--dtype", "f32", "--device", "cpu:0", "--out", "y:16", "--arg", "u64:4", "--arg", "f32:2")
    assert done.returncode == OK and struct.unpack("<4f", (tmp_path / "y").read_bytes()) == (2,) * 4, done.stderr
    done = gpurest("run", "--builtin", "fill", "--dtype", "f32", "--out", "y:16", "--arg", "u64:4", "--arg", "f32:2", "--", "-DN=7")
    assert done.returncode == USAGE and b"options" in done.stderr
