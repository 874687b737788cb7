# SPDX-License-Identifier: Apache-2.0
"""Strategies of a user's own (examples/strategies): fsdp.lua and stages.lua train with the bits of one process and
have the plans of strategy.fsdp and strategy.pipeline; fsdp_rows.lua trains with the bits of one process; what zeropp.lua rounds does not depend on the ranks; what cannot
be gathered so is refused.

Arguments: the build tree.
"""
import json
import pathlib
import re
import tempfile
import unittest

from program import HERE, SOURCE, orrery

WORDS = ("optimizer=adamw", "steps=3")


def stack(own, *others, before=()):
    return f"{{ {', '.join([*before, 'strategy.data{}', own, *others])} }}"


def mine(options=""):
    return f'require("strategies.fsdp"){{ {options} }}'


def builtin(options=""):
    return f'strategy.fsdp{{ units = "blocks.*", {options} }}'


PIPELINE = "strategy.pipeline{ size = 2 }"
# (ranks, options, strategies before, strategies behind)
ROWS = (
    (2, "", (), ()),
    (3, "prefetch = 2", (), ()),
    (2, "prefetch = 0, reshard = false", (), ()),
    (3, "", (), ("strategy.accumulate{}",)),
    (2, "each = true", (), ("strategy.accumulate{}",)),
    (2, "", (), ("strategy.recompute{}",)),
    (4, "", (PIPELINE,), ()),
    (4, "each = true", (PIPELINE,), ("strategy.recompute{}",)),
    (4, "", ('strategy.tensor{ size = 2, chunks = 2 }',), ()),
    (2, "", (), ("strategy.precision{}", "strategy.recompute{}")),
    (4, "prefetch = 0", (PIPELINE,), ("strategy.precision{}",)),
)


NAMES = {"origin", "where", "name", "strategy"}  # what differs between plans of one thing under two names


def without_names(plan):
    if isinstance(plan, dict):
        return {key: without_names(value) for key, value in plan.items() if key not in NAMES}
    return [without_names(value) for value in plan] if isinstance(plan, list) else plan


