# SPDX-License-Identifier: Apache-2.0
"""Tensors as second results are the same on one to four ranks under every stack; what cannot be given, and
parameters that would not begin alike on all ranks, are refused with a line.

Arguments: the build tree.
"""
import sys
import unittest

from program import HERE, orrery

SCRIPT = HERE / "second_results.lua"


class SecondResults(unittest.TestCase):
    def test_equal_under_every_stack_on_any_number_of_ranks(self):
        expected = None
        for ranks in (1, 2, 3, 4):
            done = orrery("run", "-n", ranks, SCRIPT)
            self.assertEqual(done.code, 0, done.err)
            blocks = [block.splitlines() for block in done.out.split("--\n")[:-1]]
            self.assertEqual(len(blocks), 4 if ranks == 1 else 6)
            expected = expected or blocks[0]
            for i, block in enumerate(blocks):
                with self.subTest(ranks=ranks, stack=i):
                    if i == 4:  # stages have no value that is not of the batch
                        block = sorted(block + [line for line in expected if " wide " in line], key=expected.index)
                    if i == 5:  # sums over the cut dim are in another order
                        for mine, other in zip(block, expected, strict=True):
                            mine, other = mine.split(), other.split()
                            self.assertEqual(len(mine), len(other))
                            for a, b in zip(mine, other):
                                if a != b:
                                    self.assertAlmostEqual(float(a.strip("{}")), float(b.strip("{}")), delta=1e-4)
                    else:
                        self.assertEqual(block, expected)
        expected = "\n".join(expected)
        for line in ("step 1 best i64[9] {", "step 2 logits f32[9,4] {{", "step 1 flipped f32[4,9] ", "eval pairs f32[32,2] ",
                     "eval labels i32[16] {0 1 2 3 ", "step 1 rows f32[4] ", "step 1 one  ",
                     "eval wide f32[12,3] "):
            self.assertIn("\n" + line, "\n" + expected)

    def test_parameters_that_begin_alike(self):
        for case in ("broadcast", "collected"):
            with self.subTest(case=case):
                done = orrery("run", "-n", 2, SCRIPT, f"case={case}", MALLOC_PERTURB_="4")
                self.assertEqual(done.code, 0, done.err)

    def test_refused(self):
        for case, place, text in (("served", "orrery.compile(function(b)", "'best' is i64[9]"),
                                  ("send", "world:send(model", "'b.weight' is held in parts by the ranks"),
                                  ("staged", "orrery.compile(function(b)", "'wide' does not depend on the batch"),
                                  ("seed", "orrery.compile(function(b)", "rank 1 begin with other values"),
                                  ("written", "orrery.compile(function(b) return model(b.x):mean() end,",
                                   "rank 1 begin with other values"),
                                  ("data", "orrery.compile(function(b) return model(b.x):mean() end,",
                                   "the ranks were given different batches"),
                                  ("extra", "orrery.compile(function(b) return model(b.x):mean() end,",
                                   "rank 1 begin with other values")):
            with self.subTest(case=case):
                done = orrery("run", "-n", 2, SCRIPT, f"case={case}", ORRERY_DEADLINE="10")
                lines = [n for n, line in enumerate(SCRIPT.read_text().splitlines(), 1) if place in line]
                self.assertEqual(done.code, 1, done.err)
                self.assertIn(text, done.err)
                self.assertTrue(any(f"second_results.lua:{n}: " in done.err for n in lines), done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
