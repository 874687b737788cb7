# SPDX-License-Identifier: Apache-2.0
"""Many trainings in few jobs: those of one number of ranks run one after the other in one job, which starts
its ranks once. What each prints is told apart; an error that a training is not expected to end with costs
that job, and a new one goes on behind it.
"""
import collections
import pathlib
import re
import tempfile
import unittest
from dataclasses import dataclass, field

from program import HERE, orrery

MAX_FAILURES = 3  # of one number of ranks: what comes behind is not tried any more


@dataclass(frozen=True)
class Training:
    stack: str            # Lua, put where STACK stands: `strategy = STACK`
    ranks: int = 1
    words: tuple = ()     # NAME=VALUE
    script: str = "strategies.lua"
    may_refuse: bool = field(default=False, compare=False)


@dataclass
class Outcome:
    lines: list                                                # that rank 0 printed
    refusals: dict = field(default_factory=dict)               # by rank
    error: str = ""                                            # that ended the job


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Sweep:
    def __init__(self, folder, **variables):
        self.folder = folder
        self.variables = variables  # of the jobs' environment
        self.outcomes = {}

    def run(self, trainings):
        """{training: Outcome}; each is run once, whoever asks how often."""
        jobs = collections.defaultdict(list)
        for training in dict.fromkeys(trainings):
            if training not in self.outcomes:
                jobs[training.ranks].append(training)
        for ranks, asked in jobs.items():
            self.run_job(ranks, asked)
        return self.outcomes

    def lines(self, training):
        """What a training printed that nothing should have ended."""
        outcome = self.run([training])[training]
        if outcome.error or outcome.refusals:
            raise AssertionError(f"{training}: {outcome.error}{outcome.refusals}")
        return outcome.lines

    def run_job(self, ranks, asked):
        for _ in range(MAX_FAILURES):
            done = orrery("run", "-n", ranks, HERE / "sweep.lua", f"list={self.write(asked)}", timeout=600,
                          **self.variables)
            finished = self.read(done, asked)
            if done.code == 0:
                return
            if finished < len(asked):
                self.outcomes[asked[finished]].error = f"exit code {done.code}: {done.err}"
            asked = asked[finished + 1:]
            if not asked:
                return
        for training in asked:
            self.outcomes[training] = Outcome([], error="not tried after others have failed")

    def write(self, asked):
        rows = []
        for number, training in enumerate(asked):
            script = self.folder / str(number) / training.script
            script.parent.mkdir(exist_ok=True)
            text = (HERE / training.script).read_text()
            script.write_text(text.replace("strategy = STACK", f"strategy = {training.stack}"))
            words = (word.split("=", 1) for word in training.words)
            given = ", ".join(f"{name} = {quoted(value)}" for name, value in words)
            rows.append(f"{{ number = {number}, path = {quoted(str(script))}, words = {{ {given} }}, "
                        f"may_refuse = {str(training.may_refuse).lower()} }},")
        path = self.folder / "trainings.lua"
        path.write_text("return {\n" + "\n".join(rows) + "\n}\n")
        return path

    def read(self, done, asked):
        """Keeps what they printed; returns how many have ended."""
        begun = -1
        for line in done.out.splitlines():
            if mark := re.search(r"== (\d+) refused on (\d+): (.*)$", line):
                self.outcomes.setdefault(asked[int(mark[1])], Outcome([])).refusals[int(mark[2])] = mark[3]
            elif mark := re.fullmatch(r"== (\d+)", line):
                begun = int(mark[1])
                self.outcomes.setdefault(asked[begun], Outcome([]))
            elif line == "== end":
                begun += 1
            elif begun >= 0:
                self.outcomes[asked[begun]].lines.append(re.sub(r"  [\d.]+ ms$", "", line))
        if begun < 0:
            self.outcomes[asked[0]] = Outcome([])
        return max(begun, 0)


class Sweeping(unittest.TestCase):
    """Tests of one sweep in a folder of their own."""
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.sweep = Sweep(pathlib.Path(cls.folder.name))
