# SPDX-License-Identifier: Apache-2.0
"""The program as a user meets it: exit codes, help, JSON, and finding its plugins in both places.

Arguments: the build tree.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}


def orrery(*words, program=BUILD / "orrery", **variables):
    return subprocess.run([program, *words], capture_output=True, text=True, cwd="/",
                          env=ENVIRONMENT | variables)


def names_of(done):
    return {(p["kind"], p["name"]): p for p in json.loads(done.stdout)}


class Usage(unittest.TestCase):
    def test_version_and_help_succeed_on_stdout(self):
        for word in ("--version", "--help"):
            done = orrery(word)
            self.assertEqual((done.returncode, done.stderr), (0, ""), word)
        self.assertTrue(orrery("--help").stdout.startswith("Examples:"))

    def test_usage_errors_exit_with_2(self):
        for words in ([], ["doctor", "--jsn"], ["plugins", "extra"], ["--colour"]):
            done = orrery(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertNotEqual(done.stderr, "")

    def test_unknown_subcommand_offers_the_nearest(self):
        done = orrery("plugin")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no subcommand 'plugin' (did you mean 'plugins'?)", done.stderr)


class Doctor(unittest.TestCase):
    def test_json(self):
        report = json.loads(orrery("doctor", "--json").stdout)
        for key in ("compiler", "lua", "cpu", "cores", "memory", "shared memory", "gpu"):
            self.assertNotEqual(report[key], "", key)
        self.assertTrue(report["plugins"])

    def test_shares_of_ranks(self):
        done = orrery("doctor", "-n", "3", HWLOC_SYNTHETIC="pack:2 [numa] core:3 pu:2")
        self.assertIn("2 packages, 2 NUMA nodes; allowed: 6 cores, 12 hardware threads (not this machine)", done.stdout)
        for rank, cpus in enumerate(("0-3", "4-7", "8-11")):
            self.assertRegex(done.stdout, rf"(?m)^rank {rank} +pinned to CPUs {cpus}, 2 threads$")
        crowd = orrery("doctor", "-n", "13", HWLOC_SYNTHETIC="pack:2 [numa] core:3 pu:2")
        self.assertRegex(crowd.stdout, r"(?m)^rank 12 +not pinned: CPUs cannot be shared evenly, 1 thread$")
        crowd = orrery("doctor", "-n", "24", HWLOC_SYNTHETIC="pack:2 [numa] core:3 pu:2")
        self.assertRegex(crowd.stdout, r"(?m)^rank 23 +pinned to CPUs 11, 1 thread$")

    def test_launcher(self):
        done = orrery("doctor", OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="4")
        self.assertIn("Open MPI (OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=4)", done.stdout)


class Plugins(unittest.TestCase):
    def test_build_tree_without_variables(self):
        found = names_of(orrery("plugins", "--json"))
        self.assertTrue(found[("observer", "progress")]["on"])

    def test_plugin_that_ends_its_process_is_off(self):
        done = orrery("plugins", "--json", ORRERY_PLUGIN_PATH=str(BUILD / "tests/plugin"))
        self.assertEqual(done.returncode, 0, done.stderr)
        off = names_of(done)["observer", "ends"]
        self.assertFalse(off["on"])
        self.assertIn("loading it ended a process: signal 6 (Aborted); the file may be damaged", off["reason"])

    def test_first_of_two_equal_names_wins(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "mine.so"
            copy.write_bytes((BUILD / "plugins/orrery-observer-progress.so").read_bytes())
            done = orrery("plugins", "--json", ORRERY_PLUGIN_PATH=folder)
            both = [p for p in json.loads(done.stdout) if p["name"] == "progress"]
        self.assertEqual([p["on"] for p in both], [True, False])
        self.assertEqual(both[0]["path"], str(copy))
        self.assertIn(f"hidden by {copy}", both[1]["reason"])

    def test_broken_file_is_listed_with_its_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "bad.so").write_text("text")
            done = orrery("plugins", ORRERY_PLUGIN_PATH=folder)
        self.assertEqual(done.returncode, 0)
        self.assertIn("is not a shared object (no ELF header)", done.stdout)

    def test_installed_without_variables(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                            folder], check=True, capture_output=True)
            program = next(pathlib.Path(folder).rglob("bin/orrery"))
            found = names_of(orrery("plugins", "--json", program=program))
            # Of the two observers none may come from the build tree.
            self.assertTrue(found[("observer", "progress")]["on"])
            for plugin in found.values():
                self.assertTrue(plugin["path"].startswith(os.path.realpath(folder)), plugin["path"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
