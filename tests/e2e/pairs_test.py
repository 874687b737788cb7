# SPDX-License-Identifier: Apache-2.0
"""Every ordered pair of strategies: it trains with the bits of one process, or it is refused before anything
runs with an error that names both and the line of the script. There is no third outcome.

Arguments: the build tree; --write writes docs/strategies/pairs.md instead of testing.
"""
import pathlib
import re
import sys
import tempfile
import unittest
from dataclasses import dataclass

from program import HERE, SCHEDULES, SOURCE, orrery, sampled
from sweep import Sweep, Training

PAGE = SOURCE / "docs" / "strategies" / "pairs.md"


@dataclass(frozen=True)
class Entry:
    """A strategy in a pair. One that needs the batch dealt gets strategy.data in front, unless the other
    deals it."""
    title: str
    lua: str
    ranks: int = 1        # that it takes
    deals: bool = False   # the batch
    needs: int = 0        # ranks that share the batch
    arithmetic: str = ""  # what one process runs to have the same arithmetic; with `ranks` if it is their number

    @property
    def name(self):
        return "strategy." + re.sub(r"^strategy\.", "", self.lua.split("{")[0]).replace("fsdp", "zero")


def pipeline(schedule):
    return Entry(f"pipeline {schedule}", f'strategy.pipeline{{ size = 2, schedule = "{schedule}" }}', ranks=2)


ENTRIES = [
    Entry("data", "strategy.data{ size = 2 }", ranks=2, deals=True),
    Entry("own (Lua)", "own{ size = 2 }", ranks=2, deals=True),
    Entry("server", "strategy.server{ size = 2 }", ranks=2, deals=True),
    Entry("average", "strategy.average{ size = 2, every = 2 }", ranks=2,
          arithmetic="strategy.average{ size = 2, every = 2 }"),
    Entry("zero 1", "strategy.zero{}", needs=2),
    Entry("zero 2", "strategy.zero{ stage = 2 }", needs=2),
    Entry("zero 3", "strategy.zero{ stage = 3 }", needs=2),
    Entry("fsdp", "strategy.fsdp{}", needs=2),
    Entry("HSDP", "strategy.fsdp{ group = 2 }", needs=4),
    *map(pipeline, SCHEDULES),
    Entry("place", 'strategy.place{ modules = { { "tok", "blocks.1" }, { "blocks.2-4", "head" } } }', ranks=2),
    Entry("accumulate", "strategy.accumulate{}"),
    Entry("recompute", "strategy.recompute{}"),
    Entry("recompute selective", 'strategy.recompute{ mode = "selective" }'),
    Entry("precision", "strategy.precision{}", arithmetic="strategy.precision{}"),
    Entry("tensor", "strategy.tensor{ size = 2, chunks = 4 }", ranks=2, arithmetic="strategy.tensor{ size = 1, chunks = 4 }"),
]


