# SPDX-License-Identifier: Apache-2.0
"""Random blows without end, of every kind in turn: ranks of four killed or frozen under any stack on each backend
(random_failures_test.py has a fixed sample), two hosts whose cable is pulled, strangers at a job's ports, damaged files.
Survivors must end within the deadline + 2 s (10 s beside load) and name the rank, nothing may be left, and what a job
had saved must load.

Arguments: the build tree, a seed, minutes, then any of: --load (one busy process for each CPU), --blows N (ends after so
many), --only KIND (ranks, hosts, peers, files).
"""
import concurrent.futures
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from launchers_test import MPIEXEC, MPIRUN, has_mpi
from program import HERE, orrery
from random_failures_test import LOCAL, MPICH, OPEN_MPI, RANKS, SEED, Backend, Blow, left_behind
from torture_files import READ, FileBlow, saved
from torture_hosts import KINDS, HostBlow, Hosts
from torture_peers import PeerBlow
from two_hosts import digest

STACKS = ("data", "zero3", "pipeline", "average", "server")
SIGNALS = (signal.SIGKILL, signal.SIGSTOP)
TCP = Backend("tcp", [], ["-n", RANKS], "ORRERY_RANK", "orrery", 0.9, ORRERY_TEST_HOSTS="abcd")


class SavingBlow(Blow):
    saved, lost = False, ""  # whether there was a checkpoint, and what is wrong with it

    def look_at(self, saved):
        if not (saved / "checkpoint.json").exists():
            return  # the blow came before the first one
        self.saved = True
        loaded = orrery("run", "-n", RANKS, "churn.lua", f"save={saved}", f"stack={self.stack}", "load=true", cwd=HERE / "bad")
        if loaded.code != 0 or not loaded.out.startswith("loaded step"):
            self.lost = loaded.err

    def complaints(self):
        yield from super().complaints()
        if self.lost:
            yield f"the checkpoint does not load: {self.lost}"


def backends():
    return ([LOCAL, TCP] + ([OPEN_MPI] if has_mpi(MPIRUN, "openmpi") else [])
            + ([MPICH] if has_mpi(MPIEXEC, "mpich") else []))


class Tally:
    def __init__(self):
        self.blows = self.wrong = self.loaded = self.orphans = 0
        self.latest, self.kinds = 0.0, {}

    def add(self, kind, blow):
        self.blows += 1
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.loaded += getattr(blow, "saved", False)
        self.orphans += len(getattr(blow, "orphans", ()))
        if (seconds := getattr(blow, "seconds", None)) is not None:
            self.latest = max(self.latest, seconds - blow.late)
        if complaints := list(blow.complaints()):
            self.wrong += 1
            print(f"{blow}: {'; '.join(complaints)}\n{blow.job.err}{blow.job.out[:2000]}", flush=True)

    def __str__(self):
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.kinds.items()))
        return (f"{self.blows} blows ({kinds}), {self.wrong} wrong, {self.loaded} checkpoints loaded, {self.orphans} orphans, "
                f"the last survivor ended {self.latest:.1f} s after a blow")


class Torture:
    """Makes blows of a seed. `close` when all are done."""

    def __init__(self, seed, only=""):
        self.chance, self.known, self.folder = random.Random(seed), backends(), tempfile.TemporaryDirectory()
        self.kinds = {"ranks": (12, self.ranks), "hosts": (3, self.hosts), "peers": (2, self.peers), "files": (15, self.files)}
        try:
            self.two_hosts = Hosts()
        except unittest.SkipTest as why:
            self.two_hosts = None
            print(f"no two hosts: {why}")
            del self.kinds["hosts"]
        if only:
            self.kinds = {only: self.kinds[only]}
        self.known_files = READ + 8 * saved(self.folder.name)
        quiet = orrery("run", "-n", 2, "--threads", 1, HERE / "restarts.lua", f"folder={self.folder.name}")
        self.expected = digest(quiet)

    def close(self):
        if self.two_hosts:
            self.two_hosts.cut()
            self.two_hosts.folder.cleanup()
        self.folder.cleanup()

    def blow(self):
        """A kind, and a function that strikes: all that is random is drawn now."""
        kind = self.chance.choices(list(self.kinds), [share for share, _ in self.kinds.values()])[0]
        return kind, self.kinds[kind][1]()

    def ranks(self):
        backend = self.chance.choice(self.known)
        # Moments up to twice those of the start: half of the blows hit a job that trains and saves.
        case = (backend, self.chance.choice(SIGNALS), self.chance.randrange(RANKS),
                self.chance.random() * 2 * backend.seconds, self.chance.choice(STACKS))
        return lambda: SavingBlow(*case)

    def hosts(self):
        case = (self.chance.choice(KINDS), self.chance.randrange(RANKS), self.chance.random(), self.chance.choice(STACKS))
        return lambda: HostBlow(self.two_hosts, *case)

    def peers(self):
        seed = self.chance.randrange(10 ** 6)
        return lambda: PeerBlow(seed, self.expected)

    def files(self):
        case, chance = self.chance.choice(self.known_files), random.Random(self.chance.random())
        return lambda: FileBlow(case, chance)


@contextlib.contextmanager
def load(wanted):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() if wanted else 0)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


def option(name, fallback):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else fallback


def main():
    minutes, most, only = float(sys.argv[3]), float(option("--blows", "inf")), option("--only", "")
    torture, tally, before = Torture(SEED, only), Tally(), left_behind()
    print(f"seed {SEED}, {minutes:g} minutes on {', '.join(b.name for b in torture.known)}", flush=True)
    end = time.monotonic() + 60 * minutes
    try:
        with load("--load" in sys.argv), concurrent.futures.ThreadPoolExecutor(3) as several:
            while (left := end - time.monotonic()) > 0 and tally.blows < most:
                blows = [torture.blow() for _ in range(12)]
                for (kind, _), blow in zip(blows, several.map(lambda one: one[1](), blows)):
                    tally.add(kind, blow)
                print(f"{tally}, {max(0, left) / 60:.1f} minutes left", flush=True)
    finally:
        torture.close()
    time.sleep(2)
    names = left_behind() - before
    print(f"{tally}, left in shared memory: {len(names)}")
    sys.exit(1 if tally.wrong or names else 0)


if __name__ == "__main__":
    main()
