# SPDX-License-Identifier: Apache-2.0
"""A third party's machine: the build tree that sys.argv[1] names, installed, and nothing else of it. A compiler
cache knows what is compiled here again from run to run, wherever the place is."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()


def words_of(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=800, **options)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.place)
        done = words_of(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"],
                        env=os.environ | {"DESTDIR": cls.place})
        assert done.returncode == 0, done.stdout + done.stderr
        [program] = pathlib.Path(cls.place).rglob("bin/orrery")
        [packages] = pathlib.Path(cls.place).rglob("pkgconfig")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}
        cls.environment = kept | {"PATH": f"{program.parent}:{kept['PATH']}", "PKG_CONFIG_PATH": str(packages),
                                  "CCACHE_BASEDIR": cls.place, "CCACHE_NOHASHDIR": "1",
                                  "ORRERY_PIN": "none",  # other tests run beside
                                  "ORRERY_NO_DIR": "1"}

    def folder(self):
        """One that lies as far from what is installed as any other: the compiler cache compares ways between them."""
        return tempfile.TemporaryDirectory(dir=self.place)

    def call(self, command, folder, **variables):
        done = words_of(command, cwd=folder, env=self.environment | variables)
        self.assertEqual(done.returncode, 0, f"{command}:\n{done.stdout}{done.stderr}")
        return done.stdout
