# SPDX-License-Identifier: Apache-2.0
"""A reader who follows the README sees what it shows, on any number of ranks; the commands of docs/examples.md run; what
both and docs/extend/README.md name is there.

The scripts that contain this very test are only checked to be there. Arguments: the build tree.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

from pages import blocks, commands_and_outputs, follow
from program import BUILD, SOURCE, Job, orrery

README = (SOURCE / "README.md").read_text()
EXAMPLES = (SOURCE / "docs/examples.md").read_text()
PLACES = (SOURCE / "docs/extend/README.md").read_text()


def commands(text):
    return [shlex.split(line, comments=True) for block in blocks("sh", text)
            for line in block.splitlines()]


class Readme(unittest.TestCase):
    def test_it_is_short(self):
        self.assertLessEqual(len(README.splitlines()), 120)

    def test_blocks_print_what_is_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "build").symlink_to(BUILD)
            self.assertGreater(follow(self, README, pathlib.Path(folder)), 3)
            shown = commands_and_outputs(blocks("console", README)[0])[0][1]
            for words in (["run", "line.lua"], ["run", "-n", "2", "line.lua"]):
                done = orrery(*words, cwd=folder)
                self.assertEqual((done.code, done.out), (0, shown), done.err)
            deep = commands_and_outputs(blocks("console", README)[1])[0][1]
            done = orrery("run", "-n", "4", "deep.lua", "stack=zero", cwd=folder)
            self.assertEqual((done.code, done.out), (0, deep), done.err)

    def test_commands_of_the_program(self):
        mine = [words for words in commands(EXAMPLES) if words[0] == "build/orrery"]
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
        named = [n for n in re.findall(r"`([\w./-]+/(?:[\w-]+\.\w+)?)`", README + EXAMPLES + PLACES)
                 if "NAME" not in n and "FAMILY" not in n]
        self.assertGreater(len(named), 20)
        for name in named:
            with self.subTest(name=name):
                self.assertTrue(any((place / name).exists() for place in places))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
