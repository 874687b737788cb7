# SPDX-License-Identifier: Apache-2.0
"""Parameters on which the loss does not depend are left as they are, and a line says so; a second run with an optimizer
says that it has states of its own.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery

STACKS = [(1, "strategy.data {}"), (2, "strategy.data {}"), (2, "strategy.data {}, strategy.zero { stage = 1 }"),
          (2, "strategy.data {}, strategy.zero { stage = 3 }"),
          (2, "strategy.pipeline {}, strategy.data {}")]
SAID = (r"orrery: \S*left_alone\.lua:\d+: the loss does not depend on {} of params: left as they are, without weight decay")


class LeftAlone(unittest.TestCase):
    def steps(self, ranks, stack, how, kind="adamw"):
        done = orrery("run", "-n", ranks, HERE / "left_alone.lua", f"how={how}", f"stack={stack}", f"kind={kind}")
        self.assertEqual(done.code, 0, done.err)
        return re.findall(r"^step \d+ (\S+) (\S+)$", done.out, re.MULTILINE), done.err

    def test_they_are_as_if_they_were_frozen(self):
        for kind in ("adamw", "momentum"):
            want = None
            for ranks, stack in STACKS if kind == "adamw" else STACKS[:1]:
                with self.subTest(ranks=ranks, stack=stack, kind=kind):
                    unread, said = self.steps(ranks, stack, "unread", kind)
                    frozen, silent = self.steps(ranks, stack, "frozen", kind)
                    self.assertEqual(unread, frozen)
                    want = want or unread
                    self.assertEqual(unread, want)
                    self.assertEqual(len(re.findall(SAID.format("'side.bias', 'side.weight'"), said)), 1, said)
                    self.assertNotIn("does not depend", silent)

    def test_they_stay_as_they_are(self):
        for ranks, stack in STACKS[:3]:
            with self.subTest(ranks=ranks, stack=stack):
                steps, said = self.steps(ranks, stack, "never")
                self.assertEqual(len({side for _, side in steps}), 1)
                self.assertEqual(len(re.findall(SAID.format("'more.bias', 'more.weight', 'side.bias' and 1 more"), said)), 1, said)

    def test_plans_say_it(self):
        done = orrery("plan", "-n", 2, HERE / "left_alone.lua", "how=never")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("  params  the loss does not depend on 'more.bias', 'more.weight', 'side.bias' and 1 more", done.out)

    def test_two_runs_with_one_optimizer(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "two.lua"
            script.write_text("""local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local a, b, adam, sgd = nn.linear(1, 1), nn.linear(1, 1), optim.adam {}, optim.sgd {}
local function run(model, optimizer)
  return orrery.compile(function(batch) return model(batch.x):mean() end, { params = model, optimizer = optimizer })
end
run(a, adam) run(b, adam) run(a, sgd) run(a, sgd)
run(a, optim.adam {})
print "so far"
run(a, adam)
""")
            done = orrery("run", "-n", 2, script)
            self.assertEqual(done.code, 0, done.err)
            self.assertEqual(re.findall(r"^orrery: \S*two\.lua:5: this adam trains 'bias' elsewhere too: each run keeps optimizer "
                                        r"states of its own$", done.err, re.MULTILINE).__len__(), 1, done.err)
            self.assertEqual(done.err.count("elsewhere"), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
