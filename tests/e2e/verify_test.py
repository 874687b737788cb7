# SPDX-License-Identifier: Apache-2.0
"""`orrery run --verify N` names the rank that computes one step twice with different bits, and ranks whose copies of a
parameter have come apart; where nothing fails, it changes no bit.

Arguments: the build tree.
"""
import pathlib
import sys
import tempfile
import unittest

from program import BUILD, HERE, orrery
from two_hosts import digest

FAULTY = str(BUILD / "tests/e2e/faulty")
SUSPECT = 76


def run(ranks, stack, *flags, plugins=FAULTY, variables=None, **words):
    return orrery("run", "-n", ranks, "--threads", 1, *flags, "verify.lua", f"stack={stack}",
                  *(f"{k}={v}" for k, v in words.items()), cwd=HERE, ORRERY_PLUGIN_PATH=plugins, **(variables or {}))


class Verify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "now"

    def faulty(self, ranks, stack, *flags, rank, skip=0, memory=0, **words):
        self.file.unlink(missing_ok=True)
        return run(ranks, stack, *flags, file=self.file, rank=rank, **words,
                   variables=dict(FAULTY_FILE=str(self.file), FAULTY_RANK=str(rank), FAULTY_SKIP=str(skip),
                                  FAULTY_IN=str(memory)))

    # In the first computation of step 7, and in the second. A rank of these has up to 8 products in a step.
    def test_a_wrong_product_is_named_with_its_rank(self):
        for ranks, stack, rank in ((1, "data", 0), (2, "data", 1), (4, "zero3", 2), (2, "pipeline", 1), (2, "average", 1)):
            for skip in (0, 8):
                with self.subTest(ranks=ranks, stack=stack, skip=skip):
                    job = self.faulty(ranks, stack, "--verify", 7, skip=skip, rank=rank)
                    self.assertEqual(job.code, SUSPECT, job.err)
                    self.assertRegex(job.err, rf"(?m)^error: .*matmul on rank {rank}, f32\[[\d,]+\]: step 7 was computed twice")
                    self.assertNotIn("step\t7", job.out)

    def test_without_it_nobody_notices(self):
        quiet, wrong = run(2, "data"), self.faulty(2, "data", rank=1, skip=4)
        self.assertNotEqual(digest(quiet), digest(wrong))

    def test_copies_that_have_come_apart_are_named(self):
        job = self.faulty(3, "data", "--verify", 7, memory=1, rank=2, at=6)
        self.assertEqual(job.code, SUSPECT, job.err)
        self.assertRegex(job.err, r"before step 7: the ranks hold different values of '\d\.weight': rank \d and rank \d differ")

    def test_the_same_bits(self):
        for stack in ("data", "zero3", "pipeline", "tensor", "average", "precision"):
            with self.subTest(stack=stack):
                self.assertEqual(digest(run(2, stack, "--verify", 2)), digest(run(2, stack)))

    def test_the_same_bits_on_a_device(self):
        strict = str(BUILD / "tests/run")
        self.assertEqual(digest(run(2, "data", "--verify", 2, "--kernels", "strict", plugins=strict)), digest(run(2, "data")))

    def test_what_cannot_be_taken_twice(self):
        job = run(2, "server", "--verify", 2)
        self.assertEqual(job.code, 1, job.err)
        self.assertIn("--verify 2: strategy.server lets each rank take its own steps", job.err)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main()
