# SPDX-License-Identifier: Apache-2.0
"""Milliseconds below which no step of these products can get on this machine: every matrix product at the
best speed that any library shows here, and one AdamW pass. Taken between the turns of a race, so that both
have the machine's good moments."""
import sys

from contestants import HERE, Contestant, cpus_for, torch_environment

LIBRARIES_EVERY = 5  # turns: they take seconds


class Floor:
    def __init__(self, work, build):
        program = build / "tests/bench/bench_matmul"
        given = cpus_for(work)
        self.worker = Contestant("floor", work)
        self.worker.start([sys.executable, HERE / "floor_worker.py", work.name, self.worker.pipes,
                           *([program] if program.exists() else [])], given, torch_environment(len(given)))
        self.turns, self.parts = 0, []

    def take_turn(self):
        for libraries in (0, 1) if self.turns % LIBRARIES_EVERY == 0 else (0,):
            found = self.worker.ask("time", libraries, 1)
            self.parts = list(map(min, self.parts, found)) if self.parts else found
        self.turns += 1

    def close(self):
        self.worker.close()

    def report(self):
        return {"products_ms": sum(self.parts[:-1]), "adamw_ms": self.parts[-1]}
