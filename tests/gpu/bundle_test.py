# SPDX-License-Identifier: Apache-2.0
"""The folder for GPU machines is whole: all of it that needs no GPU runs, by the folder alone.

Arguments: the build tree.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/gpu"))
import kernels  # noqa: E402

MACHINE = {"matrix_flops": {"f32": 1e12, "bf16": 8e12}, "memory_bandwidth": 1e11}
PROFILE = """\
       ms     %   calls   us/call  GFLOP/s     GB/s  op
    10.00  50.0      20    500.00   4000.0     10.0  matmul bf16 [1,8,8] [1,8,8]
     8.00  40.0       2   4000.00              25.0  pointwise [64] 1 in, 1 out, 2 instructions
     2.00  10.0       1   2000.00                    between launches
"""


class Kernels(unittest.TestCase):
    """The table of a step's time beside the floor."""

    def test_the_floor_is_the_slower_of_two_limits(self):
        product, pointwise, rest, whole = kernels.table(PROFILE, MACHINE)
        self.assertIn("4.00 TFLOP/s     10.0 GB/s   2.00 x floor  matmul bf16", product)
        self.assertIn("25.0 GB/s   4.00 x floor  pointwise", pointwise)
        self.assertNotIn("x floor", rest)
        self.assertEqual(whole.split(), "20.00 ms in all, floor 7.00 ms".split())

    def test_every_op_of_a_real_profile_is_read(self):
        done = subprocess.run([BUILD / "orrery", "run", "-n", "1", "--profile", SOURCE / "tests/gpu/kernels.lua", "batch=2",
                               "ctx=16", "vocab=64", "dim=32", "heads=2", "layers=2", "steps=3"], text=True,
                              capture_output=True, env=os.environ | {"ORRERY_LUA_PATH": str(SOURCE / "tests")})
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.partition("  op\n")[2].splitlines()
        rows = list(kernels.parse(done.stdout))
        self.assertEqual(len(rows), len(lines), done.stdout)
        self.assertTrue(any(op.startswith("matmul bf16") and flops > 0 for op, _, _, flops, _ in rows), rows)


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
