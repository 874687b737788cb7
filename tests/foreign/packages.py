# SPDX-License-Identifier: Apache-2.0
"""The packages in dist/ on a bare Debian 12, which has nothing else: the program trains on two ranks without a
compiler, `--comm mpi` is there once orrery-mpi is, and orrery-dev alone builds a plugin that the judge passes.

Needs root, and packages that ./scripts/package has made. The bare root is the .tar that ORRERY_BARE_ROOT names, or is
made by mmdebstrap or debootstrap; what packages depend on comes from this machine's sources of apt.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DEBS = {path.name.split("_")[0]: path for path in (SOURCE / "dist").glob("*.deb")}
# Mounts that die with the command; then the command in the root.
ENTER = """
root=$1; shift
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sys "$root/sys"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \\
  DEBIAN_FRONTEND=noninteractive OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \\
  OMPI_MCA_rmaps_base_oversubscribe=1 ORRERY_PIN=none ORRERY_NO_DIR=1 sh -c 'cd /root && exec "$@"' _ "$@"
"""
TRAIN = ["orrery", "run", "-n", "2", "/usr/share/orrery/examples/mlp.lua", "steps=20"]


def skip(why):
    print(f"packages: {why}")
    sys.exit(77)


def run(*command, **options):
    return subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=900, **options)


def unpack_root(root):
    """A minimal Debian 12, with apt."""
    tar = os.environ.get("ORRERY_BARE_ROOT")
    if tar:
        done = run("tar", "-x", "-f", tar, "-C", root)
    elif shutil.which("mmdebstrap"):
        done = run("mmdebstrap", "--quiet", "--variant=minbase", "bookworm", root)
    elif shutil.which("debootstrap"):
        done = run("debootstrap", "--variant=minbase", "bookworm", root)
    else:
        skip("a bare root takes mmdebstrap or debootstrap, or ORRERY_BARE_ROOT=FILE.tar")
    if done.returncode:
        raise RuntimeError(f"no bare root: {done.stderr[-2000:]}")


def give_sources(root):
    """Debian's sources as this machine has them."""
    listed = run("apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
                 "Created-By: Packages", "Origin: Debian").stdout
    if not listed:
        skip("apt knows no packages here; run apt-get update")
    (root / "etc/apt/sources.list").write_text("\n".join(sorted(set(listed.splitlines()))) + "\n")
    for name in ("resolv.conf", "hosts"):
        shutil.copyfile(f"/etc/{name}", root / "etc" / name)


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.root.chmod(0o755)
        unpack_root(cls.root)
        give_sources(cls.root)
        for path in DEBS.values():
            shutil.copy(path, cls.root / "root")

    def enter(self, *command):
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
                   "bash", "-e", "-c", ENTER, "_", self.root, *command)

    def call(self, *command):
        done = self.enter(*command)
        self.assertEqual(done.returncode, 0, f"{command}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout

    def install(self, name, recommended=False):
        extra = [] if recommended else ["--no-install-recommends"]
        before = self.used()
        self.call("apt-get", "install", "-q", "-y", *extra, f"./{DEBS[name].name}")
        size = DEBS[name].stat().st_size / 1e6
        print(f"{name}: {size:.1f} MB, {self.used() - before:.0f} MB on the disk with what it depends on", flush=True)

    def used(self):
        return int(run("du", "-smx", self.root / "usr").stdout.split()[0])

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
        self.assertNotEqual(self.enter("sh", "-c", "command -v cc || command -v c++").returncode, 0)
        type(self).trained = self.call(*TRAIN)
        self.assertRegex(self.trained, r"digest \w{32}\n$")
        self.assertEqual(self.call(*TRAIN[:2], *TRAIN[4:]), self.trained)
        self.assertIn("examples/gpt.lua", self.call("orrery", "plan", "-n", "4", "/usr/share/orrery/examples/gpt.lua"))
        missing = self.enter(*TRAIN[:2], "--comm", "mpi", *TRAIN[2:])
        self.assertEqual(missing.returncode, 2, missing.stderr)
        self.assertIn("no plugin provides comm 'mpi'; found: local, null", missing.stderr)
        self.assertEqual(self.enter("orrery", "check", "x.so").returncode, 69)

    def a_backend_more(self):
        self.install("orrery-mpi")
        for package, launcher in (("openmpi-bin", "mpirun.openmpi"), ("mpich", "mpiexec.mpich")):
            self.call("apt-get", "install", "-q", "-y", "--no-install-recommends", package)
            found = self.call(launcher, "-n", "2", *TRAIN[:2], "--comm", "mpi", *TRAIN[4:])
            self.assertEqual(found, self.trained)

    def devices_that_are_not_here(self):
        self.install("orrery-cuda")
        listed = self.call("orrery", "plugins")
        for kind, name in (("kernel", "cuda"), ("comm", "nccl")):
            self.assertRegex(listed, rf"{kind} +{name} .*\n +no NVIDIA driver here")
        self.assertEqual(self.call(*TRAIN), self.trained)

    def a_plugin_of_ones_own(self):
        self.install("orrery-dev", recommended=True)
        self.call("orrery", "new", "plugin", "kernel", "swift")
        self.call("meson", "setup", "swift/build", "swift")
        self.call("meson", "compile", "-C", "swift/build")
        judged = self.call("orrery", "check", "swift/build/orrery-kernel-swift.so")
        self.assertRegex(judged.splitlines()[-1], r"passed")
        self.assertNotRegex(judged, r"(?m)^FAILED")
        print(judged.splitlines()[-1])


if __name__ == "__main__":
    if os.getuid() != 0:
        skip("a root of one's own takes root")
    missing = sorted({"orrery", "orrery-dev", "orrery-mpi"} - set(DEBS))
    if missing:
        skip(f"{', '.join(missing)} not in dist/; run ./scripts/package")
    unittest.main(argv=sys.argv[:1])
