# SPDX-License-Identifier: Apache-2.0
"""What this machine is, as far as its driver and programs that need no installing tell."""
import ctypes
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


def devices(driver):
    """[{name, mib, version}] of all GPUs, as the driver at this path says; its version is CUDA's. OSError without one."""
    cuda, count, version = ctypes.CDLL(driver), ctypes.c_int(), ctypes.c_int()
    if code := cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or cuda.cuDriverGetVersion(ctypes.byref(version)):
        raise OSError(f"{driver} says error {code}")
    found = []
    for i in range(count.value):
        device, name, size = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
        cuda.cuDeviceGet(ctypes.byref(device), i)
        cuda.cuDeviceGetName(name, 256, device)
        cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device)
        found.append({"name": name.value.decode(), "mib": size.value >> 20, "version": version.value})
    return found


def describe(gpus):
    return {"gpu": gpus, "driver": said_by("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"), "cpu": processor(),
            "kernel": platform.release()}


def has_gpu(facts):
    return bool(facts["gpu"])
