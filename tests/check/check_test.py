# SPDX-License-Identifier: Apache-2.0
"""What `orrery check` and `orrery new` answer, and that the plugins of this repository pass.

Arguments: the build tree, then good plugins of the museum.
"""
import os
import pathlib
import re
import sys
import tempfile
import unittest

from trials import BUILD, OURS, SCRIPT, STRIDE, check, judge, orrery

SOURCE = pathlib.Path(__file__).resolve().parents[2]
GOOD = OURS + [pathlib.Path(p) for p in sys.argv[2:]]


class Check(unittest.TestCase):
    def test_our_plugins_pass(self):
        self.assertGreater(len(GOOD), 8)
        for plugin in GOOD:
            with self.subTest(plugin=plugin.name):
                codes, tests = judge(plugin, 3)
                # 69: what it needs is not on this machine.
                self.assertEqual((codes <= {0, 69}, [t for t in tests if t["state"] == "FAILED"]), (True, []))
                self.assertNotEqual(tests, [])
                if STRIDE == 1:
                    judged = [t for t in tests if t["state"] == "ok" and not t["test"].startswith("plugin.")]
                    self.assertEqual(codes, {0 if judged else 69})

    def test_its_tests_are_listed(self):
        plugin = BUILD / "plugins/orrery-observer-progress.so"
        listed = orrery("check", plugin, "--list").stdout.split()
        self.assertEqual(listed, [test["test"] for test in check(plugin)[1]["tests"]])
        one = orrery("check", plugin, "--list", "--only", "plugin.descriptor").stdout
        self.assertEqual(one, "plugin.descriptor\n")
        self.assertEqual(check(plugin, "--seed", 3)[1]["seed"], 3)

    def test_a_plugin_that_carries_nothing_fails(self):
        done = orrery("check", BUILD / "plugins/orrery-comm-null.so", "--only", "comm.messages")
        self.assertEqual(done.returncode, 1)
        for words in ("comm.messages", "FAILED", "contract comm.h", "expected success", "moves nothing between ranks"):
            self.assertIn(words, done.stdout)

    # The ops of a user's model, shapes and all, on top of the judge's own cases.
    def test_a_script_of_ones_own(self):
        kernel = BUILD / "kernels/cpu/orrery-kernel-cpu.so"
        only = ["--only", "kernel.script", "--script"]
        self.assertEqual(orrery("check", kernel, *only, SOURCE / "examples/mlp.lua", "batch=8").returncode, 0)
        done = orrery("check", kernel, *only, SOURCE / "examples/mlp.lua", "bach=8")
        self.assertEqual(done.returncode, 1)
        self.assertIn("argument 'bach' is unknown (did you mean 'batch'?)", done.stdout)

    # A format with a head, which random bytes do not have, so that without the file nothing was read.
    def test_a_file_of_ones_own(self):
        reader, only = BUILD / "plugins/orrery-data-npy.so", ["--only", "data.samples"]
        self.assertIn("random bytes are no files of its format: name one by --file", orrery("check", reader, *only).stdout)
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"
            file.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n" + bytes(24))
            file.flush()
            done = orrery("check", reader, *only, "--file", file.name)
            self.assertEqual((done.returncode, "1 passed" in done.stdout), (0, True), done.stdout + done.stderr)
            file.truncate(140)
            self.assertIn("FAILED", orrery("check", reader, *only, "--file", file.name).stdout)
        refused = orrery("check", BUILD / "plugins/orrery-comm-null.so", "--file", "samples.bin")
        self.assertIn("--file samples.bin: only data plugins read a file", refused.stdout + refused.stderr)

    def test_contracts_are_words_of_the_headers(self):
        quoted = []
        for path in sorted((SOURCE / "tests/conformance").rglob("*.cpp")):
            literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"', path.read_text())
            quoted += [(path.name, *found) for literal in literals
                       for found in re.findall(r'^(\w+\.h): .*?\\"(.*?)\\"', literal)]
        self.assertGreater(len(quoted), 20)
        for name, header, words in quoted:
            with self.subTest(source=name, words=words):
                text = (SOURCE / "core/include/orrery" / header).read_text()
                self.assertIn(words, re.sub(r"\s+(\* *)?", " ", text))

    def test_bad_input(self):
        observer = BUILD / "plugins/orrery-observer-progress.so"
        for words, code, parts in (
                (["/no/such.so"], 2, ["/no/such.so does not exist", "name a .so file"]),
                ([BUILD / "build.ninja"], 1, ["build.ninja", "file:"]),
                ([observer, "--script", SCRIPT], 2, ["--script", "only kernel plugins"]),
                ([observer, "--only", "kernel"], 2, ["--only kernel", "no such test"])):
            done = orrery("check", *words)
            self.assertEqual((done.returncode, done.stdout.count("\n") <= 1), (code, True), done.stderr)
            for part in parts:
                self.assertIn(part, done.stderr)


class New(unittest.TestCase):
    def test_names_and_places_are_checked(self):
        with tempfile.TemporaryDirectory() as folder:
            for words, part in ((["comm", "Mine"], "cannot be called 'Mine'; use"),
                                (["comm", "../mine"], "cannot be called"),
                                (["comm", "m" * 32], "up to 31"),
                                (["com", "mine"], "no plugin kind 'com' (did you mean 'comm'?)")):
                done = orrery("new", "plugin", *words, cwd=folder)
                self.assertEqual(done.returncode, 2)
                self.assertIn(part, done.stderr)
            self.assertEqual(os.listdir(folder), [])
            self.assertEqual(orrery("new", "plugin", "comm", "mine", cwd=folder).returncode, 0)
            again = orrery("new", "plugin", "kernel", "mine", cwd=folder)
            self.assertEqual(again.returncode, 2)
            self.assertIn("directory mine is there already; choose another name", again.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
