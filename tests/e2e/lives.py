# SPDX-License-Identifier: Apache-2.0
"""One start of a program in a random history (histories.py): on which backend, which blows hit it and when, what it printed,
and what is wrong with how it ended.
"""
import contextlib
import os
import pathlib
import re
import signal
import threading
import time

from launchers_test import ENVIRONMENT, MPIEXEC, MPIRUN, has_mpi
from nccl_test import FAKE, PLUGIN, fake
from program import Job

DEADLINE = 3
STEP = re.compile(r"^step (\d+) (.*)\n", re.MULTILINE)
BAD = re.compile(r"terminate called|Sanitizer|assert|Aborted|core dumped|stack traceback")
OWN_FIGURES = re.compile("mode = 'stale'")  # each rank has the loss of its own samples
SIGNALS = {"kill": signal.SIGKILL, "launcher": signal.SIGKILL, "freeze": signal.SIGSTOP, "TERM": signal.SIGTERM,
           "USR1": signal.SIGUSR1}


class Backend:
    def __init__(self, name, rank, launcher=(), words=(), hosts=False, **variables):
        self.name, self.rank, self.before, self.words, self.hosts, self.variables = name, rank, launcher, words, hosts, variables

    def job(self, ranks, words, **variables):
        mine = dict(self.variables, ORRERY_TEST_HOSTS="abcd"[:ranks]) if self.hosts else self.variables
        launcher = [*self.before, "-n", ranks] if self.before else ()
        count = [] if self.before else ["-n", ranks]
        return Job("run", *self.words, *count, *words, launcher=launcher, ORRERY_DEADLINE=str(DEADLINE), **(ENVIRONMENT | mine | variables))

    def is_rank(self, environment):
        return b"ORRERY_GUARDED=1" in environment if self.before else True


def backends():
    found = [Backend("local", "ORRERY_RANK")] * 3 + [Backend("tcp", "ORRERY_RANK", hosts=True)]
    if has_mpi(MPIRUN, "openmpi"):
        found.append(Backend("openmpi", "OMPI_COMM_WORLD_RANK", MPIRUN, ["--comm", "mpi"]))
    if has_mpi(MPIEXEC, "mpich"):
        found.append(Backend("mpich", "PMI_RANK", MPIEXEC, ["--comm", "mpi"]))
    if PLUGIN.exists() and FAKE.exists():
        found.append(Backend("nccl", "ORRERY_RANK", (), ["--comm", "nccl"], **fake()))
    return found


class Blow:
    """After so many lines of steps in this life of the job, and then a moment, or once a checkpoint is half written."""

    def __init__(self, dice, ranks, steps, kinds):
        self.kind, self.lines, self.victim = dice.choice(kinds), 1 + dice.below(steps), dice.below(ranks)
        self.moment, self.in_save = dice.below(100) * dice.choice([0, 1e-5, 5e-5]), dice.chance(0.3)
        # A signal to stop may come to one rank alone.
        self.at_rank = self.kind in ("kill", "freeze") or self.kind in ("TERM", "USR1") and dice.chance(0.3)

    def __str__(self):
        who = f" rank {self.victim}" if self.at_rank else ""
        return f"{self.kind}{who} after {self.lines} steps{' in a save' if self.in_save else f' and {self.moment:.5f} s'}"


