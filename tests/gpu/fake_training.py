# SPDX-License-Identifier: Apache-2.0
"""What tests of training on the fake GPU share: how a run is started there, and what it prints.

Arguments of such a test: the build tree, the folder of the fake libraries. Every figure is a fake GPU's.
"""
import os
import pathlib
import re
import subprocess
import sys

BUILD, FAKE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 3e-4  # of a loss that is printed with four digits

MLP = ["examples/mlp.lua", "steps=200"]
GPT = ["examples/gpt.lua", "data=examples/gpt.lua", "dim=32", "layers=2", "heads=2", "ctx=16", "batch=12",
       "microbatches=4", "steps=4", "dropout=0.1", "clip=1", "eval=2", "sample=8"]


def orrery(*words, fake=True, **variables):
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    if fake:
        kept = str(BUILD / "tests/gpu/compiled")
        # Its GPU is a core of this machine, which others may use: no work of it takes so long that it hangs.
        env |= {"LD_LIBRARY_PATH": str(FAKE), "FAKE_NVRTC_FOLDER": kept, "XDG_CACHE_HOME": kept, "ORRERY_DEADLINE": "600"}
    env |= {k: str(v) for k, v in variables.items()}
    return subprocess.run([BUILD / "orrery", *map(str, words)], cwd=SOURCE, env=env, text=True,
                          capture_output=True, timeout=1800)


def lines(done):
    """What a run prints, without times and what the progress bar writes."""
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    timed = re.compile(" info step | info cuda: ")
    return [re.sub(r"  [\d.]+ ms$", "", x) for x in done.stdout.splitlines() if not timed.search(x)]


def losses(done):
    found = [float(x) for line in lines(done) for x in re.findall(r"loss (-?[\d.]+)", line)]
    if len(found) < 2:
        raise AssertionError(done.stdout)
    return found


def train(kernels, *words, ranks=1, comm="local"):
    return orrery("run", "-n", ranks, "--threads", 1, "--kernels", kernels, "--comm", comm, *words)


def near_the_reference(test, *words, ranks=1, comm="local"):
    mine, reference = train("cuda", *words, ranks=ranks, comm=comm), train("reference", *words, ranks=ranks)
    for found, wanted in zip(losses(mine), losses(reference), strict=True):
        test.assertAlmostEqual(found, wanted, delta=TOLERANCE * max(1, abs(wanted)))
