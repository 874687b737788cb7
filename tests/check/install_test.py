# SPDX-License-Identifier: Apache-2.0
"""What `meson install` puts beside the program: it trains from anywhere, its manual knows all that it does, bash
completes its command line, and documents and examples lie where they belong.

Arguments: the build tree.
"""
import json
import pathlib
import re
import sys
import unittest

from installed import Installed, words_of

ASK = """
source {script}
COMP_WORDS=({words})
COMP_CWORD={index}
compopt() {{ :; }}
_orrery
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


class Install(Installed):
    def the(self, pattern):
        [found] = pathlib.Path(self.place).rglob(pattern)
        return found

    def test_an_installed_program_trains(self):
        with self.folder() as folder:
            script = self.the("share/orrery/examples/mlp.lua")
            one, two = (self.call(["orrery", "run", "-n", n, script, "steps=5"], folder) for n in "12")
            self.assertRegex(one, r"digest \w{32}\n$")
            self.assertEqual(one, two)

    def test_documents_and_examples(self):
        documents = self.the("doc/orrery")
        for name in ("LICENSE", "README.md", "CHANGELOG.md", "docs/tutorial.md", "examples/gpt.lua"):
            self.assertTrue((documents / name).is_file(), name)

    def test_an_editor_is_told(self):
        with self.folder() as folder:
            self.call(["orrery", "new", "editor"], folder)
            settings = json.loads((pathlib.Path(folder) / ".luarc.json").read_text())
            [library] = settings["workspace.library"]
            self.assertIn("function orrery.compile(", (pathlib.Path(library) / "orrery.lua").read_text())
            for words, part in ((["editor"], f".luarc.json is there already; add {library} to"),
                                (["editor", "comm", "mine"], "it takes nothing more"),
                                (["plugin"], "give a kind and a name"), (["plugin", "comm"], "give a kind and a name")):
                done = words_of(["orrery", "new", *words], cwd=folder, env=self.environment)
                self.assertEqual(done.returncode, 2)
                self.assertIn(part, done.stderr)

    def test_manual(self):
        with self.folder() as folder:
            page = self.the("man1/orrery.1").read_text()
            listed = self.call(["orrery", "--help"], folder).partition("Subcommands:\n")[2]
            for word in re.findall(r"^  (\w+)  ", listed, re.MULTILINE):
                self.assertIn(f".SH ORRERY {word.upper()}\n", page)
            for text in (page, self.the("man1/orrery-check.1").read_text()):
                self.assertRegex(text, r"(?s)^\.TH .*\n\.SH NAME\n.*\n\.SH SYNOPSIS\n")
            self.assertIn(r"\-\-restarts", page)
            self.assertIn(r"\-\-script", self.the("man1/orrery-check.1").read_text())

    def completed(self, folder, *words):
        script = ASK.format(script=self.the("completions/orrery"), words=" ".join(map(repr, ("orrery", *words))),
                            index=len(words))
        return set(self.call(["bash", "-c", script], folder).split())

    def test_completion(self):
        with self.folder() as folder:
            for name in ("train.lua", "notes.txt", "mine.so"):
                (pathlib.Path(folder) / name).touch()
            (pathlib.Path(folder) / "models").mkdir()
            for words, expected in [
                (("re",), {"repl", "report"}),
                (("run", "--re"), {"--remote-shell", "--restarts"}),
                (("plan", "-n", "4", "--se"), {"--search", "--seconds"}),
                (("run", "-n", "2", ""), {"train.lua", "models/"}),
                (("run", "t"), {"train.lua"}),
                (("check", ""), {"mine.so", "models/"}),
                (("new", ""), {"plugin", "editor"}),
                (("new", "editor", ""), set()),
                (("new", "plugin", "o"), {"observer", "op"}),
                (("report", "n"), {"notes.txt"}),
            ]:
                with self.subTest(words=words):
                    self.assertEqual(self.completed(folder, *words), expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