class Life:
    """One start of the program, with its blows, to its end."""

    def __init__(self, history, ranks, stack, backend, words=(), blows=()):
        self.history, self.ranks, self.stack, self.backend, self.words, self.blows = history, ranks, stack, backend, words, list(blows)
        self.struck, self.mark = [], f"{history.folder}/{time.monotonic_ns()}"
        begun = time.monotonic()
        arguments = [f"folder={history.folder}", f"stack={stack}", f"steps={history.script.steps}"]
        self.job = backend.job(ranks, [*words, "--dir", history.folder / "watched", history.folder / "script.lua", *arguments],
                               ORRERY_TEST_MARK=self.mark)
        guard = threading.Timer(90, self.job.end)
        guard.start()
        self.err = ""
        listener = threading.Thread(target=self.listen)
        listener.start()
        self.out = self.follow()
        self.code = self.job.process.wait()
        listener.join()
        self.job.process.stdout.close()
        self.job.process.stderr.close()
        self.hung = not guard.is_alive()
        guard.cancel()
        self.orphans = self.left()
        self.seconds = time.monotonic() - begun

    def __str__(self):
        blows = "; ".join(map(str, self.blows)) or "nothing"
        return f"{self.ranks} ranks, {self.backend.name}, {{{self.stack}}}, {' '.join(map(str, self.words))}: {blows}: exit code {self.code}, {self.seconds:.1f} s"

    def listen(self):
        self.err = self.job.process.stderr.read()

    def follow(self):
        """All that it prints; strikes on the way."""
        out, lines, due = [], 0, list(self.blows)
        for line in self.job.process.stdout:
            out.append(line)
            if line.startswith("from ") and due:
                self.ranks_now = self.processes()  # found now, while the first step is compiled: steps are short
            lines = 0 if line.startswith("from ") else lines + line.startswith("step ")
            if due and line.startswith("step ") and lines >= due[0].lines:
                self.strike(due.pop(0))
                lines = 0
        return "".join(out)

    def processes(self):
        """Process ids of the ranks."""
        found, todo = {}, [self.job.process.pid]
        for pid in todo:
            with contextlib.suppress(OSError):
                entry = pathlib.Path(f"/proc/{pid}")
                todo += map(int, (entry / f"task/{pid}/children").read_text().split())
                environment = (entry / "environ").read_bytes().split(b"\0")
                if self.backend.is_rank(environment) and os.readlink(entry / "exe").endswith("/orrery"):
                    found |= {int(v.partition(b"=")[2]): pid for v in environment if v.startswith(self.backend.rank.encode() + b"=")}
        return found

    def strike(self, blow):
        alone = self.ranks == 1 and not self.backend.before and "--restarts" not in self.words  # it has no launcher then
        pid = self.ranks_now.get(blow.victim) if blow.at_rank and not alone else self.job.process.pid
        if blow.in_save:
            until = time.monotonic() + 0.05
            while time.monotonic() < until and not self.history.half_written():
                pass
        else:
            time.sleep(blow.moment)
        # Nobody ends a frozen rank that has no launcher of ours.
        if pid is None or self.job.process.poll() is not None or blow.kind == "freeze" and (alone or self.backend.before):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, SIGNALS[blow.kind])
            self.struck.append(blow.kind)

    def left(self):
        """Its processes that do not end, after a patience."""
        until = time.monotonic() + 2 * DEADLINE + 2
        while (left := [e.name for e in pathlib.Path("/proc").glob("[0-9]*") if self.marks(e)]) and time.monotonic() < until:
            time.sleep(0.02)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        return left

    def marks(self, entry):
        with contextlib.suppress(OSError):
            return f"ORRERY_TEST_MARK={self.mark}".encode() in (entry / "environ").read_bytes()
        return False

    # -- what is expected ------------------------------------------------------------------------
    def codes(self):
        """The exit codes that are right."""
        kinds, restarts = set(self.struck), "--restarts" in self.words
        if not kinds:
            return {0}
        if self.backend.before:
            return {self.code}  # that of MPI's launcher
        if kinds == {"launcher"} or kinds == {"kill"} and self.ranks == 1 and not restarts:
            return {-signal.SIGKILL, 0}
        if kinds <= {"TERM", "USR1"}:
            # Workers with a bound may be told after different steps.
            return {75, 0, 1} if "with a bound all take the same steps" in self.err else {75, 0}
        return {0} if restarts else {0, 124 if kinds == {"freeze"} else 128 + signal.SIGKILL}

    def complaints(self):
        if self.hung:
            yield "it hangs"
        elif self.code not in self.codes():
            yield f"exit code {self.code}"
        if self.orphans:
            yield f"orphans {self.orphans}"
        if BAD.search(self.err):
            yield "it crashed"
        wanted = self.history.figures
        if not OWN_FIGURES.search(self.stack):
            yield from (f"step {step} is {found}, not {wanted[step]}" for step, found in STEP.findall(self.out) if found != wanted[step])
        yield from self.gaps()

    def tells_all(self):
        return OWN_FIGURES.search(self.stack) or dict(STEP.findall(self.out)) == self.history.figures

    def gaps(self):
        """Of one start: the lines go on from where it says that it begins."""
        at = None
        for word, number in re.findall(r"^(from|step) (\d+)", self.out, re.MULTILINE):
            if word == "step" and int(number) != (at or 0) + 1:
                yield f"step {number} follows {at}"
            at = int(number)
