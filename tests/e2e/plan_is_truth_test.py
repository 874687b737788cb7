# SPDX-License-Identifier: Apache-2.0
"""What `orrery plan` says is what a run counts, to the byte; and it says it fast for 512 ranks.

Arguments: the build tree.
"""
import re
import resource
import sys
import unittest

from program import HERE, orrery

NUMBERS = re.compile(r"\d+(?:-\d+)?")


def ranks_in(text):
    """'0-2, 5' as a list."""
    ranks = []
    for part in NUMBERS.findall(text):
        first, _, last = part.partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


def planned(text):
    """{rank: (arena bytes, bytes sent a step)} of what `orrery plan` prints."""
    found = {}
    for part in re.split(r"^(?=ranks? \d)", text, flags=re.MULTILINE)[1:]:
        who = ranks_in(part.partition("\n")[0])
        arena = int(re.search(r"arena peak +(\d+)", part)[1])
        found |= {rank: (arena, 0) for rank in who}
        for sent, some in re.findall(r"^  sends +(\d+) bytes a step in \d+ operations?(.*)$", part,
                                     re.MULTILINE):
            found |= {rank: (arena, int(sent)) for rank in ranks_in(some) or who}
        more = r"^  sends +(\d+) bytes more after each step in \d+ operations?(.*)$"
        for sent, some in re.findall(more, part, re.MULTILINE):
            found |= {rank: (arena, found[rank][1] + int(sent)) for rank in ranks_in(some) or who}
    return found


def counted(text):
    """The same from what counters.lua prints, and the steps that it has counted."""
    lines = re.findall(r"counted by (\d+): steps (\d+) arena_bytes (\d+) bytes_sent (\d+)", text)
    return {int(rank): (int(arena), int(sent) // int(steps)) for rank, steps, arena, sent in lines}


class PlanIsTruth(unittest.TestCase):
    def check(self, ranks, *words):
        with self.subTest(ranks=ranks, words=words):
            plan = orrery("plan", "--details", "-n", ranks, "counters.lua", *words, cwd=HERE)
            self.assertEqual((plan.code, plan.err), (0, ""))
            run = orrery("run", "-n", ranks, "counters.lua", *words, cwd=HERE)
            self.assertEqual(run.code, 0, run.err)
            self.assertEqual(sorted(counted(run.out)), list(range(ranks)))
            self.assertEqual(counted(run.out), planned(plan.out), plan.out)
            self.assertNotIn("but counted", plan.out)
            self.assertIn("as counted" if ranks > 1 else "sends nothing", plan.out)

    def test_even_ranks(self):
        for ranks in (1, 2, 4):
            self.check(ranks)

    def test_uneven_leaves_and_shares(self):
        self.check(3, "dim=20")
        self.check(5, "microbatches=7", "batch=15")

    def test_pieces(self):
        for stage in (1, 2, 3):
            for ranks in (2, 3):
                self.check(ranks, "stack=zero", f"stage={stage}")
            self.check(4, "stack=zero", f"stage={stage}", "group=2")
        self.check(3, "stack=server")
        self.check(4, "stack=server", "servers=1")

    def test_ranks_that_train_alone_and_their_averages(self):
        for ranks in (2, 3, 4):
            self.check(ranks, "stack=average")

    def test_servers_of_their_own_time_do_send(self):
        plan = orrery("plan", "--details", "-n", 2, "counters.lua", "stack=async", cwd=HERE)
        self.assertEqual((plan.code, plan.err), (0, ""))
        self.assertRegex(plan.out, r"(?m)^  server: a worker pushes gradients of \d+ bytes")
        self.assertRegex(plan.out, r"(?m)^  sends   what strategy.server says above")

    def test_stages(self):
        self.check(2, "stack=pipeline")
        self.check(4, "stack=pipeline")

    def test_cut_layers(self):
        for words in (["stack=tensor"], ["stack=tensor", "sequence=true"]):
            self.check(2, *words)
            self.check(6, *words)
        for words in (["stack=context"], ["stack=context", "sequence=true"]):
            self.check(4, *words)
            self.check(8, *words)

    def test_pieces_take_less_memory(self):
        held = []
        for words in (["stack=data"], *(["stack=zero", f"stage={s}", "bucket=1000"] for s in (1, 2, 3))):
            plan = orrery("plan", "--details", "-n", 4, "counters.lua", *words, "dim=96", cwd=HERE)
            held.append([int(re.search(rf"^    {name} +(\d+)", plan.out, re.MULTILINE)[1])
                         for name in ("parameter", "state", "buckets")])
        for stage, (less, name) in enumerate([(1, "state"), (2, "buckets"), (0, "parameter")], 1):
            with self.subTest(stage=stage, memory=name):
                self.assertLess(held[stage][less], 0.75 * held[stage - 1][less])

    def test_nothing_runs(self):
        plan = orrery("plan", "--details", "-n", 4, "counters.lua", cwd=HERE)
        self.assertNotIn("counted by", plan.out)
        self.assertIn("as counted", plan.out)

    def test_gpt2_on_512_ranks_takes_less_than_two_seconds(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        plan = orrery("plan", "--details", "-n", 512, "examples/gpt2.lua")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(plan.code, 0, plan.err)
        self.assertIn("plan: 512 ranks", plan.out)
        # Of the processor: how long that takes by the clock depends on what else runs here.
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.assertLess(used, 2.0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
