# SPDX-License-Identifier: Apache-2.0
"""A call of the strategies' editing table (core/include/orrery/strategy.h) is there for more than one strategy: at least
two of the repository's plugins, Lua strategies and examples use each, but for those that are listed with a reason.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "core/include/orrery/strategy.h"
# A strategy is a folder, or a file, of these.
ROOMS = ("plugins/strategy", "scripts/orrery/strategy", "examples/strategies", "examples/plugin-strategy", "tests/check/museum",
         "tests/e2e")
# The names under which the C++ SDK (sdk/program.hpp, sdk/pieces.hpp) and Lua have a call, where they differ from the table's.
NAMES = {"diag": ("remark",), "each": ("values", "parameters"), "info": ("value", "tensor"), "rule": ("factors",),
         "life": ("wait_in",)}
SINGLE = {
    "cotangent": "the number that the loss's derivative begins with: a loss scale (precision)",
    "deal": "ranks of unequal speed (data)",
    "halve": "shards within a host and replicas between them (zero)",
    "idle": "dedicated ranks get no samples (server)",
    "life": "activations that wait in host memory or on disk (recompute)",
    "offload": "states in host memory or on disk (zero)",
    "output": "a number that the step reports: the loss scale (precision)",
    "retype": "compute in another dtype than states are kept in (precision)",
    "rule": "which dims a product sums over (tensor)",
    "scatter": "activations that are summed in parts (tensor)",
    "trains": "evaluations need no gradient casts (precision)",
}


def live_calls(text):
    """The slots of the table that are not answered by an error alone."""
    table = text[text.index("typedef struct orr_edit {"):text.index("} orr_edit;")]
    slots = re.findall(r"(/\*(?:(?!\*/).)*\*/)?\s*\w+\*?\s+\(\*(\w+)\)\(orr_program\*", table, re.S)
    slots += re.findall(r"(/\*(?:(?!\*/).)*\*/)?\s*orr_status\*\s+\(\*(\w+)\)\(orr_program\*", table, re.S)
    return sorted({name for comment, name in slots if "Not supported any more" not in comment})


def strategies():
    """By name: the text of each strategy."""
    texts = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".h", ".lua"):
                continue
            text = path.read_text()
            if room != "tests/e2e" or "strategy" in text:
                name = f"{room}/{path.relative_to(ROOT / room).parts[0]}"
                texts[name] = texts.get(name, "") + text
    return texts


def users(call, texts):
    words = "|".join((call, *NAMES.get(call, ())))
    # A call, or the field of `strategy.define` that makes it.
    use = re.compile(rf"(->|\.|:)({words})\s*[({{\"]|\b({words})\s*=\s*function")
    return [name for name, text in texts.items() if use.search(text)]


class StrategyCalls(unittest.TestCase):
    def test_every_call_has_two_users(self):
        texts = strategies()
        calls = live_calls(HEADER.read_text())
        self.assertGreater(len(calls), 30)
        single = {call for call in calls if len(users(call, texts)) < 2}
        self.assertEqual(single, set(SINGLE))

    def test_calls_that_are_gone_do_not_count(self):
        calls = live_calls(HEADER.read_text())
        self.assertIn("shard", calls)
        self.assertNotIn("loss_scale", calls)


if __name__ == "__main__":
    unittest.main()
