# SPDX-License-Identifier: Apache-2.0
"""The core's own tests pass where no strategy is installed, neither a plugin nor a file of the Lua library, but for
those that are about one.

Arguments: the build tree, the tests' programs.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = [pathlib.Path(word).resolve() for word in sys.argv[2:]]

# What is about strategies: passes of the core that only one asks for, their schedules, pages that list them.
ABOUT = ["*Precision*", "*Recompute*", "MicrobatchMean.HasItsGradient", "RandomSteps.*", "RankKinds.*",
         "ReadBySamples.*", "Schedule.*", "Stubs.*", "Terms.*", "Traffic.EveryOrderOfSharedMemoryIsNeeded",
         "Traffic.PiecesOfWeightsAreNeitherPackedNorCopied", "Traffic.WeightsInSharedMemoryStayWhereTheyAre",
         "Help.KnowsTheLuaLibrary", "*/manual", "*/how_to", "*/half_*", "*/checked", "*/api_walk", "*/pytorch_names"]


def installed(folder):
    """Lays out kernels, comm and observer plugins and the Lua library as an installation does; the program goes
    to bin/."""
    config = (BUILD / "core/base/config.h").read_text()
    plugins, lua = (folder / re.search(rf'{name} "(\S+)"', config)[1] for name in ("ORRERY_PLUGINDIR", "ORRERY_LUADIR"))
    plugins.mkdir(parents=True)
    for path in [*BUILD.glob("kernels/*/orrery-*.so"), *BUILD.glob("plugins/orrery-*.so")]:
        if "strategy" not in path.name:
            shutil.copy(path, plugins)
    shutil.copytree(SOURCE / "scripts", lua, ignore=lambda _, names: {"strategy"} & set(names))
    (lua / "orrery/strategy").mkdir()
    (folder / "bin").mkdir()


class WithoutStrategies(unittest.TestCase):
    def test_core(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            installed(folder)
            kept = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}
            for program in PROGRAMS:
                with self.subTest(program=program.name):
                    here = shutil.copy(program, folder / "bin")
                    own = any(program.parent.glob("orrery-kernel-*.so"))  # kernel plugins made for its tests
                    done = subprocess.run([here, "--gtest_brief=1", "--gtest_filter=-" + ":".join(ABOUT)],
                                          env=kept | ({"ORRERY_PLUGIN_PATH": str(program.parent)} if own else {}),
                                          capture_output=True, text=True, timeout=600)
                    self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-1000:])
                    self.assertGreater(int(re.search(r"PASSED  \] (\d+) test", done.stdout)[1]), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
