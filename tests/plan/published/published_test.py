# SPDX-License-Identifier: Apache-2.0
"""`orrery plan` beside times that were published for the same layouts (rows.py, more_rows.py, where their sources are).

The suite plans the rows that take little time. All of them, with a table: published_test.py BUILD all
What the error of each paper is when nothing was fitted to it: published_test.py BUILD left-out
Errors by stacks of all rows, or of those that begin with words: published_test.py BUILD errors [WORD...]
"""
import math
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from errors import memory, table
from more_rows import FITTED_OF_STACKS, more_rows
from orderings import figures
from row import Row, facts_of, planned, planned_memory
from rows import FITTED, rows

BUILD = sys.argv[1]
ALL = sys.argv[2:] == ["all"]
QUICK = {"ptdp-1.7B", "ptdp-3.6B", "ptdp-7.5B", "ptdp-39.1B", "sel-175B-full", "sel-175B-sequence",
         "torchtitan-8", "torchtitan-128"}
QUICK_OF_STACKS = {"mpt-a100-7b-2048", "mpt-a100-7b-8192", "mpt-a100-7b-65536"}
QUICK_FIGURES = {"13, batch 32"}
QUICK_PUBLISHED_MEMORY = {"torchtitan-128", "kempner-7b-fsdp4", "kempner-7b-tp4"}
QUICK_MEMORY = {"mpt-a100-30b-2048", "mpt-a100-13b-2048", "mpt-a100-7b-2048", "mpt-h100-70b-2048-64"}
CARD = 80 * 2**30


