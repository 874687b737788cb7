# SPDX-License-Identifier: Apache-2.0
"""The lines in which tests/faults/plant.py plants its faults are there, once each."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/faults"))

from plant import FAULTS, planted  # noqa: E402


class Faults(unittest.TestCase):
    def test_can_be_planted(self):
        for what, path, text, fault, _ in FAULTS:
            with self.subTest(what):
                planted(path, text, fault, (ROOT / path).read_text())


if __name__ == "__main__":
    unittest.main()
