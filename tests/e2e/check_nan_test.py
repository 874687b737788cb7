# SPDX-License-Identifier: Apache-2.0
"""`orrery run --check-nan` names the first op that makes a value that is not finite, its line, module, step and rank;
what is finite, or a mask, trains as without it.

Arguments: the build tree.
"""
import sys
import unittest

from program import HERE, orrery

SCRIPT = "check_nan.lua"
LINES = (HERE / SCRIPT).read_text().splitlines()


def run(case, ranks=1, check=True, **words):
    flags = ["--check-nan"] if check else []
    return orrery("run", "-n", ranks, *flags, SCRIPT, f"case={case}", *(f"{k}={v}" for k, v in words.items()), cwd=HERE)


class CheckNan(unittest.TestCase):
    def test_the_op_is_named(self):
        for case, op, made in (
                ("forward", "Net: log", "NaN at [7,5] of f32[8,8], of finite inputs"),
                ("overflow", "Net: exp", "infinity at [7,5] of f32[8,8], of finite inputs"),
                ("backward", "Net: the gradient, div", "infinity at [7,5] of f32[8,8], of finite inputs"),
                ("batch", "Net.a: matmul", "NaN at [7,1] of f32[8,8], as 'x' holds NaN at [7,2] of f32[8,3], which no op"),
                ("parameter", "Net.b: add", "NaN at [1,1] of f32[8,2], as 'b.bias' holds NaN at [1] of f32[2]")):
            with self.subTest(case=case):
                done = run(case)
                [line] = [n for n, text in enumerate(LINES, 1) if text.endswith("-- HERE " + case)]
                self.assertEqual(done.code, 1, done.err)
                self.assertIn(f"error: {SCRIPT}:{line}: {op}: step 3 on rank 0 makes {made}", done.err)
                self.assertEqual(done.out, "step\t1\nstep\t2\n")

    def test_the_rank_is_named(self):
        done = run("forward", 4)
        self.assertEqual(done.code, 1, done.err)
        self.assertIn("log: step 3 on rank 3 makes NaN at [1,5] of f32[2,8], of finite inputs", done.err)
        done = run("forward", 2, stack="pipeline")
        self.assertIn("log: step 3 on rank 0 makes NaN at [1,5] of f32[2,8], of finite inputs", done.err)

    def test_finite_trainings_have_the_same_bits(self):
        for case in ("none", "mask"):
            for ranks in (1, 2):
                with self.subTest(case=case, ranks=ranks):
                    plain, checked = run(case, ranks, check=False), run(case, ranks)
                    self.assertEqual((plain.code, checked.code), (0, 0), checked.err)
                    self.assertIn("digest ", plain.out)
                    self.assertEqual(plain.out, checked.out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
