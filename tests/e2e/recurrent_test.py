# SPDX-License-Identifier: Apache-2.0
"""The LSTM example, its state carried from step to step: the bits of one process on several ranks, alone and in stacks,
and a loss that falls.

Arguments: the build tree.
"""
import re
import sys
import unittest

from program import SOURCE, orrery

WORDS = ("examples/lstm.lua", f"data={SOURCE / 'README.md'}", "batch=8", "ctx=12", "dim=12", "hidden=16", "microbatches=4")


def train(*words, ranks=1):
    done = orrery("run", "-n", ranks, *WORDS, *words)
    assert done.code == 0, done.err
    return done.out


def digest(text):
    return re.search(r"digest (\w+)", text)[1]


class Recurrent(unittest.TestCase):
    def test_ranks_have_the_bits_of_one_process(self):
        alone = digest(train("steps=4", "sample=0"))
        for ranks in (2, 3, 4):
            self.assertEqual(digest(train("steps=4", "sample=0", ranks=ranks)), alone, ranks)

    def test_it_learns_and_writes(self):
        text = train("steps=60", "sample=20", "dropout=0", "lr=0.02")
        losses = [float(x) for x in re.findall(r"loss (\S+)", text)]
        self.assertLess(min(losses), losses[0] - 0.5, text)
        self.assertRegex(text, r"(?s)--- sample ---\nlocal .{20}\n---")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
