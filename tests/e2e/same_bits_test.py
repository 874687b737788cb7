# SPDX-License-Identifier: Apache-2.0
"""One script, one digest of all parameters: on any number of ranks and threads, stopped or not.

Arguments: the build tree, the kernel plugin.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import orrery

KERNELS = sys.argv[2]
GPT = ["examples/gpt.lua", "data=examples/gpt.lua", "dim=32", "layers=2", "heads=2", "ctx=16",
       "batch=12", "microbatches=12", "steps=12", "dropout=0.1", "tie=true", "clip=1", "eval=0",
       "sample=0"]


def digest(ranks, *words, threads=1):
    done = orrery("run", "-n", ranks, "--kernels", KERNELS, "--threads", threads, *GPT, *words)
    found = re.findall(r"^digest ([0-9a-f]{32})$", done.out, re.MULTILINE)
    if done.code != 0 or len(found) != 1:
        raise AssertionError(f"exit code {done.code}, {len(found)} digests:\n{done.out}{done.err}")
    return found[0]


class SameBits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.expected = digest(1)

    def test_ranks(self):
        for ranks in range(2, 7):
            with self.subTest(ranks=ranks):
                self.assertEqual(digest(ranks), self.expected)

    def test_threads(self):
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                self.assertEqual(digest(ranks, threads=2), self.expected)

    def test_stopped_and_continued_on_other_ranks(self):
        for before, after in ((2, 3), (3, 1)):
            with self.subTest(before=before, after=after), tempfile.TemporaryDirectory() as folder:
                saved = pathlib.Path(folder) / "checkpoint"
                stopped = digest(before, "stop=5", f"save={saved}")
                self.assertNotEqual(stopped, self.expected)
                self.assertEqual(digest(after, f"load={saved}"), self.expected)

    def test_the_digest_sees_what_matters(self):
        others = {digest(1, word) for word in ("seed=2", "dropout=0", "clip=0.5", "microbatches=6")}
        self.assertEqual(len(others - {self.expected}), 4)

    def test_who_leaves_microbatches_out_is_told_what_to_write(self):
        def run(ranks, *words):
            done = orrery("run", "-n", ranks, "--kernels", KERNELS, "examples/mlp.lua", "steps=20", *words)
            self.assertEqual(done.code, 0, done.err)
            told = re.findall(r"^orrery: (examples/mlp.lua:\d+: microbatches is left out: .*)$", done.err, re.MULTILINE)
            return done.out, told

        (alone, of_one), (out, told) = run(1, "microbatches=0"), run(3, "microbatches=0")
        self.assertEqual((of_one, len(told)), ([], 1))
        self.assertNotEqual(out, alone)
        [remedy] = re.findall(r"write (microbatches = \d+), or more,", told[0])
        for ranks in (1, 2, 3):
            self.assertEqual(run(ranks, remedy.replace(" ", "")), (out, []), ranks)
        self.assertEqual(run(1), run(3), "the example as it is")

    def test_examples_leave_them_out_nowhere(self):
        for name in ("bert", "gpt", "llama", "lstm", "mlp", "regression", "t5"):
            few = ["steps=2"] + ([] if name in ("regression", "mlp") else ["dim=32"])
            done = orrery("run", "-n", 2, "--kernels", KERNELS, f"examples/{name}.lua", *few)
            self.assertEqual((done.code, "left out" in done.err), (0, False), done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
