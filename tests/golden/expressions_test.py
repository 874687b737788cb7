# SPDX-License-Identifier: Apache-2.0
"""Random losses train as PyTorch says (expressions.py): loss, norm of the gradients and parameters of three steps.

Arguments: the build tree.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from expressions import Loss

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1]).resolve()
TOLERANCE = 3e-4  # of three steps in f32


def near(got, want):
    return abs(got - want) <= TOLERANCE * max(1, abs(want))


def differences(loss, want, ranks=1, strategy=""):
    """What a run prints that it should not, as text; "" if all is near."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "loss.lua")
        script.write_text(loss.script(strategy))
        run = subprocess.run([BUILD / "orrery", "run", "-n", str(ranks), script], text=True, capture_output=True, timeout=120)
    if run.returncode:
        return run.stderr
    steps = [tuple(map(float, pair)) for pair in re.findall(r"^(-?\d\S*|nan) (\S+)$", run.stdout, re.MULTILINE)]
    parameters = {name: float(x) for name, x in re.findall(r"^(p\d+) (\S+)$", run.stdout, re.MULTILINE)}
    if len(steps) != len(want["steps"]) or parameters.keys() != want["parameters"].keys():
        return f"printed {run.stdout}"
    wrong = [f"step {i}: {got}, not {tuple(right)}" for i, (got, right) in enumerate(zip(steps, want["steps"]), 1)
             if not all(map(near, got, right))]
    wrong += [f"{name}: {x}, not {want['parameters'][name]}" for name, x in parameters.items()
              if not near(x, want["parameters"][name])]
    return "\n".join(wrong)


class Expressions(unittest.TestCase):
    def test_they_train_as_recorded(self):
        for seed, want in enumerate(json.loads((HERE / "expressions.json").read_text())["losses"]):
            with self.subTest(seed=seed):
                loss = Loss(seed)
                self.assertEqual(differences(loss, want), "", loss.script())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
