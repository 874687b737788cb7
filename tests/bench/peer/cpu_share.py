# SPDX-License-Identifier: Apache-2.0
"""Processes that each get a fixed share of a CPU, by the kernel's bandwidth control: more ranks than
CPUs then run side by side as on slower CPUs of their own, and what one leaves idle no other takes."""
import os
import pathlib

PERIOD_US = 4000
V1, V2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")


class CpuShare:
    """Takes effect for one process. Needs root and a cgroup file system; `reason()` says what is missing."""

    def __init__(self, pid, share):
        quota = round(PERIOD_US * share)
        one = (V1 if V1.is_dir() else V2) / f"orrery-bench-{pid}"
        one.mkdir()
        self.group = one
        if V1.is_dir():
            (one / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (one / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (one / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        (one / "cgroup.procs").write_text(str(pid))

    def close(self):
        """REQUIRES: the process has ended."""
        self.group.rmdir()


def reason():
    """Why there are no shares here; empty if there are."""
    files = V1 / "cpu.cfs_quota_us" if V1.is_dir() else V2 / "cgroup.controllers"
    if not files.exists() or (not V1.is_dir() and "cpu" not in files.read_text().split()):
        return "this kernel has no bandwidth control of CPUs"
    return "" if os.access(files.parent, os.W_OK) else "only root may give out shares of CPUs"


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return list(map(int, file.read().split()))
