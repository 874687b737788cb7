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

SCHEDULES = (("1f1b", 0), ("interleaved", 2), ("interleaved", 4), ("zb1", 0), ("zbv", 0))
# Ranks, what the script lets the search vary beside data, zero and recompute, samples, and the memory limit: which
# share of the layouts fits.
CASES = [
    (1, "nothing", 4, 1), (2, "nothing", 4, 1), (2, "tensor", 4, 1), (2, "pipeline", 4, 1), (4, "nothing", 8, 0.5),
    (4, "tensor", 4, 0.5), (4, "pipeline", 4, 1), (4, "pipeline tensor", 4, 0.5),
]

SKETCHED = {(4, "nothing"), (4, "pipeline")}


def layouts(ranks, vary, batch):
    """The arguments of layouts.lua for every layout; written apart from the search's own list."""
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    for tensor, pipe in itertools.product(divisors if "tensor" in vary else [1], divisors if "pipeline" in vary else [1]):
        if ranks % (tensor * pipe):
            continue
        data = ranks // (tensor * pipe)
        for each in (k for k in (1, 2, 4, 8) if batch % (data * k) == 0):
            for zero in range(4 if data > 1 else 1):
                for recompute in ("false", "true"):
                    for schedule, chunks in SCHEDULES if pipe > 1 else SCHEDULES[:1]:
                        yield dict(tensor=tensor, pipe=pipe, data=data, each=each, zero=zero, recompute=recompute,
                                   schedule=schedule, chunks=chunks, batch=batch)


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
                if (ranks, vary) in SKETCHED:  # a search that may end early plans less exactly
                    sketched = times(self.search(ranks, vary, batch, "--memory", limit + limit // 50, seconds=600).out)
                    self.assertEqual(len(sketched), len(best))
                    for one, other in zip(sketched, best):
                        self.assertAlmostEqual(one / other, 1, delta=0.02)

    def test_a_limit_that_nothing_meets(self):
        done = self.search(2, "nothing", 4, "--memory", 1000)
        self.assertEqual(done.code, 1)
        self.assertRegex(done.err, r"search: no layout of 2 ranks fits into 1000 bytes a rank\n(.*\n)* +\d+ cannot fit")

    def test_the_stack_to_paste_is_the_first(self):
        done = self.search(4, "pipeline tensor", 4)
        stack = re.search(r"^microbatches = (\d+),\nstrategy = \{\n((?:  strategy\..*\n)+)\},$", done.out, re.MULTILINE)
        sizes = {name: int(size) for name, size in re.findall(r"strategy\.(\w+) .*size = (\d+)", stack[2])}
        zero = re.search(r"stage = (\d)", stack[2])
        schedule = re.search(r'schedule = "(\w+)"', stack[2])
        chunks = re.search(r"chunks = (\d)", stack[2])
        layout = dict(
            tensor=sizes.get("tensor", 1), pipe=sizes.get("pipeline", 1), data=sizes["data"], batch=4,
            each=int(stack[1]) // sizes["data"], zero=zero[1] if zero else 0, chunks=chunks[1] if chunks else 0,
            schedule=schedule[1] if schedule else "1f1b", recompute=str("recompute" in stack[2]).lower())
        first, unit = re.search(r"^ *1  ([\d.e-]+) (ms|s)  ", done.out, re.MULTILINE).groups()
        self.assertAlmostEqual(self.planned(4, layout)[0] / (float(first) * (1e-3 if unit == "ms" else 1)), 1, places=3)

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
