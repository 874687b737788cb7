# SPDX-License-Identifier: Apache-2.0
"""What tests of recorded runs share: a script in a directory of its own, and the pages about its run."""
import json
import pathlib
import re
import tempfile
import unittest

from program import orrery


def embedded(page):
    """The data that a report's charts are drawn from."""
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def charts(page):
    """{name of a number: {run: [(step, value)]}} of a report."""
    data = embedded(page)
    return {chart["tag"]: {data["runs"][line["run"]]["name"]: list(zip(line["steps"], line["values"], strict=True))
                           for line in chart["lines"]} for chart in data["charts"]}


class Recorded(unittest.TestCase):
    head = ""  # the beginning of each script

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.script, self.place = self.root / "train.lua", self.root / "place"

    def run_text(self, text, *words, code=0, ranks=1, place=None):
        self.script.write_text(self.head + text, encoding="utf-8")
        done = orrery("run", "-n", ranks, "--dir", place or self.place, *words, self.script)
        self.assertEqual(done.code, code, done.err)
        return done

    def pages(self, place=None):
        top, report = orrery("top", "--once", place or self.place), orrery("report", place or self.place)
        self.assertEqual((top.code, report.code), (0, 0), top.err + report.err)
        return top.out, report.out
