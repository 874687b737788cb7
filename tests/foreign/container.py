# SPDX-License-Identifier: Apache-2.0
"""What scripts/packaging/Containerfile says, done in bare roots where containers are not at hand: its image trains.

Its first stage compiles all of Orrery; where dist/ has packages that ./scripts/package has made, these stand in for what
that step makes, which a line says. Needs root; tests/e2e/bare_root.py says where the roots come from.
"""
import pathlib
import re
import shlex
import shutil
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from bare_root import BareRoot  # noqa: E402

FILE = SOURCE / "scripts/packaging/Containerfile"
MADE = sorted((SOURCE / "dist").glob("*.deb"))
LEFT_OUT = shutil.ignore_patterns("build", "build-*", "runs", "dist", ".git")


def instructions(text):
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [line.split(maxsplit=1) for line in lines if line.strip()]


class Container(unittest.TestCase):
    def setUp(self):
        self.stages, self.variables, self.at = {}, [], "/"

    def begin(self, words):
        name = words.split()[-1] if " AS " in words else ""
        self.root = self.stages[name] = BareRoot(self)

    def copy(self, words):
        *flag, source, target = shlex.split(words)
        origin = self.stages[flag[0].partition("=")[2]].path if flag else SOURCE
        source, target = origin / source.lstrip("/"), self.root.path / target.lstrip("/")
        if source.is_dir():
            shutil.copytree(source, target, ignore=LEFT_OUT if not flag else None, dirs_exist_ok=True, symlinks=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def run_step(self, words):
        if "./scripts/package" in words and MADE:
            print(f"in place of '{words}': the packages in dist/")
            shutil.copytree(SOURCE / "dist", self.root.path / "src/dist")
            return
        self.root.call(*self.variables, "sh", "-c", words, at=self.at, timeout=7200)

    def test_its_image_trains(self):
        for name, words in instructions(FILE.read_text()):
            if name == "ENTRYPOINT":
                entry = re.findall(r'"([^"]*)"', words)
            elif name == "WORKDIR":
                self.at = words
                (self.root.path / words.lstrip("/")).mkdir(exist_ok=True)
            elif name == "ARG":
                self.variables.append(shlex.split(words)[0])
            else:
                {"FROM": self.begin, "COPY": self.copy, "RUN": self.run_step}[name](words)
        script = ["/usr/share/orrery/examples/mlp.lua", "steps=20"]
        one = self.root.call("ORRERY_PIN=none", *entry, "run", *script, at=self.at)
        self.assertRegex(one, r"digest \w{32}\n$")
        self.assertEqual(self.root.call("ORRERY_PIN=none", *entry, "run", "-n", "2", *script, at=self.at), one)
        self.assertNotEqual(self.root.enter("sh", "-c", "command -v c++").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
