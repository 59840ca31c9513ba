"""Our declarations of the driver's types have the binary form of NVIDIA's, where a header of theirs is there to compare with."""
import pathlib
import re
import subprocess

import pytest

from conftest import ROOT

HEADERS = [pathlib.Path("/usr/local/cuda/include/cuda.h"), *sorted((ROOT / ".nvrtc").glob("**/include/cuda.h"))]
OURS = ROOT / "sdk" / "shim" / "src" / "types.h"
SCALARS = ["CUresult", "CUdevice", "CUdeviceptr", "cuuint64_t", "CUuuid", "CUdevice_attribute", "CUjit_option", "CUlimit", "CUmemorytype"]
STRUCTS = ["CUDA_MEMCPY2D", "CUDA_MEMCPY3D", "CUlaunchAttribute", "CUlaunchConfig"]


def members():
    """STRUCT.MEMBER of all structs, as types.h has them."""
    found = []
    for body, name in re.findall(r"typedef struct \{\n(.*?)\n\} (\w+);", OURS.read_text(), re.S):
        if name in STRUCTS:
            body = re.sub(r"union \{.*?\} (\w+);", r"int \1;", body, flags=re.S)
            for declaration in body.split(";"):
                found += [f"{name}.{re.sub(r'.*[ *]', '', re.sub(r'[[].*', '', one).strip())}" for one in declaration.split(",") if one.strip()]
    assert len(found) > 50
    return found


def printed(folder, header):
    lines = [f'printf("{name} %zu\\n", sizeof({name}));' for name in SCALARS + STRUCTS]
    lines += [f'printf("{one} %zu\\n", offsetof({one.replace(".", ", ")}));' for one in members()]
    source = folder / f"{header.parent.name}.c"
    source.write_text(f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\nint main(void)\n{{\n' + "\n".join(lines) + "\nreturn 0;\n}\n")
    subprocess.run(["cc", "-I", OURS.parent, source, "-o", source.with_suffix("")], check=True, timeout=120)
    return subprocess.run([source.with_suffix("")], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


def test_types_have_the_drivers_form(tmp_path):
    header = next((h for h in HEADERS if h.exists()), None)
    if not header:
        pytest.skip("cuda.h is not here: a CUDA toolkit has it")
    assert printed(tmp_path, OURS) == printed(tmp_path, header)
