# SPDX-License-Identifier: Apache-2.0
"""A reader who follows docs/tutorial.md or docs/arguments.md sees what they show. Errors that docs/troubleshooting.md explains are those that
the program has. Links of all pages lead somewhere.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from pages import as_shown, follow, pages
from program import SOURCE


def anchors(path):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


TEXT = re.compile(r"""//[^\n]*|/\*.*?\*/|--[^\n]*|R"\((.*?)\)"|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'""", re.DOTALL)


def texts(path):
    """All that a source says: literals, one behind another, so that those of several lines are whole."""
    return re.sub(r"\\([\"'])", r"\1", "".join(part for match in TEXT.findall(path.read_text()) for part in match))


def explained(page):
    """The first cell of each row of its tables of errors."""
    return re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)


class Pages(unittest.TestCase):
    rooms = ("core", "plugins", "kernels", "scripts/orrery", "tests/conformance")
    said = "\n".join(texts(path) for room in rooms for path in sorted((SOURCE / room).rglob("*"))
                     if path.suffix in (".cpp", ".h", ".hpp", ".lua"))

    def unknown(self, error):
        """The fixed parts of an error that no source says."""
        return [part for part in re.split(r"\.\.\.", error) if part.strip(" ;,.('") and part.strip() not in self.said]

    def test_errors_are_those_of_the_program(self):
        errors = explained((SOURCE / "docs/troubleshooting.md").read_text())
        self.assertGreater(len(errors), 30)
        for error in errors:
            with self.subTest(error=error):
                self.assertEqual(self.unknown(error), [])
        self.assertNotEqual(self.unknown("has not replied for ..."), [])

    def test_tutorial(self):
        with tempfile.TemporaryDirectory() as folder:
            done = follow(self, (SOURCE / "docs/tutorial.md").read_text(), pathlib.Path(folder))
        self.assertGreaterEqual(done, 10)

    def test_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            done = follow(self, (SOURCE / "docs/arguments.md").read_text(), pathlib.Path(folder))
        self.assertEqual(done, 10)

    def test_another_output_is_seen(self):
        self.assertTrue(as_shown("a\n...\nb\n", "a\n1\n2\nb\n") and as_shown("a\n...\n", "a\n"))
        for shown in ("a\nb\n", "a\n...\nc\n", "...\na\n", "a\n"):
            self.assertFalse(as_shown(shown, "a\n1\n2\nb\n"))

    def test_links(self):
        for page in [*pages(), SOURCE / "CONTRIBUTING.md", SOURCE / "CHANGELOG.md"]:
            for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
                if re.match(r"[a-z]+:", link):
                    continue
                name, _, anchor = link.partition("#")
                target = (page.parent / name).resolve() if name else page
                with self.subTest(page=page.name, link=link):
                    self.assertTrue(target.exists())
                    if anchor and target.suffix == ".md":
                        self.assertIn(anchor, anchors(target))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