class OwnStrategies(unittest.TestCase):
    known = {}  # what trainings have printed, by ranks and stack

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = pathlib.Path(folder.name) / "strategies.lua"
        (self.script.parent / "strategies").symlink_to(SOURCE / "examples/strategies")

    def write(self, text):
        self.script.write_text((HERE / "strategies.lua").read_text().replace("strategy = STACK", f"strategy = {text}"))
        return self.script

    def trained(self, ranks, text):
        if (ranks, text) not in self.known:
            self.known[ranks, text] = self.train(ranks, text)
        return self.known[ranks, text]

    def train(self, ranks, text):
        done = orrery("run", "-n", ranks, self.write(text), *WORDS)
        self.assertEqual(done.code, 0, done.err)
        return re.sub(r"  [\d.]+ ms$", "", done.out, flags=re.M)

    def planned(self, ranks, text):
        done = orrery("plan", "-n", ranks, "--json", self.write(text), *WORDS)
        self.assertEqual(done.code, 0, done.err)
        return without_names(json.loads(done.out))

    def test_bits_of_one_process(self):
        for ranks, options, before, behind in ROWS:
            names = "".join(before + behind)
            alone = "strategy.tensor{ chunks = 2 }" if "tensor" in names else "strategy.precision{}" if "precision" in names else ""
            text = stack(mine(options), *behind, before=before)
            with self.subTest(text):
                self.assertEqual(self.trained(ranks, text), self.trained(1, f"{{ {alone} }}"))

    def test_plan_of_the_built_in(self):
        for ranks, options, before, behind in ROWS:
            with self.subTest(options=options, before=before, behind=behind):
                self.assertEqual(self.planned(ranks, stack(mine(options), *behind, before=before)),
                                 self.planned(ranks, stack(builtin(options), *behind, before=before)))

    def test_stages(self):
        """Own stages in an own order: the bits of one process, also with own shards, and the plan of the built-in."""
        own, listed = 'require("strategies.stages"){ size = 2 }', '{ "tok,pos,drop,blocks.1-2", "blocks.3-4,norm,head" }'
        one = self.trained(1, "{}")
        for ranks, text in ((2, f"{{ {own} }}"), (4, stack(mine(), before=(own,))),
                            (4, stack(mine("each = true"), "strategy.recompute{}", before=(own,)))):
            with self.subTest(text):
                self.assertEqual(self.trained(ranks, text), one)
        self.assertEqual(self.planned(2, f"{{ {own} }}"), self.planned(2, f"{{ strategy.pipeline{{ stages = {listed} }} }}"))

    def test_by_rows(self):
        """The bits of one process, and the bytes of shards that are cut anywhere."""
        for ranks, options, before, behind in ROWS[:5] + ROWS[6:9]:
            own = f'require("strategies.fsdp_rows"){{ {options} }}'
            alone = "{ strategy.tensor{ chunks = 2 } }" if "tensor" in "".join(before) else "{}"
            text = stack(own, *behind, before=before)
            with self.subTest(text):
                self.assertEqual(self.trained(ranks, text), self.trained(1, alone))
        sent = [sum(e["sent_bytes"] for e in self.planned(2, stack(text))["kinds"][0]["traffic"]["exchanges"])
                for text in (mine(), 'require("strategies.fsdp_rows"){}')]
        self.assertLess(abs(sent[0] - sent[1]), 0.05 * sent[0])

    def test_each_parameter_by_itself(self):
        """The strategy of docs/strategies/README.md; what nobody reads in backward is not gathered there."""
        page = (SOURCE / "docs/strategies/README.md").read_text()
        transform = re.search(r"```lua\n(transform = function\(draft\)\n.*?unshard.*?)```", page, re.S)[1]
        own = f'strategy.define {{ name = "own", class = "exact", predict = strategy.traffic.pieces, {transform} }}{{}}'
        text = stack(own)
        self.assertEqual(self.trained(3, text), self.trained(1, "{}"))
        gathers = [e for e in self.planned(2, text)["kinds"][0]["traffic"]["exchanges"] if e["op"] == "all_gather"]
        params = 2 + 4 * 12 + 2  # tok, pos; blocks; norm: all but biases are read twice
        self.assertLess(len(gathers), 2 * params)

    def test_weights_in_8_bits(self):
        """What is rounded does not depend on the number of ranks; a quarter of the bytes travels, and the scales."""
        own = 'require("strategies.zeropp"){ block = 32 }'
        one = self.trained(1, stack(own))
        self.assertNotEqual(one, self.trained(1, "{}"))
        for ranks, behind in ((2, ()), (3, ("strategy.recompute{}",)), (2, ("strategy.accumulate{}",))):
            with self.subTest(ranks=ranks, behind=behind):
                self.assertEqual(self.trained(ranks, stack(own, *behind)), one)
        sent = {}
        for name, text in (("zeropp", own), ("fsdp", mine())):
            sent[name] = sum(e["sent_bytes"] for e in self.planned(2, stack(text))["kinds"][0]["traffic"]["exchanges"]
                             if e["op"] == "all_gather" and e["elements"] > 1000)
        self.assertLess(sent["zeropp"], 0.45 * sent["fsdp"])

    def test_what_needs_all_of_a_parameter_is_refused(self):
        sharded = f"""strategy.define {{ name = "own", class = "exact", transform = function(draft)
          for _, p in ipairs(draft:values "param") do draft:shard(p, {{ what = "param", axis = "batch" }}) end
          draft:at_last(function(step)
            for _, p in ipairs(step:values "param") do
              step:beside(p, "forward")
              step:replace(p, step:op("unshard", {{ step:tensor(p):cumsum(1) }}), "forward")
            end
          end)
        end }}{{}}"""
        done = orrery("run", "-n", "2", self.write(stack(sharded)), *WORDS)
        self.assertEqual(done.code, 1)
        self.assertRegex(done.err, r"strategies.lua:\d+: .*unshard: .* is made of '.*', of which ranks have shards, in a "
                                   "way that needs all of it: before `unshard` there may be")


if __name__ == "__main__":
    unittest.main(argv=["own_strategies_test"])
