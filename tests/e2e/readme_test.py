# SPDX-License-Identifier: Apache-2.0
"""Every command of the README runs, and its script prints what the README says.

The scripts that contain this very test are only checked to be there. Arguments: the build tree.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

from program import SOURCE, Job, orrery

README = (SOURCE / "README.md").read_text()


def blocks(language, text=README):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(text):
    return [shlex.split(line, comments=True) for block in blocks("sh", text)
            for line in block.splitlines()]


class Readme(unittest.TestCase):
    def test_script_prints_what_is_shown(self):
        [script], [shown] = blocks("lua"), blocks("console")
        command, _, expected = shown.partition("\n")
        self.assertTrue(command.startswith("$ build/orrery "))
        self.assertLessEqual(len(script.splitlines()), 12)
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/line.lua", "w") as file:
                file.write(script)
            for words in (shlex.split(command)[2:], ["run", "line.lua"]):
                done = orrery(*words, cwd=folder)
                self.assertEqual((done.code, done.out), (0, expected), done.err)

    def test_commands_of_the_program(self):
        mine = [words for words in commands(README) if words[0] == "build/orrery"]
        self.assertGreater(len(mine), 6)
        for words in mine:
            with self.subTest(words=words):
                words, _, given = " ".join(words[1:]).partition(" < ")
                job = Job(*words.split(), stdin=bool(given))
                if given:
                    job.process.stdin.write((SOURCE / given).read_text())
                done = job.finish()
                self.assertEqual(done.code, 0, done.err)
                self.assertNotEqual(done.out, "")

    def test_scripts_are_there(self):
        both = commands(README) + commands((SOURCE / "CONTRIBUTING.md").read_text())
        scripts = {words[0] for words in both if words[0].startswith("./")}
        self.assertTrue({"./scripts/demo", "./scripts/test"} <= scripts)
        for script in scripts:
            self.assertTrue(os.access(SOURCE / script, os.X_OK), script)
            first = (SOURCE / script).read_text().partition("\n")[0]
            if first.endswith("bash"):
                subprocess.run(["bash", "-n", SOURCE / script], check=True)

    def test_files_are_there(self):
        places = [SOURCE, SOURCE / "core", SOURCE / "core/include", SOURCE / "plugins",
                  SOURCE / "scripts/orrery", SOURCE / "tests"]
        named = [n for n in re.findall(r"`([\w./-]+/(?:[\w-]+\.\w+)?)`", README)
                 if "NAME" not in n and "FAMILY" not in n]
        self.assertGreater(len(named), 20)
        for name in named:
            with self.subTest(name=name):
                self.assertTrue(any((place / name).exists() for place in places))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
