# SPDX-License-Identifier: Apache-2.0
"""C and C++ sources have at most 100 columns, and the form that .clang-format asks for."""
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("core", "plugins", "kernels", "scripts", "examples", "tests")
COLUMNS = 100
VERSION = "14."  # others break lines elsewhere


def sources():
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*")
                  if path.suffix in (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"))


def too_long(text):
    """The lines with too many columns, but for raw strings, which hold other languages."""
    found, raw = [], False
    for number, line in enumerate(text.splitlines(), 1):
        begins = raw or re.search(r'\bR"\w*\(', line)
        if len(line) > COLUMNS and not begins:
            found.append(number)
        raw = begins and not re.search(r'\)\w*"', line)
    return found


class Format(unittest.TestCase):
    def test_columns(self):
        found = [f"{path.relative_to(ROOT)}:{n}" for path in sources() for n in too_long(path.read_text())]
        self.assertEqual(found, [])

    def test_a_long_line_is_found(self):
        long = "x" * (COLUMNS + 1)
        self.assertEqual(too_long("\n" + long + "\n" + "x" * COLUMNS), [2])
        self.assertEqual(too_long('f(R"(\n' + long + '\n)");\n' + long), [4])
        self.assertEqual(too_long('f("FOR");\n' + long), [2])

    def test_form(self):
        program = shutil.which("clang-format-14") or shutil.which("clang-format")
        if not program or f"version {VERSION}" not in subprocess.run(
                [program, "--version"], capture_output=True, text=True).stdout:
            self.skipTest(f"there is no clang-format {VERSION}x")
        done = subprocess.run([program, "--dry-run", "-Werror", *sources()], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[:4000])


if __name__ == "__main__":
    unittest.main()
