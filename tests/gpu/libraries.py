# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries of NVIDIA that the plugins open by name, where machines usually have them.

They are looked for by the loader, then in the folders of the driver and of the CUDA toolkit, then in those of
the wheels that PyTorch brings (nvidia/*/lib) to every Python on the PATH. The folder of what the loader would
not find is put into LD_LIBRARY_PATH. The driver is the first, because its version says which others will do.
"""
import glob
import json
import os
import pathlib
import re
import subprocess
import sys

from machine_facts import describe
from runs import row

HERE = pathlib.Path(__file__).resolve().parent
TOOLKIT = ("/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/usr/lib/x86_64-linux-gnu")
DRIVER = ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64/nvidia", "/usr/lib/wsl/lib")
CUDA_13 = 13000  # as cuDriverGetVersion counts
# What: the names it has with CUDA 13 and with 12, and what brings it.
WANTED = {
    "cuBLASLt": (("libcublasLt.so.13", "libcublasLt.so.12"), "pip install nvidia-cublas"),
    "NVRTC": (("libnvrtc.so.13", "libnvrtc.so.12"), "pip install nvidia-cuda-nvrtc"),
    "NCCL": (("libnccl.so.2",), "pip install nvidia-nccl-cu13 (for several GPUs alone)"),
}


def python(code):
    """Code by this Python, in another process, because a loader reads its paths once."""
    environment = os.environ | {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": str(HERE)}
    return subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=60, env=environment)


def pythons():
    """Every python3 on the PATH, each once."""
    found = {}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for file in sorted(glob.glob(os.path.join(glob.escape(folder), "python3*"))):
            if re.fullmatch(r"python3(\.\d+)?", os.path.basename(file)):
                found.setdefault(file)
    return list(found)


def wheel_folders():
    """The lib folders of NVIDIA's wheels. A Python of an environment has a path of its own."""
    found = {}
    for other in pythons():
        said = subprocess.run([other, "-c", "import sys; print('\\n'.join(sys.path))"], text=True, capture_output=True)
        for place in filter(None, said.stdout.splitlines()):
            for folder in sorted(glob.glob(os.path.join(glob.escape(place), "nvidia/*/lib"))):
                found.setdefault(folder)
    return list(found)


def usual(patterns):
    return [folder for pattern in patterns for folder in sorted(glob.glob(pattern), reverse=True)]


# Prints the file that the loader took.
LOAD = """import ctypes
ctypes.CDLL({0!r})
print(next(line.split()[-1] for line in open("/proc/self/maps") if {0!r} in line))"""


def first_that_works(name, folders, code):
    """What the code prints where the loader finds the library, or would with one of the folders, which then is added to
    its paths. Of failures the last reason is raised as OSError."""
    given, why = os.environ.get("LD_LIBRARY_PATH", ""), f"{name} was not found"
    for folder in ["", *folders]:
        if folder and not pathlib.Path(folder, name).exists():
            continue
        os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, [given, folder]))
        done = python(code)
        if done.returncode == 0:
            return done.stdout.strip()
        if folder:
            why = f"{folder}/{name}: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}"
    os.environ["LD_LIBRARY_PATH"] = given
    raise OSError(why)


def find_driver(facts):
    """Fills the facts about the machine."""
    name = "libcuda.so.1"
    try:
        said = first_that_works(name, usual(DRIVER), f"import json, machine_facts; print(json.dumps(machine_facts.devices({name!r})))")
    except OSError as fault:
        facts.update(describe([]))
        return row("driver", "skipped", f"no NVIDIA driver here: {fault}")
    facts.update(describe(json.loads(said)))
    return row("driver", "passed", ", ".join(f"{gpu['name']}, {gpu['mib']} MiB" for gpu in facts["gpu"]) or "it shows no GPU")


def find(what, folders, version):
    names, remedy = WANTED[what]
    if len(names) > 1 and version < CUDA_13:
        names = names[1:]
    why = ""
    for name in names:
        try:
            return row(what, "passed", first_that_works(name, folders, LOAD.format(name)))
        except OSError as fault:
            why = why or str(fault)
    return row(what, "skipped" if what == "NCCL" else "failed", f"{why}; {remedy}, or the CUDA toolkit")


def libraries(root, facts):
    """Rows of what was found; without a GPU the others are not looked for."""
    yield find_driver(facts)
    if facts["gpu"]:
        folders = usual(TOOLKIT) + wheel_folders()
        yield from (find(what, folders, facts["gpu"][0]["version"]) for what in WANTED)
