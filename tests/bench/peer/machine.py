# SPDX-License-Identifier: Apache-2.0
"""The machine in words, and how busy others keep it."""
import os
import platform
import time

from contestants import CPUS

FEATURES = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16")


def processor():
    entries = {}
    with open("/proc/cpuinfo") as info:
        for line in info:
            key, _, value = line.partition(":")
            entries.setdefault(key.strip(), value.strip())
    has = set(entries.get("flags", "").split())
    return {"model": f"{entries.get('model name', '?')}, family {entries.get('cpu family', '?')}, "
                     f"model {entries.get('model', '?')}",
            "features": [f for f in FEATURES if f in has]}


def describe():
    return processor() | {"cpus": os.cpu_count(), "pinned to": CPUS, "kernel": platform.release()}


def busy_share(seconds=1.0):
    """The share of all CPUs in use now; contestants are asleep when this is asked."""
    def read():
        with open("/proc/stat") as stat:
            numbers = list(map(int, stat.readline().split()[1:9]))
        return sum(numbers) - numbers[3] - numbers[4], sum(numbers)
    busy, total = read()
    time.sleep(seconds)
    busy_later, total_later = read()
    return (busy_later - busy) / max(total_later - total, 1)
