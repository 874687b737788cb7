# SPDX-License-Identifier: Apache-2.0
"""Expert parallelism end to end: switch layers on several ranks train as on one, to rounding, and with fixed chunks
of time bit for bit; tokens travel by two all_to_alls each way. The script fails on a rank that sends other bytes than
planned.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import unittest

from close import assert_close, numbers
from program import HERE, orrery
from sweep import Sweeping, Training

STACKS = [
    (2, "{ strategy.data{ size = 2 }, EXPERT }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{}, EXPERT }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{ stage = 3 }, EXPERT, strategy.accumulate{} }"),
    (1, "{ EXPERT, strategy.recompute{} }"),
]
# The ranks that share the experts have samples of their own: by their number, the batch dealt alike on each.
OVER = 'strategy.expert{ over = "batch" }'
DEALT = {
    2: [OVER, f"{{ {OVER}, strategy.accumulate{{}} }}", f"{{ strategy.data{{ size = 1 }}, {OVER}, strategy.zero{{}} }}"],
    4: [OVER, f"{{ strategy.data{{ size = 2 }}, {OVER} }}", f"{{ strategy.data{{ size = 2 }}, {OVER}, strategy.zero{{}} }}",
        f"{{ strategy.data{{ size = 2 }}, {OVER}, strategy.accumulate{{}} }}",
        f"{{ {OVER[:-2]}, size = 2 }}, strategy.data{{}} }}",
        f"{{ {OVER}, strategy.recompute{{}}, strategy.accumulate{{}} }}"],
}
# Values of several ranks' own: nothing that follows may be left out on one of them and not on another.
GATHERED = """strategy.define{ name = "mine", class = "approx", transform = function(draft)
  draft:axis "line"
  for _, field in ipairs(draft:values "batch") do if #field.dims > 1 then draft:place(field, "line", 2) end end
  for _, p in ipairs(draft:values "param") do if #p.dims == 3 then draft:place(p, "line", 1) end end end }{}"""


def training(stack, ranks, *words):
    return Training(stack, ranks, words, "switch.lua")


def exchanges(plan, kinds, name=r"\S+ +"):
    """(kind, elements) of the exchanges of f32 that a plan lists; equal ones are in one line."""
    found = re.findall(rf"^ +{name}(?:(\d+) x )?({kinds}) +(\d+) x f32", plan, re.MULTILINE)
    return [(kind, elements) for times, kind, elements in found for _ in range(int(times or 1))]


class Expert(Sweeping):
    def assert_close(self, stack, ranks, *words):
        with self.subTest(stack=stack, ranks=ranks, words=words):
            lines = self.sweep.lines(training(stack, ranks, *words))
            expected = self.sweep.lines(training("nil", 1, *words))
            self.assertEqual(len(lines), 6)
            self.assertEqual([len(numbers(line)) for line in expected[:-1]], [3] * 5)
            assert_close(self, lines, expected)

    def test_trains_as_one_process(self):
        for words in ((), ("top=2",), ("capacity=0.5",), ("group=2", "top=2")):
            self.assert_close("strategy.expert{}", 2, *words)
        self.assert_close("strategy.expert{}", 4)
        self.assert_close("strategy.expert{}", 2, "group=16")  # routed together on all ranks
        for stack in ("strategy.tensor{}", "strategy.context{}", GATHERED):
            self.assert_close(stack, 2)
        for stack in ("{ strategy.expert{ size = 2 }, strategy.tensor{} }",
                      "{ strategy.context{ size = 2 }, strategy.expert{} }",
                      "{ strategy.pipeline{ size = 2 }, strategy.expert{} }"):
            self.assert_close(stack, 4)

    def test_a_loss_that_nothing_reads_is_left_out_of_an_evaluation(self):
        one, stages = (orrery("run", "-n", ranks, HERE / "unread.lua", f"pipe={ranks}") for ranks in (1, 2))
        self.assertEqual(len(one.out.splitlines()), 2)
        self.assertEqual((stages.code, stages.out), (0, one.out), stages.err)

    def test_chunks_have_the_bits_of_one_process(self):
        for words in ((), ("top=2",)):
            one = self.sweep.lines(training("strategy.expert{ chunks = 4 }", 1, *words))
            for ranks in (2, 4):
                with self.subTest(words=words, ranks=ranks):
                    self.assertEqual(self.sweep.lines(training("strategy.expert{ chunks = 4 }", ranks, *words)), one)

    def test_stacks_have_the_bits_of_experts_alone(self):
        one = self.sweep.lines(training("strategy.expert{ chunks = 4 }", 1))
        for factor, stack in STACKS:
            with self.subTest(stack=stack):
                stack = stack.replace("EXPERT", "strategy.expert{ size = 2, chunks = 4 }")
                self.assertEqual(self.sweep.lines(training(stack, 2 * factor)), one)

    def test_shares_of_the_batch_have_the_bits_of_one_process(self):
        """Owners sum over the microbatches of all ranks in the tree of one process, norms in its blocks."""
        for words in ((), ("top=2",), ("microbatches=8",), ("microbatches=4", "capacity=0.5", "group=2")):
            one = self.sweep.lines(training("nil", 1, *words))
            for ranks, stacks in DEALT.items():
                for stack in stacks:
                    with self.subTest(words=words, stack=stack, ranks=ranks):
                        self.assertEqual(self.sweep.lines(training(stack, ranks, *words)), one)

    def test_shares_of_an_odd_number_of_microbatches(self):
        """Nodes of several ranks' leaves are no siblings: 3 on each of 4, 6 on each of 2."""
        words = ("batch=12", "microbatches=12")
        one = self.sweep.lines(training("nil", 1, *words))
        for ranks, stacks in DEALT.items():
            for stack in stacks:
                if "accumulate" in stack:
                    continue  # refused
                with self.subTest(stack=stack, ranks=ranks):
                    self.assertEqual(self.sweep.lines(training(stack, ranks, *words)), one)

    def test_shares_beside_other_strategies(self):
        """To the bits of those alone."""
        two, four = f"{OVER[:-2]}, size = 2 }}", f"{OVER[:-2]}, size = 4 }}"
        for ranks, stack, alone in (
                (8, f"{{ strategy.data{{ size = 2 }}, {four}, strategy.zero{{ stage = 1 }} }}", "nil"),
                (4, f"{{ strategy.data{{ size = 2 }}, {two}, strategy.zero{{ stage = 3 }}, strategy.recompute{{}} }}", "nil"),
                (4, f"{{ strategy.pipeline{{ size = 2 }}, {two} }}", "nil"),
                (8, f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{ size = 2 }}, {two}, strategy.zero{{}} }}", "nil"),
                (2, f"{{ {two}, strategy.precision{{ compute = 'bf16' }} }}", "strategy.precision{ compute = 'bf16' }")):
            with self.subTest(ranks=ranks, stack=stack):
                words = ("microbatches=8",)
                self.assertEqual(self.sweep.lines(training(stack, ranks, *words)), self.sweep.lines(training(alone, 1, *words)))
        self.assert_close(f"{{ {two}, strategy.tensor{{}} }}", 4)
        self.assert_close(f"{{ strategy.context{{ size = 2 }}, {two} }}", 4)

    def test_experts_that_a_script_writes(self):
        """To the bits of one process, where their tokens are recomputed as well."""
        two = f"{OVER[:-2]}, size = 2 }}"
        for words in ((), ("flat=false",)):
            one = self.sweep.lines(Training("nil", 1, words, "mixture.lua"))
            self.assertEqual(len(one), 4)
            for ranks, stack in (
                    (2, OVER), (2, f"{{ {OVER}, strategy.recompute{{}} }}"), (2, f"{{ strategy.recompute{{}}, {OVER} }}"),
                    (2, f"{{ {OVER}, strategy.recompute{{ mode = 'selective' }} }}"),
                    (2, f"{{ {OVER}, strategy.accumulate{{}} }}"),
                    (4, f"{{ strategy.data{{ size = 2 }}, strategy.zero{{}}, {two}, strategy.recompute{{}} }}"),
                    (4, f"{{ {two}, strategy.data{{ size = 2 }}, strategy.zero{{ stage = 3 }} }}"),
                    (4, f"{{ strategy.pipeline{{ size = 2 }}, {two} }}")):
                with self.subTest(words=words, stack=stack):
                    self.assertEqual(self.sweep.lines(Training(stack, ranks, words, "mixture.lua")), one)

    def test_shares_with_norms_of_every_tensor(self):
        """Block sums of what is cut; on stages scalars alone travel."""
        words = ("microbatches=8", "optimizer=lars")
        one = self.sweep.lines(training("nil", 1, *words))
        two = f"{OVER[:-2]}, size = 2 }}, strategy.data{{ size = SIZE }}, strategy.zero{{}}"
        for ranks, stack in ((4, f"{{ {two.replace('SIZE', '2')} }}"),
                             (4, f"{{ strategy.pipeline{{ size = 2 }}, {two.replace('SIZE', '1')} }}")):
            with self.subTest(stack=stack):
                self.assertEqual(self.sweep.lines(training(stack, ranks, *words)), one)

    def test_shares_of_a_ragged_batch(self):
        """Rows that fill a microbatch up travel with the others and weigh nothing."""
        for words in (("batch=7", "microbatches=4"), ("batch=6", "microbatches=4", "top=2")):
            one = self.sweep.lines(training("nil", 1, *words))
            for ranks, stack in ((2, OVER), (4, OVER), (4, f"{{ strategy.data{{ size = 2 }}, {OVER}, strategy.accumulate{{}} }}")):
                with self.subTest(words=words, ranks=ranks, stack=stack):
                    self.assertEqual(self.sweep.lines(training(stack, ranks, *words)), one)

    def test_shares_are_saved_and_loaded_on_other_numbers_of_ranks(self):
        saved = pathlib.Path(self.folder.name) / "checkpoint"
        whole = self.sweep.lines(training("nil", 1))
        first = f"{{ strategy.data{{ size = 2 }}, {OVER}, strategy.zero{{}} }}"
        self.assertEqual(self.sweep.lines(training(first, 4, "stop=2", f"save={saved}"))[:2], whole[:2])
        for stack, ranks in (("nil", 1), (OVER, 2), (OVER, 4), ("{ strategy.data{}, strategy.zero{ stage = 3 } }", 3),
                              (f"{{ {OVER}, strategy.accumulate{{}} }}", 2)):
            with self.subTest(stack=stack, ranks=ranks):
                self.assertEqual(self.sweep.lines(training(stack, ranks, f"load={saved}")), whole[2:])

    def test_shares_send_tokens_and_sums_of_blocks(self):
        """Of 8 experts' two matrices [32, 128] the norm's blocks of 1,024 elements beside."""
        for ranks in (2, 4):
            plan = orrery("plan", "--details", "-n", ranks, self.script(OVER)).out
            self.assertNotIn("cannot work on parts", plan)
            sent = exchanges(plan, "all_to_all|all_gather")
            self.assertEqual(sent, [("all_to_all", str(8 * 8 * 4 * 32 // ranks))] * 4 + [("all_gather", str(8 * 4 // ranks))] * 2)

    def test_shares_are_planned_for_512_ranks(self):
        """Whose experts' tokens travel within groups of 8."""
        stack = f"{{ strategy.data{{ size = 64 }}, {OVER}, strategy.zero{{}} }}"
        plan = orrery("plan", "--details", "-n", 512, self.script(stack), "batch=512", "microbatches=512")
        self.assertEqual((plan.code, plan.err), (0, ""))
        [mine] = [part for part in re.split(r"^ranks? ", plan.out, flags=re.M) if re.match(r"0\b", part)]
        # [8 experts, 4 groups of a sample, 1 place, 32]
        travels = exchanges(mine, r"\w+", r"GPT\.second\.experts ")
        self.assertEqual(travels, [("all_to_all", str(8 * 4 * 32))] * 4)
        self.assertRegex(mine, r"predicted by .*expert.*, as counted")

    def script(self, stack):
        script = pathlib.Path(self.folder.name) / "switch.lua"
        script.write_text((HERE / "switch.lua").read_text().replace("strategy = STACK", f"strategy = {stack}"))
        return script

    def test_tokens_travel_by_two_exchanges_each_way(self):
        """Of the experts' tokens [8 experts, 8 * 4 groups, 1 place, 32] a rank's part, in forward and backward; and
        the layer's two losses."""
        for ranks in (2, 4):
            plan = orrery("plan", "--details", "-n", ranks, self.script("strategy.expert{}")).out
            mine = plan[plan.index("rank 0"):].split("rank 1")[0]
            self.assertNotIn("cannot work on parts", plan)
            travels = exchanges(mine, r"\w+", r"GPT\.second\.experts(?:\.router)? +")
            self.assertEqual(travels, [("all_to_all", str(8 * 8 * 4 * 32 // ranks))] * 4 + [("all_reduce", "1")] * 2)

    def test_refuses_what_cannot_be(self):
        for stack, ranks, words, text in [
            ("strategy.expert{}", 3, (), "second.experts.up' has 8 experts, which do not divide over 3 ranks"),
            ("strategy.expert{ chunks = 16 }", 2, (), "has 8 experts, which do not divide over 16 chunks"),
            ("strategy.expert{}", 2, ("group=5",), "switch: groups of 5 do not divide a time of 16"),
            ("strategy.expert{ over = 'line' }", 2, (), "strategy.expert: there is no over 'line': give time or batch"),
            ("strategy.expert{ over = 'batch', chunks = 4 }", 2, (), "over the batch no time is cut: leave `chunks` and"),
            (OVER, 3, (), "second.experts.up' has 8 experts, which do not divide over 3 ranks"),
            (OVER, 4, ("microbatches=2",), "2 microbatches on the 4 ranks that share the batch, of which the 4 of axis "
             "'expert' send each other samples: each rank needs the same number"),
            (f"{{ {OVER}, strategy.accumulate{{}} }}", 2, ("batch=12", "microbatches=12"),
             "each rank needs the same number, as strategy.accumulate runs them one after another a power of two"),
            (f"{{ strategy.data{{ size = 2 }}, {OVER}, strategy.accumulate{{}} }}", 6, ("experts=6", "batch=12", "microbatches=12"),
             "12 microbatches on the 6 ranks that share the batch, of which the 3 of axis 'expert' send each other samples"),
        ]:
            with self.subTest(stack=stack, words=words):
                done = orrery("run", "-n", ranks, self.script(stack), *words)
                self.assertEqual(done.code, 1)
                self.assertIn(text, done.err)
                self.assertRegex(done.err, r"switch\.lua:\d+:")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