def stack_of(first, second):
    """The stack of a pair and its ranks, four at most."""
    pair = [first, second]
    ranks = first.ranks * second.ranks
    lua = [e.lua for e in pair]
    if any(e.needs for e in pair) and not any(e.deals for e in pair):
        size = min(max(e.needs for e in pair), 4 // ranks)
        lua.insert(0, f"strategy.data{{ size = {size} }}")
        ranks *= size
    return "{ " + ", ".join(lua) + " }", ranks


def oracle_of(first, second):
    """The stack with the same arithmetic on the fewest ranks, in an order of its own."""
    other = sorted({e for e in (first, second) if e.arithmetic}, key=lambda e: e.title)
    ranks = max([e.ranks for e in other if e.title == "average"], default=1)
    return "{ " + ", ".join(e.arithmetic for e in other) + " }" if other else "nil", ranks


def training(stack, ranks):
    return Training(stack, ranks, script="pairs.lua", may_refuse=True)


class Pairs:
    """Outcomes of pairs, whose trainings share jobs (sweep.py)."""

    def __init__(self, folder):
        self.folder = folder
        self.sweep = Sweep(folder)

    def outcome(self, first, second):
        """"ok", or why the pair is refused; AssertionError for anything else."""
        pair, oracle = training(*stack_of(first, second)), training(*oracle_of(first, second))
        done = self.sweep.run([pair])[pair]
        what = f"{pair}: {done}"
        assert not done.error, what
        if not done.refusals:
            expected = self.sweep.lines(oracle)
            assert len(expected) == 5, oracle
            assert done.lines == expected, f"{what}\none process: {expected}"
            return "ok"
        assert not done.lines and sorted(done.refusals) == list(range(pair.ranks)), what
        errors = {self.reason(text) for text in done.refusals.values()}
        assert len(errors) == 1, what
        error = errors.pop()
        for entry in (first, second):
            assert entry.name in error, f"{what}\nthe error does not name {entry.name}"
        return error

    @staticmethod
    def reason(text):
        found = re.fullmatch(r"(?:.*?/)?pairs\.lua:\d+: (.*)", text)
        assert found, text
        return re.sub(r"\S*/pairs\.lua:\d+: ", "", found[1])

    def matrix(self):
        pairs = sampled((a, b) for a in ENTRIES for b in ENTRIES)
        self.sweep.run(training(*how(*pair)) for pair in pairs for how in (oracle_of, stack_of))
        return pairs

    def refused_at_start(self, first, second):
        """Why, in a job of its own."""
        stack, ranks = stack_of(first, second)
        script = self.folder / "pairs.lua"
        script.write_text((HERE / "pairs.lua").read_text().replace("STACK", stack))
        done = orrery("run", "-n", ranks, script)
        assert (done.code, done.out) == (1, ""), f"{done.code}: {done.out}{done.err}"
        [error] = {self.reason(line) for line in re.findall(r"^(?:\[rank \d+\] )?error: (.*)$", done.err, re.MULTILINE)}
        return error


def page_of(outcomes):
    titles = [e.title for e in ENTRIES]
    reasons = sorted({reason for reason in outcomes.values() if reason != "ok"})
    mark = {reason: str(i + 1) for i, reason in enumerate(reasons)} | {"ok": "ok"}
    rows = [f"| **{a}** | " + " | ".join(mark[outcomes[a, b]] for b in titles) + " |" for a in titles]
    return HEAD + "\n".join(["| first \\ second | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|", *rows,
                             "", *(f"{i + 1}. {reason}" for i, reason in enumerate(reasons)), ""])


HEAD = """# Which strategies go together

Made by `python3 tests/e2e/pairs_test.py $PWD/build --write`; the same test without the flag fails if this page is
not current. Rows come first in the stack, columns second. `ok`: the pair trains with the bits of one process with
the same arithmetic, in losses, gradient norms and parameters; one process has the same `precision` and `chunks`,
and `average` is held against itself on two ranks. A number: the pair is refused before anything runs, for the
reason below. The model is `tests/e2e/pairs.lua`, on 1, 2 or 4 ranks; strategies that need the batch dealt have
`strategy.data` in front unless the other one deals it.

"""


class Test(unittest.TestCase):
    def test_every_pair(self):
        with tempfile.TemporaryDirectory() as folder:
            pairs, outcomes, reasons = Pairs(pathlib.Path(folder)), {}, {}
            for a, b in pairs.matrix():
                with self.subTest(first=a.title, second=b.title):
                    outcomes[a.title, b.title] = reason = pairs.outcome(a, b)
                    reasons.setdefault(reason, (a, b))
            reasons.pop("ok")
            for reason, pair in reasons.items():
                with self.subTest(reason=reason):
                    self.assertEqual(pairs.refused_at_start(*pair), reason)
        if len(outcomes) == len(ENTRIES) ** 2:
            page = page_of(outcomes)
            print(page[len(HEAD):])
            if "--write" in sys.argv:
                PAGE.write_text(page)
            self.assertEqual(page, PAGE.read_text(), "run this test with --write")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
