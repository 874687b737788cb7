# SPDX-License-Identifier: Apache-2.0
"""strategy.recompute: the same digest of all parameters, in a smaller arena.

Arguments: the build tree.
"""
import re
import sys
import tempfile
import unittest

from program import SOURCE, orrery

WORDS = ["data=" + str(SOURCE / "examples/gpt.lua"), "dim=32", "layers=3", "heads=2", "ctx=16", "batch=12",
         "microbatches=12", "steps=6", "eval=0", "sample=0"]


class Recompute(unittest.TestCase):
    def script(self, strategy):
        """examples/gpt.lua with another list of strategies."""
        text = (SOURCE / "examples/gpt.lua").read_text()
        self.assertEqual(text.count("strategy.data {}"), 1)
        file = tempfile.NamedTemporaryFile("w", suffix=".lua")
        self.addCleanup(file.close)
        file.write(text.replace("strategy.data {}", strategy))
        file.flush()
        return file.name

    def digest_and_arena(self, strategy, ranks):
        script = self.script(strategy)
        run = orrery("run", "-n", ranks, script, *WORDS)
        self.assertEqual(run.code, 0, run.err)
        plan = orrery("plan", "--details", "-n", ranks, script, *WORDS)
        self.assertIn("as counted" if ranks > 1 else "sends nothing", plan.out)
        return (re.search(r"^digest (\w+)$", run.out, re.M)[1],
                int(re.search(r"arena peak +(\d+)", plan.out)[1]))

    def test_keeps_the_bits_in_less_memory(self):
        digest, arena = self.digest_and_arena("strategy.data {}", 1)
        for options in ("", 'mode = "selective"', 'path = "blocks.*"', 'path = { "blocks.1-2", "norm" }'):
            for ranks in (1, 2):
                with self.subTest(options=options, ranks=ranks):
                    stack = "{ strategy.data {}, strategy.recompute { %s } }" % options
                    again, smaller = self.digest_and_arena(stack, ranks)
                    self.assertEqual(again, digest)
                    self.assertLess(smaller, arena if ranks == 1 else arena / 2)

    def test_refuses_a_path_that_matches_nothing(self):
        script = self.script('{ strategy.data {}, strategy.recompute { path = "block.*" } }')
        run = orrery("run", script, *WORDS)
        self.assertEqual(run.code, 1)
        self.assertRegex(run.err, r"\.lua:\d+: strategy.recompute: path 'block\.\*' matches no module; "
                                  r"there are: blocks, blocks.1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
