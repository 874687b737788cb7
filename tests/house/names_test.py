# SPDX-License-Identifier: Apache-2.0
"""The core names no strategy, and the checker sees each way of naming one."""
import pathlib
import sys
import tempfile
import unittest

from names import ORDINARY, Vocabulary, check

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRATEGIES = [
    ("plugins/strategy/data.cpp", '{"bucket", ORR_ATTR_INT, 0, "1", ""}, e->axis(program, "data", 0);\n'),
    ("plugins/strategy/pipeline.cpp", 'edit->axis(program, "pipe", n);\n'),
    ("scripts/orrery/strategy/diloco.lua", '---@option lr number=0.7\nreturn { axis = "replica" }\n'),
]
NAMED = [
    ('fail("put strategy.data first");', 'names "data"'),
    ('fail("there is no data axis");', 'names "data"'),
    ('fail("give axis \'pipe\' a size");', 'names "pipe"'),
    ("int n = 0;  // the data-parallel ranks", 'names "data"'),
    ('// dealt over "data" alone', 'names "data" in a comment'),
    ('if (axis.name == "data") return;', 'branches on "data"'),
    ('if (has_axis(product, "replica")) return;', 'branches on "replica"'),
    ('if (known.count("diloco")) return;', 'branches on "diloco"'),
    ('fail("a stage of the pipeline is empty");', 'says "pipeline"'),
    ('fail("train without diloco");', 'says "diloco"'),
    ('fail("give bucket = 5");', 'names the option "bucket"'),
]
FREE = [
    'lua_setfield(L, -2, "data");', 'fail("the data of {} ended");', '#include "partition/stage.h"',
    'fail("{} needs no axis", name);  // "mine"',
]


def faults(line):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in [*STRATEGIES, ("core/run/a.cpp", line + "\n")]:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return check(folder)


class Names(unittest.TestCase):
    def test_repository(self):
        self.assertEqual(check(ROOT), [])

    def test_each_way_is_found(self):
        for line, part in NAMED:
            with self.subTest(line=line):
                found = faults(line)
                self.assertEqual(len(found), 1, found)
                self.assertIn(part, found[0])

    def test_other_meanings_are_free(self):
        for line in FREE:
            with self.subTest(line=line):
                self.assertEqual(faults(line), [])

    def test_lists_hold_nothing_else(self):
        self.assertEqual(set(ORDINARY) - Vocabulary(ROOT).names, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
