# SPDX-License-Identifier: Apache-2.0
"""Contestants: programs that stay alive, wait without using a CPU, and train when asked.

A request is the line "losses 0 N" or "time U N" in the named pipe of every rank; the answer is one
line of N numbers from rank 0: losses, or milliseconds of N steps after U unrecorded ones. A contestant
ends when its pipe is closed.
"""
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

from cpu_share import CpuShare, children
from workloads import B1, B2, DECAY, EPS, RATE, STEPS

HERE = pathlib.Path(__file__).resolve().parent
ALL_CPUS = sorted(os.sched_getaffinity(0))
CPUS = ALL_CPUS[:2]
LUA_PATH = f"{HERE.parents[1]}:{HERE.parents[2] / 'examples'}"
FIRST_ANSWER_S = 900  # loading, compiling and the first steps


class Failed(Exception):
    pass


def pinned(cpus, words):
    return ["taskset", "-c", ",".join(map(str, cpus)), *map(str, words)]


def torch_environment(threads):
    return {"OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "close", "OMP_PLACES": "threads"}


class Contestant:
    def __init__(self, name, work, ranks=1):
        self.name, self.work, self.ranks = name, work, ranks
        self.pipes = pathlib.Path(tempfile.mkdtemp(prefix="orrery-bench-"))
        self.log = open(self.pipes / "log", "w+")
        self.requests = [self.open_pipe(f"requests.{rank}") for rank in range(ranks)]
        self.replies = os.fdopen(self.open_pipe("replies"), "r")
        self.processes = []
        self.shares = []
        self.times = []  # one list of milliseconds for each turn
        self.first_answer_s = 0  # from where it was asked for losses

    def open_pipe(self, name):
        os.mkfifo(self.pipes / name)
        return os.open(self.pipes / name, os.O_RDWR | os.O_CLOEXEC)  # does not wait for the other end

    def start(self, words, cpus, environment):
        self.processes.append(subprocess.Popen(
            pinned(cpus, words), env=os.environ | environment, stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log))

    def ask(self, word, unrecorded, recorded):
        for pipe in self.requests:
            os.write(pipe, f"{word} {unrecorded} {recorded}\n".encode())
        end = time.monotonic() + FIRST_ANSWER_S
        while not select.select([self.replies], [], [], 1)[0]:
            if any(p.poll() is not None for p in self.processes) or time.monotonic() > end:
                raise Failed(f"{self.name} on {self.work.name} gave no answer: {self.last_words()}")
        return list(map(float, self.replies.readline().split()))

    def last_words(self):
        self.log.seek(0)
        return " | ".join(self.log.read().strip().splitlines()[-3:]) or "it said nothing"

    def check_losses(self, wanted):
        tolerance = self.work.tolerance
        began = time.monotonic()
        losses = self.ask("losses", 0, STEPS)[:self.work.compared]
        self.first_answer_s = time.monotonic() - began
        for step, (x, y) in enumerate(zip(losses, wanted), 1):
            if not abs(x - y) <= tolerance * abs(y):
                raise Failed(f"{self.name} on {self.work.name}: the loss of step {step} is {x:.6g}, "
                             f"PyTorch's is {y:.6g}: no time counts until they agree to {tolerance:g}")

    def take_turn(self):
        self.times.append(self.ask("time", *self.work.turn))

    def share_cpus(self, share):
        """Each rank gets so much of a CPU. REQUIRES: the ranks have been started, by one launcher."""
        self.shares = [CpuShare(rank, share) for rank in children(self.processes[0].pid)]
        if len(self.shares) != self.ranks:
            raise Failed(f"{self.name}: {len(self.shares)} ranks were found, {self.ranks} were started")

    def close(self):
        for pipe in self.requests:
            os.close(pipe)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for share in self.shares:
            share.close()
        self.replies.close()
        self.log.close()
        shutil.rmtree(self.pipes)


def cpus_for(work):
    """A race on a GPU is none between CPUs, and compiling for one wants them all."""
    return CPUS if work.device == "cpu" else ALL_CPUS


def torch_contestant(name, work, kind, ranks=1):
    made = Contestant(name, work, ranks)
    given = cpus_for(work)
    threads = max(1, len(given) // ranks)
    for rank in range(ranks):
        first = rank * threads % len(given)
        cpus = given[first:first + threads]
        made.start([sys.executable, HERE / "torch_worker.py", work.name, kind, threads, made.pipes,
                    rank, ranks], cpus, torch_environment(threads))
    return made


def worker_words(work, pipes, microbatches=1, stack="data", schedule="", cpu=1):
    """worker.lua and its arguments."""
    return [HERE / "worker.lua", f"dir={work.directory}", f"pipes={pipes}", f"steps={STEPS}", f"microbatches={microbatches}",
            f"stack={stack}", f"schedule={schedule}", f"lr={RATE}", f"decay={DECAY}", f"b1={B1}", f"b2={B2}", f"eps={EPS}",
            f"cpu={cpu}", *work.script_arguments()]


def orrery_contestant(name, work, build, ranks=1, microbatches=1, stack="data", link=0, schedule="",
                      cpu=1, compute=None, numerics=None):
    made = Contestant(name, work, ranks)
    words = [build / "orrery", "run", "--threads", max(1, len(cpus_for(work)) // ranks)]
    if work.device != "cpu":
        words += ["--kernels", work.device]
    if ranks > 1:
        words += ["-n", ranks]
    if link:
        words += ["--link-speed", link]
    words += worker_words(work, made.pipes, microbatches, stack, schedule, cpu)
    words += [f"{key}={value}" for key, value in (("compute", compute), ("numerics", numerics)) if value]
    made.start(words, cpus_for(work), {"ORRERY_LUA_PATH": LUA_PATH})
    return made
