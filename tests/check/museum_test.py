# SPDX-License-Identifier: Apache-2.0
"""The judge catches every bad plugin by the test that is there for its fault.

Arguments: the build tree, then PLUGIN=TEST, or PLUGIN=TEST@SEED, of each.
"""
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from trials import BUILD, ENVIRONMENT, Trial

SHARED = pathlib.Path("/dev/shm")
TRIALS = [Trial(argument) for argument in sys.argv[2:]]


class Museum(unittest.TestCase):
    def test_every_fault_is_caught(self):
        self.assertGreaterEqual(len(TRIALS), 24)
        for trial in TRIALS:
            with self.subTest(plugin=trial.name):
                done, report = trial.run(trial.seed)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                [test] = report["tests"]
                self.assertEqual((test["test"], test["state"]), (trial.test, "FAILED"))
                for what in ("contract", "expected", "got"):
                    self.assertNotEqual(test[what], "", what)

    def test_an_op_of_two_plugins_is_refused(self):
        plugins = [trial.plugin for trial in TRIALS if trial.name.startswith("museum-op-")][:2]
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write('local op = require "orrery".ops.softsign\n')
            script.flush()
            done = subprocess.run([BUILD / "orrery", "run", script.name], capture_output=True, text=True, timeout=60,
                                  env=ENVIRONMENT | {"ORRERY_PLUGIN_PATH": ":".join(plugins)})
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"ops.softsign is in two plugins, '\w+' and '\w+': remove one of them")

    def test_a_bad_plugin_leaves_no_files(self):
        [trial] = [trial for trial in TRIALS if trial.name == "museum-comm-follows_no_memory"]
        before = set(SHARED.iterdir())
        trial.run(trial.seed)
        left, end = set(SHARED.iterdir()) - before, time.monotonic() + 60
        while left and time.monotonic() < end:  # other tests' files go when these end
            time.sleep(0.1)
            left &= set(SHARED.iterdir())
        self.assertEqual({path.name for path in left if path.name.startswith("messages-museum-")}, set())

    def test_a_seed_gives_its_own_numbers(self):
        [picky] = [trial for trial in TRIALS if trial.seed != 1]
        self.assertEqual(picky.run(1)[1]["passed"], 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
