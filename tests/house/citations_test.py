# SPDX-License-Identifier: Apache-2.0
"""Comments cite only pages that are in the repository, and of docs/design.md sections that it has."""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("core", "plugins", "kernels", "scripts", "tests")
DESIGN = "docs/design.md"

# By the end of a file's name: what its comments look like. Scripts have none.
C = r"//[^\n]*|/\*.*?\*/"
HASH = r"(?<!\S)#[^\n]*"
COMMENT = {**dict.fromkeys((".c", ".h", ".cpp", ".hpp", ".cu", ".cuh", ".inc", ".S"), C), ".lua": r"--[^\n]*",
           **dict.fromkeys(("", ".sh", ".build", ".py"), HASH + r'|""".*?"""')}
MARK = re.compile(r"^[ \t]*(?://+|/?\*+/?|#+|-{2,})[ \t]?", re.MULTILINE)
PAGE = re.compile(r"(?<![\w./:-])[\w./-]*\w\.md\b")
SECTION = re.compile(rf'{re.escape(DESIGN)}, "([^"]+)"')
ELSEWHERE = re.compile(r"\bdesign,? sections?\b", re.IGNORECASE)


def comments(path, text):
    """All comments, in one line: citations go on over its end."""
    found = re.findall(COMMENT[path.suffix], text, re.DOTALL)
    return " ".join(" ".join(MARK.sub("", part) for part in found).split())


def faults(root, path, sections):
    """One sentence for each thing that the file cites and that is not there."""
    said = comments(path, path.read_text())
    for words in ELSEWHERE.findall(said):
        yield f'cites "{words}", by no name: write {DESIGN}, "Name of the section"'
    for page in PAGE.findall(said):
        if not (root / page).is_file() and not (path.parent / page).is_file():
            yield f"cites {page}, which is not in the repository"
    for name in SECTION.findall(said):
        if name not in sections:
            yield f'cites "{name}", which is no section of {DESIGN}'


def check(root):
    sections = set(re.findall(r"^## (.+)$", (root / DESIGN).read_text(), re.MULTILINE))
    files = [p for room in ROOMS for p in sorted((root / room).rglob("*"))
             if p.suffix in COMMENT and p.is_file() and not p.name.startswith(".")]
    return [f"{p.relative_to(root)} {why}" for p in files for why in faults(root, p, sections)]


CITES = [
    ("core/a.h", "// Sums (design section 8).", 'cites "design section"'),
    ("core/a.h", "// Sums, see design\n// sections 5 and 8.", 'cites "design sections"'),
    ("core/a.h", "/* Cuts (design, section 3) */", 'cites "design, section"'),
    ("core/a.cpp", "// As docs/gone.md has it.", "cites docs/gone.md"),
    ("kernels/a.cu", "/* As in\n * gone.md */", "cites gone.md"),
    ("plugins/a.cpp", '// (docs/design.md, "Sums in no\n// order")', 'cites "Sums in no order"'),
    ("scripts/a.lua", "--- See docs/gone.md.", "cites docs/gone.md"),
    ("scripts/a", "#!/bin/sh\n# See docs/gone.md.", "cites docs/gone.md"),
    ("tests/a.py", '"' * 3 + "Holds docs/gone.md." + '"' * 3, "cites docs/gone.md"),
    ("tests/meson.build", "# See docs/gone.md.", "cites docs/gone.md"),
]
FREE = [
    ("core/a.h", '// (docs/design.md, "Sums in canonical\n// order"), README.md; https://b.org/gone.md'),
    ("core/a.cpp", 'write(to / "gone.md");'), ("tests/sub/a.py", "# near.md"), ("tests/a.py", 'PAGE = "docs/gone.md"'),
]


class Citations(unittest.TestCase):
    def found_in(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for each, words in [(DESIGN, "## Sums in canonical order\n"), ("README.md", ""), ("tests/sub/near.md", ""),
                                (name, text + "\n")]:
                (root / each).parent.mkdir(parents=True, exist_ok=True)
                (root / each).write_text(words)
            return check(root)

    def test_repository(self):
        self.assertEqual(check(ROOT), [])

    def test_what_is_not_there_is_found(self):
        for name, text, part in CITES:
            with self.subTest(text=text):
                found = self.found_in(name, text)
                self.assertEqual(len(found), 1, found)
                self.assertIn(part, found[0])

    def test_what_is_there_may_be_cited(self):
        for name, text in FREE:
            with self.subTest(text=text):
                self.assertEqual(self.found_in(name, text), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
