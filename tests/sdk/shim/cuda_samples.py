#!/usr/bin/env python3
"""Builds NVIDIA's cuda-samples with nvcc, with -cudart shared and PTX, and runs them over `gpurest exec --local`: prints a table of name, result and
reason, and the counts. Nothing of theirs is in this tree: CUDA_SAMPLES names a checkout of github.com/NVIDIA/cuda-samples. It takes about half an
hour, so that no run of the tests has it.

    CUDA_SAMPLES=~/cuda-samples GPUREST_CLI=build/release/sdk/cli/gpurest tests/sdk/shim/cuda_samples.py [--device cpu:0] [--only PATTERN] [--built FOLDER]

--built keeps the programs for another run. Results: passed, waived (the sample says that the device cannot do what it shows), failed, not built
(the compiler or a library is missing), not tried (it draws, or needs a library that asks the genuine driver for private tables)."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

NOT_TRIED = {"OpenGL|OPENGL_LIB|GLUT|glfw|GLFW": "draws with OpenGL", r"\bEGL": "needs EGL", r"\b(Vulkan|VULKAN)": "draws with Vulkan", r"\bMPI": "needs MPI", r"\b(NVSCI|NvSci|CUDLA|NVMEDIA)": "needs a library of other devices",
             r"CUDA::(cublas|cufft|cusolver|cusparse|curand|npp\w*|nvjpeg|nvgraph|cublas_static|cufft_static)": "needs {}, which asks the genuine driver for private tables",
             "libNVVM|NVVM_LIB|LIBNVVM": "compiles NVVM IR on the host", r"project\(cdp": "launches kernels from kernels", r"project\(simpleD3D": "needs Windows"}
WAIVED, BUILD_S, RUN_S = 2, 900, 300


def command(arguments, cwd, seconds, **environment):
    """(exit code, output); 124: it took too long."""
    try:
        done = subprocess.run(arguments, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, text=True, errors="replace", env={**os.environ, **environment})
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as expired:
        return 124, (expired.stdout or b"").decode(errors="replace") + "\nit takes too long"


def reason_in(text):
    """What a reader looks for first: a line of ours, or one about an error, or the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for pattern in (r"^gpurest: ", r"(?i)error", r"(?i)fail"):
        found = next((line for line in lines if re.search(pattern, line)), None)
        if found:
            return found[:160]
    return lines[-1][:160] if lines else "it says nothing"


class Sample:
    def __init__(self, folder, common):
        self.folder, self.common, self.name = folder, common, folder.name
        text = (folder / "CMakeLists.txt").read_text(errors="replace")
        self.text = re.sub(r"#.*", "", text)
        made = re.search(r"add_executable\(\s*(\w+)\s+(.*?)\)", self.text, re.S)
        self.sources = [name.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "") for name in made[2].split() if re.search(r"\.(cu|cpp|c|cc)$", name)] if made else []
        # Code of kernels in files of its own, which the program looks for where it runs.
        self.images = re.findall(r'set\(CUDA_(?:FATBIN|PTX)_FILE\s+"\$\{CMAKE_CURRENT_BINARY_DIR\}/(?:data/)?(\S+?)"\)\s*set\(CUDA_KERNEL_SOURCE\s+"\$\{CMAKE_CURRENT_SOURCE_DIR\}/(\S+?)"\)', self.text)

    def not_tried(self):
        for pattern, why in NOT_TRIED.items():
            found = re.search(pattern, self.text)
            if found:
                return why.format(found[0].removeprefix("CUDA::"))
        return None if self.sources else "makes no program"

    def build(self, out):
        """None, or why there is none."""
        out.mkdir(parents=True, exist_ok=True)
        libraries = [f"-l{library}" for library, names in {"cuda": "cuda_driver|CUDA_LIB|-lcuda", "nvrtc": "nvrtc", "gomp": "OpenMP", "nvJitLink": "NVJITLINK"}.items() if re.search(names, self.text)]
        target = ["-std=c++17", "--extended-lambda", "-Wno-deprecated-gpu-targets", "-w", "-gencode", "arch=compute_75,code=compute_75", "-I", self.common, "-I", self.folder, "-I", self.folder / "inc"]
        if "OpenMP" in self.text:
            target += ["-Xcompiler", "-fopenmp"]
        if not (out / "program").exists():
            code, said = command(["nvcc", "-cudart", "shared", *target, *self.sources, "-o", out / "program", *libraries], self.folder, BUILD_S)
            if code:
                return reason_in(said)
        for name, source in self.images:
            if not (out / name).exists():
                code, said = command(["nvcc", *target[:4], "-I", self.common, "-ptx" if name.endswith("ptx") else "-fatbin", "-o", out / name, source], self.folder, BUILD_S)
                if code:
                    return reason_in(said)
        if "cooperative_groups.h" in self.text and not (out / "cooperative_groups.h").exists():  # for NVRTC, which looks where the program is
            include = pathlib.Path(shutil.which("nvcc")).resolve().parents[1] / "include"
            shutil.copytree(include / "cooperative_groups", out / "cooperative_groups")
            shutil.copy(include / "cooperative_groups.h", out)
        return None

    def run(self, out, tool, device):
        """(result, reason) of a run in a copy of the sample's folder."""
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place, "of", "a", self.name)
            shutil.copytree(self.folder, folder)
            shutil.copytree(out, folder, dirs_exist_ok=True)
            (folder / "program").rename(folder / f"{self.name}.run")
            code, said = command([tool, "exec", "--local", "--device", device, "--", folder / f"{self.name}.run"], folder, RUN_S)
        if code == 0 and not re.search(r"\bFAILED\b|Test failed", said):
            return "passed", ""
        return "waived" if code == WAIVED else "failed", reason_in(said) + (f" (exit code {code})" if code not in (0, 1, WAIVED) else "")

    def result(self, built, tool, device):
        why = self.not_tried()
        if why:
            return "not tried", why
        why = self.build(built / self.name)
        return ("not built", why) if why else self.run(built / self.name, tool, device)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--device", default="cpu:0")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--built", type=pathlib.Path)
    chosen = arguments.parse_args()
    if "CUDA_SAMPLES" not in os.environ or "GPUREST_CLI" not in os.environ or not shutil.which("nvcc"):
        sys.exit("it needs nvcc, CUDA_SAMPLES (a checkout of NVIDIA's cuda-samples) and GPUREST_CLI (gpurest)")
    root, tool = pathlib.Path(os.environ["CUDA_SAMPLES"]).resolve(), pathlib.Path(os.environ["GPUREST_CLI"]).resolve()
    built = (chosen.built or pathlib.Path(tempfile.mkdtemp())).resolve()
    samples = [Sample(path.parent, root / "Common") for path in sorted(root.glob("Samples/*/*/CMakeLists.txt")) if re.search(chosen.only, path.parent.name)]
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for sample, (result, why) in zip(samples, pool.map(lambda sample: sample.result(built, tool, chosen.device), samples)):
            counts[result] += 1
            print(f"{sample.name} | {result} | {why}", flush=True)
    print("\n" + ", ".join(f"{count} {result}" for result, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
