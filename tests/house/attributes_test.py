# SPDX-License-Identifier: Apache-2.0
"""Passes that distribute and lower a program talk to each other through types (Layout, CommOp), not through attributes of
ops that one of them sets and another one reads.
"""
import pathlib
import re
import unittest

CORE = pathlib.Path(__file__).resolve().parents[2] / "core"
SETS = re.compile(r'attrs\.set\(\s*"(\w+)"|\{\{?"(\w+)", ')
READS = re.compile(r'attr_(?:int|ints|text|real)\([^;]*?"(\w+)"|attrs\.has\(\s*"(\w+)"')

# What an op of the kind has for everybody: ops.h and the heads of core/program/ops.
OF_OPS = {"axis", "begin", "counts", "dim", "dims", "dtype", "end", "fn", "leaf_n", "me", "origin", "perm", "ranks", "root"}


def names(pattern, text):
    return {a or b for a, b in pattern.findall(text)}


class Attributes(unittest.TestCase):
    def test_between_passes(self):
        text = "\n".join(p.read_text() for room in ("partition", "lower") for p in sorted((CORE / room).rglob("*.cpp")))
        self.assertEqual((names(SETS, text) & names(READS, text)) - OF_OPS, set())

    def test_a_new_one_is_seen(self):
        text = 'op.attrs.set("mine", int64_t{1}); if (op.attrs.has("mine")) x = attr_int(op.attrs, "other", 0);'
        self.assertEqual(names(SETS, text) & names(READS, text), {"mine"})


if __name__ == "__main__":
    unittest.main()
