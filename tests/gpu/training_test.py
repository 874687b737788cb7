# SPDX-License-Identifier: Apache-2.0
"""Training with --kernels cuda: without a driver it says so; on the fake one (fake_cuda, found by
LD_LIBRARY_PATH) its losses are those of the reference, and one process has the bits of two.

Arguments: the build tree, the folder of the fake libraries. Every figure is a fake GPU's.
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

BUILD, FAKE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 3e-4  # of a loss that is printed with four digits

MLP = ["examples/mlp.lua", "steps=200"]
GPT = ["examples/gpt.lua", "data=examples/gpt.lua", "dim=32", "layers=2", "heads=2", "ctx=16", "batch=12",
       "microbatches=4", "steps=8", "dropout=0.1", "clip=1", "eval=4", "sample=20"]


def orrery(*words, fake=True):
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    if fake:
        env |= {"LD_LIBRARY_PATH": str(FAKE), "FAKE_NVRTC_FOLDER": str(BUILD / "tests/gpu/compiled")}
    return subprocess.run([BUILD / "orrery", *map(str, words)], cwd=SOURCE, env=env, text=True,
                          capture_output=True, timeout=300)


def lines(done):
    """What a run prints, without times and what the progress bar writes."""
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return [re.sub(r"  [\d.]+ ms$", "", x) for x in done.stdout.splitlines() if " info step " not in x]


def losses(done):
    found = [float(x) for line in lines(done) for x in re.findall(r"loss (-?[\d.]+)", line)]
    if len(found) < 2:
        raise AssertionError(done.stdout)
    return found


def train(kernels, *words, ranks=1):
    return orrery("run", "-n", ranks, "--threads", 1, "--kernels", kernels, *words)


class WithoutDriver(unittest.TestCase):
    def test_a_run_says_what_is_missing(self):
        done = orrery("run", "--kernels", "cuda", *MLP, fake=False)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("no NVIDIA driver here", done.stderr)

    def test_a_plan_needs_no_device(self):
        done = orrery("plan", "--kernels", "cuda", *GPT, fake=False)
        self.assertEqual(done.returncode, 0, done.stderr)


class OnAFakeGpu(unittest.TestCase):
    def near_the_reference(self, *words):
        for mine, wanted in zip(losses(train("cuda", *words)), losses(train("reference", *words)), strict=True):
            self.assertAlmostEqual(mine, wanted, delta=TOLERANCE * max(1, abs(wanted)))

    def test_mlp(self):
        self.near_the_reference(*MLP)

    def test_gpt(self):
        self.near_the_reference(*GPT)

    def test_the_same_bits_again_and_on_two_ranks(self):
        once = lines(train("cuda", *GPT))
        self.assertTrue(any("digest" in line for line in once), once)
        self.assertEqual(lines(train("cuda", *GPT)), once)
        self.assertEqual(lines(train("cuda", *GPT, ranks=2)), once)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
