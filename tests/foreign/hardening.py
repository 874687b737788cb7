# SPDX-License-Identifier: Apache-2.0
"""Every ELF file of the packages in dist/ is hardened as debian/rules asks: read-only relocations that are bound at the
start, code that lies anywhere, no stack that executes, no path of the build, guarded stacks, checked calls of libc.

Needs packages that ./scripts/package has made, dpkg-deb and readelf.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from bare_root import skip  # noqa: E402

DEBS = sorted((SOURCE / "dist").glob("*.deb"))
# Functions in whose place the compiler calls a checked variant. A file may need the plain one, too: libfmt and libstdc++
# call it by its address.
FORMATS = {"printf", "fprintf", "snprintf", "sprintf", "vfprintf", "vprintf", "vsnprintf", "vsprintf"}


def readelf(option, path):
    return subprocess.run(["readelf", "--wide", option, str(path)], check=True, text=True, capture_output=True).stdout


def elf_files(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def faults(path):
    """What is missing of the hardening, in words."""
    segments, dynamic = readelf("--program-headers", path), readelf("--dynamic", path)
    wanted = set(re.findall(r"UND (\w+)", readelf("--dyn-syms", path)))
    found = {
        "relocations are not read-only": "GNU_RELRO" not in segments,
        "symbols are bound when they are called": not re.search(r"\(FLAGS(_1)?\).*\b(BIND_)?NOW\b", dynamic),
        "the code lies at a fixed address": not re.search(r"Elf file type is DYN", segments),
        "the stack executes": not re.search(r"GNU_STACK\s.*\sRW\s", segments),
        "a path of the build is searched": re.search(r"\((RPATH|RUNPATH)\)", dynamic),
        "stacks are not guarded": "__stack_chk_fail" not in wanted,
        "formats are not checked": FORMATS & wanted and not {f"__{name}_chk" for name in FORMATS} & wanted,
    }
    return [words for words, missing in found.items() if missing]


class Hardening(unittest.TestCase):
    def test_every_elf_file(self):
        seen = 0
        for deb in DEBS:
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run(["dpkg-deb", "--extract", str(deb), folder], check=True)
                for path in elf_files(pathlib.Path(folder)):
                    seen += 1
                    with self.subTest(file=f"{deb.name}: {path.relative_to(folder)}"):
                        self.assertEqual(faults(path), [])
        print(f"{seen} ELF files in {len(DEBS)} packages")
        self.assertGreater(seen, 0)


if __name__ == "__main__":
    if not DEBS:
        skip("no packages in dist/; run ./scripts/package")
    for tool in ("dpkg-deb", "readelf"):
        if not shutil.which(tool):
            skip(f"there is no {tool}")
    unittest.main(argv=sys.argv[:1])
