# SPDX-License-Identifier: Apache-2.0
"""The folder for GPU machines is whole: all of it that needs no GPU runs, by the folder alone.

Arguments: the build tree.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]


class Bundle(unittest.TestCase):
    def judge(self, folder, path, *words):
        done = subprocess.run([f"{folder}/bundle/tests/gpu/run", "--out", folder, *words], text=True,
                              capture_output=True, cwd="/", env={"PATH": path, "HOME": folder})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = json.loads(pathlib.Path(folder, "result.json").read_text())["rows"]
        verdicts = {row["name"]: row["verdict"] for row in rows}
        self.assertEqual(verdicts["the plugin cuda is listed"], "passed", rows)
        self.assertEqual(verdicts["orrery plan --kernels cuda"], "passed", rows)

    def test_it_runs_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([SOURCE / "scripts/gpu-bundle", f"{folder}/bundle", BUILD], text=True,
                                  capture_output=True)
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
            self.judge(folder, "/usr/bin:/bin")
            self.judge(folder, "/no-python-here", "--only", "ops")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
