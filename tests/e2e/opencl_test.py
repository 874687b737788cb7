# SPDX-License-Identifier: Apache-2.0
"""examples/plugin-opencl as a third party builds it, against an installed prefix, and what it trains: the
losses of the reference within the rounding of f32, alone and on two ranks.

Argument: the build tree.
"""
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import BUILD, SOURCE

GPT = ["examples/gpt.lua", "data=examples/gpt.lua", "dim=32", "layers=2", "heads=2", "ctx=16", "batch=12",
       "microbatches=12", "steps=6", "dropout=0.1", "clip=1", "eval=3", "sample=5"]
MLP = ["examples/mlp.lua", "steps=100", "microbatches=4"]


def platforms():
    """How many OpenCL platforms there are."""
    try:
        found = ctypes.c_uint(0)
        ctypes.CDLL("libOpenCL.so.1").clGetPlatformIDs(0, None, ctypes.byref(found))
        return found.value
    except OSError:
        return 0


def call(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, **options)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


@unittest.skipUnless(platforms(), "no OpenCL platform is here: install pocl-opencl-icd")
class OpenCL(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.place)
        call(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"], env=os.environ | {"DESTDIR": str(cls.place)})
        [program] = cls.place.rglob("bin/orrery")
        [packages] = cls.place.rglob("pkgconfig")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}
        project = cls.place / "examples/plugin-opencl"  # as in tests/check/examples_test.py, for the compiler cache
        shutil.copytree(SOURCE / "examples/plugin-opencl", project)
        cls.environment = kept | {"PATH": f"{program.parent}:{kept['PATH']}", "PKG_CONFIG_PATH": str(packages),
                                  "ORRERY_PLUGIN_PATH": str(project / "build"), "ORRERY_DEADLINE": "300", "ORRERY_NO_DIR": "1",
                                  "CCACHE_BASEDIR": str(cls.place), "CCACHE_NOHASHDIR": "1"}
        call(["meson", "setup", "build", "-Dwerror=true"], cwd=project, env=cls.environment)
        call(["meson", "compile", "-C", "build"], cwd=project, env=cls.environment)

    def numbers(self, kernels, ranks, words):
        out = call(["orrery", "run", "-n", str(ranks), "--threads", "1", "--kernels", kernels, *words],
                   cwd=SOURCE, env=self.environment)
        found = [float(n) for n in re.findall(r"\b(?:loss|accuracy) ([\d.]+)", out)]
        self.assertGreater(len(found), 2, out)
        return found

    def agrees(self, words):
        expected = self.numbers("reference", 1, words)
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                got = self.numbers("opencl", ranks, words)
                self.assertEqual(len(got), len(expected))
                for a, b in zip(got, expected):
                    self.assertAlmostEqual(a, b, delta=2e-3)

    def test_a_perceptron(self):
        self.agrees(MLP)

    def test_a_gpt(self):
        self.agrees(GPT)

    def test_bad_labels_name_their_place(self):
        bad = SOURCE / "tests/e2e/bad/label.lua"
        said = []
        for kernels in ("reference", "opencl"):
            done = subprocess.run(["orrery", "run", "--kernels", kernels, bad], capture_output=True, text=True,
                                  timeout=300, env=self.environment)
            self.assertEqual(done.returncode, 1, done.stderr)
            said.append(re.search(r"label.lua:\d+: .*(?= \[)", done.stderr)[0])  # without the plugin's name
        self.assertEqual(said[0], said[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
