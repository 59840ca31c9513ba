#!/usr/bin/env python3
"""Builds NVIDIA's cuda-samples with nvcc, with -cudart shared and PTX, and runs them over `gpurest exec --local`: prints a table of name, result and
reason, and the counts. Nothing of theirs is in this tree: CUDA_SAMPLES names a checkout of github.com/NVIDIA/cuda-samples. It takes about half an
hour, so that no run of the tests has it.

    CUDA_SAMPLES=~/cuda-samples GPUREST_CLI=build/release/sdk/cli/gpurest tests/sdk/shim/cuda_samples.py [--device cpu:0] [--only PATTERN] [--built FOLDER]
        [--run-only] [--url URL --library FOLDER] [--genuine FOLDERS] [--seconds N] [--beside N]

--built keeps the programs for another run; --run-only takes those that are there, so that no compiler is needed. --url runs them over a service that
runs already, with the libraries in --library (the folder of libcuda.so.1), instead of a private one for each. --genuine runs each without gpurest
first, with NVIDIA's libraries in those folders, and the table has a column more. --beside says how many run at once; what failed then runs again alone.
Results: passed, waived (the sample says that the device cannot do what it shows), failed, not built (the compiler or a library is missing), not tried
(it draws, or needs a library that asks the genuine driver for private tables)."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NOT_TRIED = {"OpenGL|OPENGL_LIB|GLUT|glfw|GLFW": "draws with OpenGL", r"\bEGL": "needs EGL", r"\b(Vulkan|VULKAN)": "draws with Vulkan", r"\bMPI": "needs MPI", r"\b(NVSCI|NvSci|CUDLA|NVMEDIA)": "needs a library of other devices",
             r"CUDA::(cublas|cufft|cusolver|cusparse|curand|npp\w*|nvjpeg|nvgraph|cublas_static|cufft_static)": "needs {}, which asks the genuine driver for private tables",
             "libNVVM|NVVM_LIB|LIBNVVM": "compiles NVVM IR on the host", r"project\(cdp": "launches kernels from kernels", r"project\(simpleD3D": "needs Windows"}
WAIVED, BUILD_S, RUN_S = 2, 900, 300


def command(arguments, cwd, seconds, **environment):
    """(exit code, output); 124: it took too long, and was ended with all that it had started."""
    with tempfile.TemporaryFile() as said:
        program = subprocess.Popen(arguments, cwd=cwd, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, **environment})
        try:
            code = program.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
            code = 124
        said.seek(0)
        return code, said.read().decode(errors="replace") + ("\nit takes too long" if code == 124 else "")


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
            shutil.copytree(include / "cccl" / "nv" if (include / "cccl").is_dir() else include / "nv", out / "nv")
            shutil.copy(include / "cooperative_groups.h", out)
        return None

    def run(self, out, way):
        """(result, reason) of a run in a copy of the sample's folder."""
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place, "of", "a", self.name)
            shutil.copytree(self.folder, folder)
            shutil.copytree(out, folder, dirs_exist_ok=True)
            (folder / "program").rename(folder / f"{self.name}.run")
            code, said = command([*way.before, folder / f"{self.name}.run"], folder, way.seconds, **way.environment)
        if code == 0 and not re.search(r"\bFAILED\b|Test failed", said):
            return "passed", ""
        return "waived" if code == WAIVED else "failed", reason_in(said) + (f" (exit code {code})" if code not in (0, 1, WAIVED) else "")


class Way:
    """How programs run: what stands before them, and their environment."""

    def __init__(self, seconds, *before, **environment):
        self.seconds, self.before, self.environment = seconds, before, environment


def ways(chosen):
    """By name, the last one over gpurest."""
    found = {}
    if chosen.genuine:
        found["genuine"] = Way(chosen.seconds, LD_LIBRARY_PATH=chosen.genuine)
    if chosen.url:
        # NVRTC and nvJitLink are NVIDIA's in either way, and stand behind our libraries.
        found["gpurest"] = Way(chosen.seconds, GPUREST_URL=chosen.url, GPUREST_DEVICE=chosen.device, LD_LIBRARY_PATH=os.pathsep.join(filter(None, [str(chosen.library.resolve()), chosen.genuine])))
    else:
        tool = pathlib.Path(os.environ["GPUREST_CLI"]).resolve()
        found["gpurest"] = Way(chosen.seconds, tool, "exec", "--local", "--device", chosen.device, "--")
    return found


def prepare(samples, built, run_only):
    """The samples that have a program, and results of the others."""
    ready, others = [], {}

    def build(sample):
        why = sample.not_tried()
        if why:
            return "not tried", why
        why = ("there is no program" if not (built / sample.name / "program").exists() else None) if run_only else sample.build(built / sample.name)
        return ("not built", why) if why else None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for sample, result in zip(samples, pool.map(build, samples)):
            if result:
                others[sample.name] = result
            else:
                ready.append(sample)
    return ready, others


def run_all(samples, built, way, beside):
    """Results by name; what failed beside others runs again alone: a service has so many workers."""
    results = {}

    def run(sample):
        results[sample.name] = sample.run(built / sample.name, way)
        print(sample.name, *results[sample.name], file=sys.stderr, flush=True)

    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(beside) as pool:
        list(pool.map(run, samples))
    for sample in samples:
        if beside > 1 and results[sample.name][0] == "failed" and "it takes too long" not in results[sample.name][1]:
            run(sample)
    print(f"{len(samples)} programs in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return results


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--device", default="cpu:0")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--built", type=pathlib.Path)
    arguments.add_argument("--run-only", action="store_true")
    arguments.add_argument("--url")
    arguments.add_argument("--library", type=pathlib.Path)
    arguments.add_argument("--genuine")
    arguments.add_argument("--seconds", type=float, default=RUN_S)
    arguments.add_argument("--beside", type=int, default=os.cpu_count())
    chosen = arguments.parse_args()
    if "CUDA_SAMPLES" not in os.environ or not (chosen.run_only or shutil.which("nvcc")) or not (chosen.library if chosen.url else "GPUREST_CLI" in os.environ):
        sys.exit("it needs nvcc, CUDA_SAMPLES (a checkout of NVIDIA's cuda-samples) and GPUREST_CLI (gpurest); see --help")
    root, built = pathlib.Path(os.environ["CUDA_SAMPLES"]).resolve(), (chosen.built or pathlib.Path(tempfile.mkdtemp())).resolve()
    samples = [Sample(path.parent, root / "Common") for path in sorted(root.glob("Samples/*/*/CMakeLists.txt")) if re.search(chosen.only, path.parent.name)]
    ready, others = prepare(samples, built, chosen.run_only)
    results = {name: run_all(ready, built, way, chosen.beside) for name, way in ways(chosen).items()}
    for sample in samples:
        columns = [others[sample.name]] if sample.name in others else [of_way[sample.name] for of_way in results.values()]
        print(" | ".join([sample.name, *[result for result, _ in columns], columns[-1][1]]))
    for name, of_way in results.items():
        counts = collections.Counter(result for result, _ in [*others.values(), *of_way.values()])
        print(f"\n{name}: " + ", ".join(f"{count} {result}" for result, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
