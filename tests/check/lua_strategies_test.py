# SPDX-License-Identifier: Apache-2.0
"""`orrery check FILE.lua`: the examples of strategies in Lua pass; what they promise and do not keep is found.

Arguments: the build tree.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/strategies"

# Data parallelism with a fault in it.
FAULTY = """local strategy = require("orrery").strategy
return strategy.define {{
  name = "faulty", class = "exact", provides = "shares of the batch",
  transform = function(draft)
    draft:axis("faulty", 0)
    for _, field in ipairs(draft:values "batch") do draft:place(field, "faulty", 1) end
    for _, g in ipairs(draft:values "grad") do draft:reduce({gradient}, "faulty", 1 << 20) end
  end,
  predict = {predict},
}}
"""


def check(path):
    done = subprocess.run([BUILD / "orrery", "check", path, "--json"], capture_output=True, text=True, timeout=300)
    return done, json.loads(done.stdout) if done.stdout else None


class LuaStrategies(unittest.TestCase):
    def test_examples_pass(self):
        for name in ("fsdp", "zeropp", "stages", "lion_vote"):
            with self.subTest(name):
                done, report = check(EXAMPLES / f"{name}.lua")
                self.assertEqual((done.returncode, report["failed"]), (0, 0), done.stdout)
                self.assertEqual((report["kind"], report["passed"]), ("strategy", 3))

    def judged(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "faulty.lua")
            path.write_text(text)
            done, report = check(path)
        return done, {test["test"] for test in report["tests"] if test["state"] == "FAILED"} if report else set()

    def test_faults_are_found(self):
        good, bad_bytes = "strategy.traffic.sum", "function(q) return strategy.traffic.sum(q) + 1 end"
        rounded = 'draft:tensor(g):cast "bf16":cast "f32"'
        self.assertEqual(self.judged(FAULTY.format(gradient="g", predict=good))[1], set())
        self.assertEqual(self.judged(FAULTY.format(gradient="g", predict=bad_bytes))[1], {"strategy.predictions"})
        rounds = FAULTY.format(gradient="g", predict=good).replace(
            "draft:reduce(", f"draft:replace(g, {rounded}) draft:reduce(")
        self.assertIn("strategy.values", self.judged(rounds)[1])

    def test_what_is_no_strategy(self):
        for text in ("return 7", "local x =", "return { name = 'mine' }"):
            with self.subTest(text):
                done, _ = self.judged(text)
                self.assertEqual(done.returncode, 2)
                self.assertIn("faulty.lua: a strategy's file returns what strategy.define has made", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=["lua_strategies_test"])
