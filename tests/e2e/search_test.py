# SPDX-License-Identifier: Apache-2.0
"""`orrery plan --search` finds what planning every layout by itself finds, and strategy.auto trains with it.

Arguments: the build tree.
"""
import concurrent.futures
import itertools
import json
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery
from plan_test import MACHINE

# Ranks, what the script lets the search vary beside data, zero and recompute, samples, and the memory limit: which
# share of the layouts fits.
CASES = [
    (1, "nothing", 4, 1), (2, "nothing", 4, 1), (2, "tensor", 4, 1), (2, "pipeline", 4, 1), (4, "nothing", 8, 0.5),
    (4, "tensor", 2, 0.5), (4, "pipeline", 4, 0.5),
]
BLOCKS = 8  # of layouts.lua

SKETCHED = {(4, "nothing"), (4, "pipeline")}


def schedules(pipe):
    if pipe == 1:
        return [("1f1b", 0)]
    even = [n for n in range(2, 11) if BLOCKS % (n * pipe) == 0] or [2]
    return [("1f1b", 0), ("zb1", 0), ("zbv", 0), *(("interleaved", n) for n in even)]


def zeros(data, pipe, each):
    several = pipe == 1 and each > 1
    return [(0, "false")] + [(stage, by) for stage in (1, 2, 3) for by in ("false", "true")
                             if data > 1 and (by == "false" or several and stage > 1)]


def layouts(ranks, vary, batch):
    """The arguments of layouts.lua for every layout; written apart from the search's own list."""
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    for tensor, pipe in itertools.product(divisors if "tensor" in vary else [1], divisors if "pipeline" in vary else [1]):
        if ranks % (tensor * pipe):
            continue
        data = ranks // (tensor * pipe)
        ways = [("true", "true"), ("false", "true"), ("true", "false")] if tensor > 1 else [("false", "true")]
        for each in (k for k in (1, 2, 4, 8) if batch % (data * k) == 0):
            for (zero, by), recompute, (schedule, chunks), (sequence, vocab) in itertools.product(
                    zeros(data, pipe, each), ("", "selective", "full"), schedules(pipe), ways):
                yield dict(tensor=tensor, pipe=pipe, data=data, each=each, zero=zero, zero_each=by, recompute=recompute,
                           schedule=schedule, chunks=chunks, sequence=sequence, vocab=vocab, batch=batch)


def words(layout):
    return [f"{name}={value}" for name, value in layout.items()]


def times(text):
    """The seconds of the layouts that a search prints."""
    return [float(n) * (1e-3 if unit == "ms" else 1)
            for n, unit in re.findall(r"^ *\d+  ([\d.e-]+) (ms|s)  ", text, re.MULTILINE)]


class Search(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name) / "machine.json"
        self.file.write_text(json.dumps(MACHINE))

    def planned(self, ranks, layout):
        """(seconds, bytes) of a layout, or None if it is refused."""
        done = orrery("plan", "-n", ranks, "--json", "--machine", self.file, "layouts.lua", *words(layout), cwd=HERE)
        plan = json.loads(done.out) if done.code == 0 else None
        return plan and (plan["step_seconds"], plan["peak_bytes"])

    def search(self, ranks, vary, batch, *options, seconds=0):
        return orrery("plan", "-n", ranks, "--search", "--seconds", seconds, "--machine", self.file, *options, "layouts.lua",
                      f"vary={vary}", f"batch={batch}", cwd=HERE)

    def test_the_search_is_exhaustive(self):
        for ranks, vary, batch, share in CASES:
            with self.subTest(ranks=ranks, vary=vary), concurrent.futures.ThreadPoolExecutor(4) as pool:
                every = list(layouts(ranks, vary, batch))
                plans = [plan for plan in pool.map(lambda l: self.planned(ranks, l), every) if plan]
                limit = sorted(size for _, size in plans)[int(share * (len(plans) - 1))]
                best = sorted(seconds for seconds, size in plans if size <= limit)[:10]
                done = self.search(ranks, vary, batch, "--memory", limit)
                self.assertEqual(done.code, 0, done.err)
                counts = re.search(r"^search: (\d+) layouts of \d+ ranks, \d+ planned, (\d+) refused$", done.out, re.MULTILINE)
                self.assertEqual(int(counts[1]), len(every))
                self.assertLessEqual(int(counts[2]), len(every) - len(plans))
                found = times(done.out)
                self.assertEqual(len(found), len(best))
                for one, other in zip(found, best):
                    self.assertAlmostEqual(one / other, 1, places=3)
                if (ranks, vary) in SKETCHED:  # a search that may end early plans less exactly, and no twins
                    sketched = times(self.search(ranks, vary, batch, "--memory", limit + limit // 50, seconds=600).out)
                    self.assertAlmostEqual(sketched[0] / best[0], 1, delta=0.02)
                    for one in sketched:
                        self.assertLess(min(abs(one / seconds - 1) for seconds, _ in plans), 0.02)

    def test_a_limit_that_nothing_meets(self):
        done = self.search(2, "nothing", 4, "--memory", 1000)
        self.assertEqual(done.code, 1)
        self.assertRegex(done.err, r"search: no layout of 2 ranks fits into 1000 bytes a rank\n(.*\n)* +\d+ cannot fit")

    def test_what_is_printed_can_be_pasted(self):
        for seconds, options in ((0, ["--details"]), (5, [])):  # all are exact, or, in a hurry, the first
            done = self.search(4, "pipeline tensor", 2, *options, seconds=seconds)
            stacks = re.findall(r"^microbatches = \d+,\nstrategy = \{\n(?:  strategy\..*\n)+\},$", done.out, re.MULTILINE)
            self.assertEqual(len(stacks), 10 if options else 1)
            for stack, printed in zip(stacks, times(done.out)):
                planned, _ = self.planned(4, dict(stack=stack.replace("\n", " "), batch=2))
                self.assertEqual(f"{planned * 1e3:.4g}", f"{printed * 1e3:.4g}", stack)

    def test_auto_trains_as_one_process(self):
        digest = {}
        for ranks in (1, 2):
            done = orrery("run", "-n", ranks, "layouts.lua", "auto=true", "vary=pipeline", "microbatches=4", cwd=HERE)
            self.assertEqual(done.code, 0, done.err)
            self.assertEqual(len(re.findall(r"auto: .*, 4 microbatches", done.out + done.err)), 1)
            digest[ranks] = re.search(r"digest (\w+)", done.out + done.err)[1]
        self.assertEqual(digest[1], digest[2])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
