# SPDX-License-Identifier: Apache-2.0
"""A bare Debian 12 in a directory, and commands in it with mounts that die with them.

It is unpacked from the .tar that ORRERY_BARE_ROOT names, or made by mmdebstrap or debootstrap. Takes root; packages
come from this machine's sources of apt.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ENTER = """
root=$1; at=$2; shift 2
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sys "$root/sys"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \\
  DEBIAN_FRONTEND=noninteractive sh -c 'cd "$1" && shift && exec /usr/bin/env "$@"' _ "$at" "$@"
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, timeout=900):
    return subprocess.run([str(word) for word in command], text=True, errors="replace", capture_output=True,
                          timeout=timeout)


def unpack(root):
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


class BareRoot:
    """Removed at the end of the test."""

    def __init__(self, test):
        if os.getuid() != 0:
            skip("a root of one's own takes root")
        self.test = test
        self.path = pathlib.Path(tempfile.mkdtemp())
        test.addCleanup(shutil.rmtree, self.path)
        self.path.chmod(0o755)
        unpack(self.path)
        give_sources(self.path)

    def enter(self, *command, at="/root", timeout=900):
        """The words NAME=VALUE in front of a command are its variables."""
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
                   "bash", "-e", "-c", ENTER, "_", self.path, at, *command, timeout=timeout)

    def call(self, *command, **how):
        done = self.enter(*command, **how)
        self.test.assertEqual(done.returncode, 0, f"{command}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout
