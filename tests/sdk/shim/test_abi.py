"""Our declarations of the driver's and the runtime's types have the binary form of NVIDIA's, where headers of theirs are there to compare with."""
import pathlib
import re
import subprocess

import pytest

from conftest import ROOT

FOLDERS = [pathlib.Path("/usr/local/cuda/include"), *(path.parent for path in sorted((ROOT / ".nvrtc").glob("**/include/cuda.h")))]
SHIM = ROOT / "sdk" / "shim"
# Per header: scalars, structs, and our header.
WHAT = {"cuda.h": (["CUresult", "CUdevice", "CUdeviceptr", "cuuint64_t", "CUuuid", "CUdevice_attribute", "CUjit_option", "CUlimit", "CUmemorytype"],
                   ["CUDA_MEMCPY2D", "CUDA_MEMCPY3D", "CUlaunchAttribute", "CUlaunchConfig", "CUctxCreateParams", "CUmemPoolProps", "CUmemAccessDesc", "CUmemLocation", "CUDA_KERNEL_NODE_PARAMS", "CUDA_MEMSET_NODE_PARAMS",
                    "CUDA_HOST_NODE_PARAMS", "CUDA_GRAPH_INSTANTIATE_PARAMS", "CUgraphExecUpdateResultInfo", "CUgraphEdgeData",
                    "CUDA_ARRAY_DESCRIPTOR", "CUDA_ARRAY3D_DESCRIPTOR", "CUDA_RESOURCE_DESC", "CUDA_TEXTURE_DESC", "CUDA_RESOURCE_VIEW_DESC"], SHIM / "src" / "types.h"),
        "cuda_runtime_api.h": (["cudaError_t", "cudaStream_t", "cudaMemcpyKind", "cudaUUID_t"],
                           ["cudaExtent", "cudaPos", "cudaPitchedPtr", "cudaMemcpy3DParms", "cudaLaunchConfig_t", "cudaChannelFormatDesc", "cudaFuncAttributes", "cudaPointerAttributes",
                            "cudaDeviceProp", "cudaKernelNodeParams", "cudaResourceDesc", "cudaTextureDesc"], SHIM / "runtime" / "types.h")}


def members(ours, structs):
    """STRUCT.MEMBER of all structs, as our header has them."""
    found = []
    for body, name in re.findall(r"typedef struct \{\n(.*?)\n\} (\w+);", ours.read_text(), re.S):
        if name in structs:
            body = re.sub(r"union \{.*?\} (\w+);", r"int \1;", body, flags=re.S)
            for declaration in body.split(";"):
                found += [f"{name}.{re.sub(r'.*[ *]', '', re.sub(r'[[].*', '', one).strip())}" for one in declaration.split(",") if one.strip()]
    assert len(found) > 50 and {one.split(".")[0] for one in found} == set(structs)
    return found


def printed(folder, header, included, scalars, structs, ours):
    """In C, NVIDIA's have tags and no names for some; ours are names."""
    lines = [f'printf("{name} %zu\\n", sizeof({name}));' for name in scalars + structs]
    lines += [f'printf("{one} %zu\\n", offsetof({one.replace(".", ", ")}));' for one in members(ours, structs)]
    source = folder / f"{header}_{included.parent.name}.cpp"
    source.write_text(f'#include <stddef.h>\n#include <stdio.h>\n#include "{included}"\nint main(void)\n{{\n' + "\n".join(lines) + "\nreturn 0;\n}\n")
    subprocess.run(["c++", "-w", "-I", included.parent, source, "-o", source.with_suffix("")], check=True, timeout=120)
    return subprocess.run([source.with_suffix("")], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


@pytest.mark.parametrize("header", WHAT)
def test_types_have_nvidias_form(tmp_path, header):
    folder = next((f for f in FOLDERS if (f / header).exists()), None)
    if not folder:
        pytest.skip(f"{header} is not here: a CUDA toolkit has it")
    scalars, structs, ours = WHAT[header]
    assert printed(tmp_path, header, ours, *WHAT[header]) == printed(tmp_path, header, folder / header, *WHAT[header])
