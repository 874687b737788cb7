# SPDX-License-Identifier: Apache-2.0
"""Strategies of a user's own that cut parameters and write where these are gathered (examples/strategies/fsdp.lua,
zeropp.lua): fsdp.lua trains with the bits of one process and has the plan of strategy.fsdp; what zeropp.lua rounds is
what a model of rounded weights has; what cannot be gathered so is refused.

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
)


NAMES = {"origin", "where", "name", "strategy"}  # what differs between plans of one thing under two names


def without_names(plan):
    if isinstance(plan, dict):
        return {key: without_names(value) for key, value in plan.items() if key not in NAMES}
    return [without_names(value) for value in plan] if isinstance(plan, list) else plan


class OwnSharding(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = pathlib.Path(folder.name) / "strategies.lua"
        (self.script.parent / "strategies").symlink_to(SOURCE / "examples/strategies")

    def write(self, text):
        self.script.write_text((HERE / "strategies.lua").read_text().replace("strategy = STACK", f"strategy = {text}"))
        return self.script

    def trained(self, ranks, text):
        done = orrery("run", "-n", ranks, self.write(text), *WORDS)
        self.assertEqual(done.code, 0, done.err)
        return re.sub(r"  [\d.]+ ms$", "", done.out, flags=re.M)

    def planned(self, ranks, text):
        done = orrery("plan", "-n", ranks, "--json", self.write(text), *WORDS)
        self.assertEqual(done.code, 0, done.err)
        return without_names(json.loads(done.out))

    def test_bits_of_one_process(self):
        for ranks, options, before, behind in ROWS:
            alone = "{ strategy.tensor{ chunks = 2 } }" if "tensor" in "".join(before) else "{}"
            text = stack(mine(options), *behind, before=before)
            with self.subTest(text):
                self.assertEqual(self.trained(ranks, text), self.trained(1, alone))

    def test_plan_of_the_built_in(self):
        for ranks, options, before, behind in ROWS:
            with self.subTest(options=options, before=before, behind=behind):
                self.assertEqual(self.planned(ranks, stack(mine(options), *behind, before=before)),
                                 self.planned(ranks, stack(builtin(options), *behind, before=before)))


if __name__ == "__main__":
    unittest.main(argv=["own_sharding_test"])
