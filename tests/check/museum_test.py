# SPDX-License-Identifier: Apache-2.0
"""The judge catches every bad plugin by the test that is there for its fault.

Arguments: the build tree, then PLUGIN=TEST of each.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv[1])
TRIALS = [argument.rsplit("=", 1) for argument in sys.argv[2:]]
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}


class Museum(unittest.TestCase):
    def test_every_fault_is_caught(self):
        self.assertGreaterEqual(len(TRIALS), 24)
        for plugin, trial in TRIALS:
            with self.subTest(plugin=pathlib.Path(plugin).stem):
                done = subprocess.run([BUILD / "orrery", "check", plugin, "--only", trial, "--json"],
                                      env=ENVIRONMENT, capture_output=True, text=True, timeout=200)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                [test] = json.loads(done.stdout)["tests"]
                self.assertEqual((test["test"], test["state"]), (trial, "FAILED"))
                for what in ("contract", "expected", "got"):
                    self.assertNotEqual(test[what], "", what)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
