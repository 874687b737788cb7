# SPDX-License-Identifier: Apache-2.0
"""docs/ops.md names every kind of op that programs are made of, and no other."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class OpsPage(unittest.TestCase):
    def test_every_kind_is_there(self):
        kinds = set()
        for source in (ROOT / "core/program/ops").glob("*.cpp"):
            kinds.update(re.findall(r'const OpDef \w+(?: =\s+OpDef)?\{\s*(?:\.kind = )?"(\w+)"', source.read_text()))
        page = (ROOT / "docs/ops.md").read_text()
        rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
        by_itself = re.search(r"adds by itself \((.*?)\)", page, re.DOTALL)[1]
        named = set(re.findall(r"`(\w+)`", " ".join(rows) + by_itself))
        self.assertGreater(len(kinds), 30)
        self.assertEqual(named, kinds)


if __name__ == "__main__":
    unittest.main()