class Published(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ratios, cls.seconds = {}, {}
        for row in rows():
            if not (ALL or row.name in QUICK):
                continue
            plan = planned(BUILD, row)
            cls.seconds[row.name], cls.ratios[row.name] = plan.seconds, plan.seconds / row.seconds
            if ALL:
                print(f"{row.name:24} {row.seconds:7.2f} s, planned {plan.seconds:7.2f} s: "
                      f"{plan.seconds / row.seconds:.3f}, {plan.memory / 2**30:5.1f} GiB", flush=True)
            # What Llama 3 dropped of its activations early is not published; the plan keeps them.
            assert plan.memory < CARD or row.stack == "llama3", \
                f"{row.name} is planned with {plan.memory} bytes a rank, and ran on 80 GiB"
        held = [abs(ratio - 1) for name, ratio in cls.ratios.items() if name not in FITTED]
        cls.mean, cls.worst = sum(held) / len(held), max(held)
        if ALL:
            print(f"mean error of {len(held)} rows to which nothing was fitted: {cls.mean:.1%}, worst {cls.worst:.1%}")

    def test_times_are_near_those_that_were_measured(self):
        self.assertLess(self.mean, 0.10)
        self.assertLess(self.worst, 0.25)

    def test_one_run_tells_of_others_of_its_stack(self):
        # Sequences of 2,048 were run once; of the longer ones most of the time is attention's.
        plans = {row.name: planned(BUILD, row).seconds / row.seconds
                 for row in more_rows() if row.name in QUICK_OF_STACKS}
        once = plans.pop("mpt-a100-7b-2048")
        self.assertEqual(len(plans), len(QUICK_OF_STACKS) - 1)
        for name, ratio in plans.items():
            self.assertLess(abs(ratio / once - 1), 0.15, name)

    def test_memory_is_near_what_was_published(self):
        for row in [*rows(), *more_rows()]:
            if row.memory and (ALL or row.name in QUICK_PUBLISHED_MEMORY):
                with self.subTest(row=row.name):
                    ratio = planned_memory(BUILD, row) / row.memory
                    if ALL:
                        print(f"{row.name:24} {row.memory / 2**30:5.1f} GiB, planned {ratio:.3f} times as much", flush=True)
                    self.assertLess(abs(ratio - 1), 0.15)

    def test_what_ran_on_a_card_fits_it(self):
        for row in more_rows():
            if row.words.get("several") != "true" or not (ALL or row.name in QUICK_MEMORY):
                continue
            with self.subTest(row=row.name):
                plan, once = planned(BUILD, row), planned(BUILD, row, each="false")
                if ALL:
                    print(f"{row.name:24} {plan.memory / 2**30:5.1f} GiB, with exchanges once a step "
                          f"{once.memory / 2**30:5.1f}", flush=True)
                self.assertLess(plan.memory, facts_of(row)["memory_bytes"])
                self.assertGreater(once.memory, plan.memory)

    def test_the_faster_layout_is_the_faster_one(self):
        pairs = [(name, name.replace("-full", "-sequence")) for name in self.seconds if name.endswith("-full")]
        self.assertTrue(pairs)
        for full, sequence in pairs:
            self.assertLess(self.seconds[sequence], self.seconds[full], full)

    def test_figures_fall_as_they_fell(self):
        for name, ranks, layouts in figures():
            if not (ALL or name in QUICK_FIGURES):
                continue
            with self.subTest(figure=name):
                times = [planned(BUILD, Row(name, "a100", "layout.lua", ranks, words, 0)).seconds for words in layouts]
                self.assertEqual(times, sorted(times))
                self.assertEqual(len(times), len(set(times)))

    @unittest.skipUnless(ALL, "planning thousands of ranks takes minutes")
    def test_more_ranks_give_less_each(self):
        # With twice the ranks Llama 3 had the same batch, with 8 times the ranks SEL had 8 times the batch.
        self.assertGreater(2 * self.seconds["llama3-16384"], self.seconds["llama3-8192"])
        self.assertGreater(self.seconds["sel-530B-sequence-2240"], self.seconds["sel-530B-sequence"])


def fitted(of):
    """How many times the machine's rates make the geometric mean of these rows' ratios 1, to a thousandth."""
    faster = 1
    while True:
        logs = [math.log(planned(BUILD, row, faster).seconds / row.seconds) for row in of]
        mean = math.exp(sum(logs) / len(logs))
        if abs(mean - 1) < 1e-3:
            return faster
        faster *= mean


def left_out():
    """Fits the rate to the fitted rows of the other paper on the same machine, and prints the errors of each paper's."""
    papers = {}
    for row in rows():
        if row.machine == "a100":
            papers.setdefault(row.stack, []).append(row)
    for paper, its in papers.items():
        faster = fitted([row for other, of in papers.items() if other != paper for row in of if row.name in FITTED])
        ratios = [planned(BUILD, row, faster).seconds / row.seconds for row in its]
        errors = [abs(ratio - 1) for ratio in ratios]
        print(f"{paper}: {faster:.3f} times the rates from the other paper; mean error of {len(its)} rows "
              f"{sum(errors) / len(errors):.1%}, worst {max(errors):.1%}: "
              + ", ".join(f"{row.name} {ratio:.2f}" for row, ratio in zip(its, ratios)), flush=True)


def errors(words):
    """Plans all rows whose names begin with one of the words, and prints them and their errors."""
    found = []
    for row in [*rows(), *more_rows()]:
        if words and not row.name.startswith(tuple(words)):
            continue
        try:
            found.append((row, planned(BUILD, row)))
        except subprocess.CalledProcessError:  # it has said why
            print(f"{row.name:28} {row.seconds:8.3f} s, refused", flush=True)
            continue
        plan = found[-1][1]
        if row.memory_words:
            found[-1] = row, plan._replace(memory=planned_memory(BUILD, row) - row.beside)
        print(f"{row.name:28} {row.seconds:8.3f} s, planned {plan.seconds:8.3f} s: {plan.seconds / row.seconds:.3f}, "
              f"{plan.memory / 2**30:6.1f} GiB", flush=True)
    for line in [*table(found, FITTED | FITTED_OF_STACKS), *memory(found)]:
        print(line)


if __name__ == "__main__" and sys.argv[2:] == ["left-out"]:
    left_out()
elif __name__ == "__main__" and sys.argv[2:3] == ["errors"]:
    errors(sys.argv[3:])
elif __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
