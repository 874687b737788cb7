# SPDX-License-Identifier: Apache-2.0
"""Blows without end: a random rank of a job of four is killed or frozen at a random moment, under a random strategy on
each host backend. Survivors must end within the deadline + 2 s and name it, nothing may be left, and the checkpoint
that the job had saved must load. See random_failures_test.py, which has a fixed sample of it.

Arguments: the build tree, a seed, minutes.
"""
import concurrent.futures
import random
import signal
import sys
import time

from launchers_test import MPIEXEC, MPIRUN, has_mpi
from program import HERE, orrery
from random_failures_test import LOCAL, MPICH, OPEN_MPI, RANKS, SEED, Blow, left_behind

STACKS = ("data", "zero3", "pipeline", "average", "server")
SIGNALS = (signal.SIGKILL, signal.SIGSTOP)


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
    return ([LOCAL] + ([OPEN_MPI] if has_mpi(MPIRUN, "openmpi") else []) + ([MPICH] if has_mpi(MPIEXEC, "mpich") else []))


class Tally:
    def __init__(self):
        self.blows = self.wrong = self.loaded = 0

    def add(self, blow):
        self.blows += 1
        self.loaded += blow.saved
        if complaints := list(blow.complaints()):
            self.wrong += 1
            print(f"{blow}: {'; '.join(complaints)}\n{blow.job.err}{blow.job.out}", flush=True)

    def __str__(self):
        return f"{self.blows} blows, {self.wrong} wrong, {self.loaded} checkpoints loaded"


def main():
    minutes, chance, known = float(sys.argv[3]), random.Random(SEED), backends()
    print(f"seed {SEED}, {minutes:g} minutes on {', '.join(b.name for b in known)}", flush=True)
    before, end, tally = left_behind(), time.monotonic() + 60 * minutes, Tally()

    def case():
        backend = chance.choice(known)
        # Moments up to twice those of the start: half of the blows hit a job that trains and saves.
        return (backend, chance.choice(SIGNALS), chance.randrange(RANKS), chance.random() * 2 * backend.seconds,
                chance.choice(STACKS))

    with concurrent.futures.ThreadPoolExecutor(3) as several:
        while (left := end - time.monotonic()) > 0:
            cases = [case() for _ in range(12)]
            for blow in several.map(lambda each: SavingBlow(*each), cases):
                tally.add(blow)
            print(f"{tally}, {max(0, left) / 60:.1f} minutes left", flush=True)
    time.sleep(2)
    names = left_behind() - before
    print(f"{tally}, left in shared memory: {len(names)}")
    sys.exit(1 if tally.wrong or names else 0)


if __name__ == "__main__":
    main()
