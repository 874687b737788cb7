# SPDX-License-Identifier: Apache-2.0
"""Every example takes a step as it is: with its own data, its own numbers and all that follows its training.

Arguments: the build tree.
"""
import re
import sys
import tempfile
import unittest

from program import SOURCE, orrery

# These want a file of the user's; take no steps; are run by a test of their own, for they are large.
ELSEWHERE = {"mnist", "machine", "gpt2"}
RANKS = {"gpt-3d": 4, "place": 2}


class Examples(unittest.TestCase):
    def test_each_takes_a_step(self):
        for path in sorted((SOURCE / "examples").glob("*.lua")):
            if path.stem in ELSEWHERE:
                continue
            with self.subTest(path.name), tempfile.TemporaryDirectory() as folder:
                done = orrery("run", "-n", RANKS.get(path.stem, 1), path, "steps=1", cwd=folder)
                self.assertEqual(done.code, 0, done.err)
                self.assertFalse(re.search(r"\bnan\b", done.out), done.out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
