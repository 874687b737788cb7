# SPDX-License-Identifier: Apache-2.0
"""The packages in dist/ on a bare Debian 12, which has nothing else: the program trains on two ranks without a
compiler, `--comm mpi` is there once orrery-mpi is, and orrery-dev alone builds a plugin that the judge passes.

Needs root, and packages that ./scripts/package has made; tests/e2e/bare_root.py says where the root comes from.
"""
import pathlib
import shutil
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from bare_root import BareRoot, run, skip  # noqa: E402

DEBS = {path.name.split("_")[0]: path for path in (SOURCE / "dist").glob("*.deb")}
HERE = ["ORRERY_PIN=none", "ORRERY_NO_DIR=1", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "OMPI_MCA_rmaps_base_oversubscribe=1"]
SCRIPT = ["/usr/share/orrery/examples/mlp.lua", "steps=20"]


class Packages(unittest.TestCase):
    def setUp(self):
        self.root = BareRoot(self)
        for path in DEBS.values():
            shutil.copy(path, self.root.path / "root")

    def call(self, *command):
        return self.root.call(*HERE, *command)

    def used(self):
        return int(run("du", "-smx", self.root.path / "usr").stdout.split()[0])

    def install(self, name, recommended=False):
        extra = [] if recommended else ["--no-install-recommends"]
        before = self.used()
        self.call("apt-get", "install", "-q", "-y", *extra, f"./{DEBS[name].name}")
        size = DEBS[name].stat().st_size / 1e6
        print(f"{name}: {size:.1f} MB, {self.used() - before:.0f} MB on the disk with what it depends on", flush=True)

    def test_in_order(self):
        """Each package adds to those before."""
        self.call("apt-get", "update", "-q")
        self.a_program_alone()
        self.a_backend_more()
        if "orrery-cuda" in DEBS:
            self.devices_that_are_not_here()
        self.a_plugin_of_ones_own()

    def a_program_alone(self):
        self.install("orrery")
        self.assertNotEqual(self.root.enter("sh", "-c", "command -v cc || command -v c++").returncode, 0)
        self.trained = self.call("orrery", "run", "-n", "2", *SCRIPT)
        self.assertRegex(self.trained, r"digest \w{32}\n$")
        self.assertEqual(self.call("orrery", "run", *SCRIPT), self.trained)
        missing = self.root.enter(*HERE, "orrery", "run", "--comm", "mpi", *SCRIPT)
        self.assertEqual(missing.returncode, 2, missing.stderr)
        self.assertIn("no plugin provides comm 'mpi'; found: local, null", missing.stderr)
        self.assertEqual(self.root.enter("orrery", "check", "x.so").returncode, 69)

    def a_backend_more(self):
        self.install("orrery-mpi")
        for package, launcher in (("openmpi-bin", "mpirun.openmpi"), ("mpich", "mpiexec.mpich")):
            self.call("apt-get", "install", "-q", "-y", "--no-install-recommends", package)
            self.assertEqual(self.call(launcher, "-n", "2", "orrery", "run", "--comm", "mpi", *SCRIPT), self.trained)

    def devices_that_are_not_here(self):
        self.install("orrery-cuda")
        listed = self.call("orrery", "plugins")
        for kind, name in (("kernel", "cuda"), ("comm", "nccl")):
            self.assertRegex(listed, rf"{kind} +{name} .*\n +no NVIDIA driver here")
        self.assertEqual(self.call("orrery", "run", "-n", "2", *SCRIPT), self.trained)

    def a_plugin_of_ones_own(self):
        self.install("orrery-dev", recommended=True)
        self.call("orrery", "new", "plugin", "kernel", "swift")
        self.call("meson", "setup", "swift/build", "swift")
        self.call("meson", "compile", "-C", "swift/build")
        verdict = self.call("orrery", "check", "swift/build/orrery-kernel-swift.so").splitlines()[-1]
        self.assertRegex(verdict, r"^[1-9]\d* passed, 0 failed")
        print(verdict)


if __name__ == "__main__":
    missing = sorted({"orrery", "orrery-dev", "orrery-mpi"} - set(DEBS))
    if missing:
        skip(f"{', '.join(missing)} not in dist/; run ./scripts/package")
    unittest.main(argv=sys.argv[:1])
