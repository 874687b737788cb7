# SPDX-License-Identifier: Apache-2.0
"""Trials of plugins by the program of the build tree that sys.argv[1] names."""
import json
import os
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parent / "odd_width.lua"
BUILD = pathlib.Path(sys.argv[1]).resolve()
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")} | {"ORRERY_NO_DIR": "1"}
# Seconds that a trial may take; scripts/sanitize sets the variable, and its programs are slow.
PATIENCE = 3000 if "TSAN_OPTIONS" in os.environ else 1200
# Trials of a plugin take one test of so many; scripts/sanitize sets that, too.
STRIDE = int(os.environ.get("ORRERY_TEST_STRIDE", 1))
# Plugins of this repository. `null` moves nothing, by design.
OURS = sorted(p for room in ("plugins", "kernels") for p in (BUILD / room).rglob("*.so")
              if p.stem != "orrery-comm-null")


def orrery(*words, cwd="/"):
    return subprocess.run([BUILD / "orrery", *map(str, words)], cwd=cwd, env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=PATIENCE)


def check(plugin, *words):
    """The process that has ended, and its report."""
    done = orrery("check", plugin, "--json", *words)
    return done, json.loads(done.stdout) if done.stdout else None


def judge(plugin, seed, without=()):
    """Exit codes and tests of all trials, or, where only some are taken, of each of those by itself. Families in
    `without`, such as kernel.bits, are left out."""
    names = orrery("check", plugin, "--list").stdout.split()
    if STRIDE == 1:
        families = dict.fromkeys(".".join(name.split(".")[:2]) for name in names) if without else [""]
        trials = [check(plugin, "--seed", seed, "--only", family) for family in families if family not in without]
    else:
        trials = [check(plugin, "--seed", seed, "--only", name) for name in names[::STRIDE]]
    return {done.returncode for done, _ in trials}, [t for _, report in trials for t in report["tests"]]


class Trial:
    """A bad plugin and the test that is there for it: PLUGIN=TEST, or PLUGIN=TEST@SEED."""

    def __init__(self, argument):
        self.plugin, test = argument.rsplit("=", 1)
        self.test, _, seed = test.partition("@")
        self.seed = int(seed or 1)
        self.name = pathlib.Path(self.plugin).stem

    def run(self, seed):
        script = ["--script", SCRIPT] if self.test == "kernel.script" else []
        return check(self.plugin, "--only", self.test, "--seed", seed, *script)
