# SPDX-License-Identifier: Apache-2.0
"""Without the libraries that only some readers take, a tree is configured, says what it is without, and the readers of
images build: they refuse what they cannot read. The tree is this test's own.

Needs meson, ninja and pkg-config.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONAL = ("libzstd", "libpcre2", "libutf8proc", "libwebp", "libtiff", "libarchive", "libcurl", "arrow", "parquet", "hdf5", "ompi",
            "mpich", "nccl", "cuda")
OFF = ("data tokenizer_json", "data webdataset", "data http", "data hdf5", "data arrow", "files packed by zstd", "images in WebP",
       "images in TIFF", "comm mpi for openmpi", "comm mpi for mpich")


class BareTree(unittest.TestCase):
    def setUp(self):
        for tool in ("meson", "ninja", "pkg-config"):
            if not shutil.which(tool):
                self.skipTest(f"there is no {tool}")
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def environment(self):
        """One in which the optional libraries cannot be found."""
        known, tools = self.folder / "pkgconfig", self.folder / "bin"
        known.mkdir(), tools.mkdir()
        places = subprocess.run(["pkg-config", "--variable", "pc_path", "pkg-config"], capture_output=True, text=True, check=True).stdout
        for place in places.strip().split(":"):
            for file in pathlib.Path(place).glob("*.pc"):
                if not file.name.startswith(OPTIONAL) and not (known / file.name).exists():
                    (known / file.name).symlink_to(file)
        for tool in ("cmake", "h5cc", "h5pcc", "mpicc", "mpicxx"):
            (tools / tool).write_text("#!/bin/sh\nexit 1\n")
            (tools / tool).chmod(0o755)
        return os.environ | {"PKG_CONFIG_LIBDIR": str(known), "PATH": f"{tools}:{os.environ['PATH']}"}

    def test_it_builds_and_says_what_is_off(self):
        env, tree = self.environment(), self.folder / "tree"
        for words in (["meson", "setup", tree, ROOT, "-Dtests=false", "-Dgpu_archs=", "-Dcpu_isas=avx2", "-Doptimization=0"],
                      ["ninja", "-C", tree, "plugins/orrery-data-images.so"]):
            done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = (tree / "plugins/left-out.txt").read_text().splitlines()
        for what in OFF:
            self.assertTrue([line for line in lines if line.startswith(what)], f"{what} is not among {lines}")
        self.assertFalse((tree / "plugins/orrery-data-http.so").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
