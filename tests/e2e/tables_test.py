# SPDX-License-Identifier: Apache-2.0
"""A model that is a plain table of layers: strategies name its layers by their keys, as those of a module by its parts.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import orrery

SCRIPT = """
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
orrery.seed(1)
local model = { a = nn.linear(3, 8), blocks = { nn.linear(8, 8), nn.linear(8, 8) }, head = nn.linear(8, 10) }
local run = orrery.compile(function(b)
  local x = model.a(b.x):tanh()
  for _, layer in ipairs(model.blocks) do x = layer(x):tanh() end
  return (model.head(x) ^ 2):mean()
end, { params = model, optimizer = optim.sgd { lr = 0.1 }, strategy = { STACK }, microbatches = 2 })
for step = 1, 3 do
  orrery.log("loss %.7f", run:step { x = orrery.tensor { { 1.0, 2.0, 3.0 }, { 2.0, 3.0, step } } }:mean())
end
"""
STACKS = {
    'strategy.tensor { column = { "head" } }': 2,
    'strategy.tensor { column = { "blocks.1" }, row = { "blocks.2" } }': 2,
    'strategy.pipeline { stages = { { "a", "blocks.1" }, { "blocks.2", "head" } } }': 2,
    'strategy.recompute { path = "blocks.*" }': 1,
}


class Tables(unittest.TestCase):
    def run_stack(self, stack, ranks):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "table.lua"
            script.write_text(SCRIPT.replace("STACK", stack))
            return orrery("run", "-n", ranks, script)

    def test_layers_are_named_by_their_keys(self):
        one = re.findall(r"loss (\S+)", self.run_stack("", 1).out)
        self.assertEqual(len(set(one)), 3)
        for stack, ranks in STACKS.items():
            with self.subTest(stack=stack):
                run = self.run_stack(stack, ranks)
                self.assertEqual(run.code, 0, run.err)
                for got, want in zip(re.findall(r"loss (\S+)", run.out), one, strict=True):
                    self.assertAlmostEqual(float(got), float(want), delta=1e-6)

    def test_what_matches_nothing_is_told_what_there_is(self):
        run = self.run_stack('strategy.tensor { column = { "haed" } }', 2)
        self.assertIn("column 'haed' matches no linear layer; there are: a, blocks.1, blocks.2, head", run.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
