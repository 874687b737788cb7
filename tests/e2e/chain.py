# SPDX-License-Identifier: Apache-2.0
"""A chain of kills and resumes: a job on a random backend, with a random strategy and number of ranks, is
ended at a random moment by a random signal to one of its processes; the next link continues from the
checkpoint as soon as the launcher is gone, though some of its ranks may still be at work. What every link
loads or saves must be what a run that nobody disturbed has at that step.

Arguments: the build tree, how many links (5), a seed to repeat a run.
"""
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from launchers_test import ENVIRONMENT, MPIEXEC, MPIRUN, has_mpi
from program import BUILD, HERE, PATIENCE, SETTINGS, orrery, session_members, wait_for

LINKS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(10**6)
SCRIPT = HERE / "chain.lua"
STACKS = ("{ strategy.data{} }", "{ strategy.data{}, strategy.zero{ stage = 1 } }",
          "{ strategy.data{}, strategy.zero{ stage = 3 } }", "{ strategy.pipeline{ size = 2 }, strategy.data{} }")
LAUNCHERS = {"local": lambda n: [BUILD / "orrery", "run", "-n", n]}
if has_mpi(MPIRUN, "openmpi"):
    LAUNCHERS["openmpi"] = lambda n: [*MPIRUN, "-n", n, BUILD / "orrery", "run", "--comm", "mpi"]
if has_mpi(MPIEXEC, "mpich"):
    LAUNCHERS["mpich"] = lambda n: [*MPIEXEC, "-n", n, BUILD / "orrery", "run", "--comm", "mpi"]
# Why a link may end that was not killed: the one before is still saving there.
TAKEN = ("is saving there", "while nobody saves there", "has begun to save there")
DIGESTS = re.compile(r"(?m)^(loaded|saving|passing) (\d+) (\w{32})$")


class Truth:
    """Digests by step of the run that nobody disturbed, as far as they are asked for."""

    def __init__(self):
        self.known = {}

    def at(self, step):
        if step not in self.known:
            done = orrery("run", "--threads", 1, SCRIPT, "every=0", f"steps={2 * step + 300}")
            assert done.code == 0, done.err
            self.known.update((int(n), d) for _, n, d in DIGESTS.findall(done.out))
        return self.known[step]


class Link:
    def __init__(self, choose, folder, number):
        backend, stack = choose.choice(sorted(LAUNCHERS)), choose.choice(STACKS)
        ranks = choose.choice((2, 4) if "pipeline" in stack else (1, 2, 3, 4))
        self.signal = choose.choice((signal.SIGKILL, signal.SIGTERM))
        # Most blows fall on a link at work; some while it starts, or loads: never the first, which must save, nor
        # the last, so that one at least has loaded.
        starting, moment = choose.random() < 0.3 and 0 < number < LINKS - 1, choose.uniform(0.1, 0.5)
        self.log = folder / f"{number}.log"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}
        words = [*LAUNCHERS[backend](ranks), "--threads", 1, SCRIPT, f"at={folder}/at", f"stack={stack}"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                list(map(str, words)), env=kept | SETTINGS | ENVIRONMENT | {"ORRERY_DEADLINE": "5"},
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        if not starting:
            wait_for(lambda: self.process.poll() is not None or DIGESTS.search(self.log.read_text()), PATIENCE)
        time.sleep(moment)
        self.struck = self.process.poll() is None
        victims = session_members(self.process.pid)
        if self.struck and victims:
            # The launcher, as a scheduler does it, or whichever process fate has chosen.
            victim = self.process.pid if choose.random() < 0.5 else choose.choice(victims)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, self.signal)
        self.text = f"link {number}, {backend} -n {ranks} {stack}, {self.signal.name} {moment:.2f} s after "
        self.text += "its start" if starting else "its first digest"
        try:
            self.process.wait(PATIENCE)
            self.late = False
        except subprocess.TimeoutExpired:
            self.late = True

    def end(self):
        """What is left of it has had its time."""
        for pid in session_members(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.out = self.log.read_text(errors="replace")

    def complaints(self, truth):
        if self.late:
            yield f"no end within {PATIENCE} s"
        for word, step, digest in DIGESTS.findall(self.out):
            if truth.at(int(step)) != digest:
                yield f"{word} step {step} with digest {digest} instead of {truth.at(int(step))}"
        if not self.struck and not any(text in self.out for text in TAKEN):
            yield f"ended by itself: {self.out}"


def main():
    print(f"chain of {LINKS} links, seed {SEED}", flush=True)
    choose, truth, links, wrong = random.Random(SEED), Truth(), [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(LINKS + 1):  # one more, whose orphans nobody joins
            if number < LINKS:
                links.append(Link(choose, pathlib.Path(folder), number))
            if number == 0:
                continue
            before = links[number - 1]
            before.end()
            found = [f"{before.text}: {text}" for text in before.complaints(truth)]
            for text in found:
                print(text, flush=True)
            wrong += found
    everything = "".join(link.out for link in links)
    loads = [int(step) for word, step, _ in DIGESTS.findall(everything) if word == "loaded"]
    taken = sum(any(text in link.out for text in TAKEN) for link in links)
    print(f"{LINKS} links, {len(loads)} loads up to step {max(loads, default=0)}, {taken} met another writer, "
          f"{len(wrong)} wrong")
    return 1 if wrong or not loads else 0


if __name__ == "__main__":
    sys.exit(main())
