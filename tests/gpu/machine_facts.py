# SPDX-License-Identifier: Apache-2.0
"""What this machine is, as far as programs that need no installing tell."""
import pathlib
import platform
import shutil
import subprocess


def said_by(*words):
    """The output of a program, "" if it is not here or fails."""
    if not shutil.which(words[0]):
        return ""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def torch_of(python):
    return said_by(python, "-c", "import torch; print(torch.__version__ if torch.cuda.is_available() else '')")


def find_python_with_torch():
    for name in ("python3", "python"):
        if version := torch_of(name):
            return name, version
    return "", ""


def describe():
    gpus = said_by("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    python, torch = find_python_with_torch() if gpus else ("", "")
    return {"gpu": gpus or "none: nvidia-smi names no device", "cpu": processor(),
            "kernel": platform.release(), "torch": torch or "none that finds a GPU", "python": python}


def has_gpu(facts):
    return not facts["gpu"].startswith("none")
