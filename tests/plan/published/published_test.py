# SPDX-License-Identifier: Apache-2.0
"""`orrery plan` beside times that were published for the same layouts (rows.py, where their sources are).

The suite plans the rows that take little time. All of them, with a table: published_test.py BUILD all
"""
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from rows import FITTED, rows

ALL = sys.argv[2:] == ["all"]
QUICK = {"ptdp-1.7B", "ptdp-3.6B", "ptdp-7.5B", "ptdp-39.1B", "sel-175B-full", "sel-175B-sequence"}


def planned(ranks, words):
    """Seconds of a step, and the most bytes that a rank holds."""
    done = subprocess.run(
        [pathlib.Path(sys.argv[1]) / "orrery", "plan", "-n", str(ranks), "--machine", HERE / "a100.json",
         HERE / "layout.lua", *(f"{name}={value}" for name, value in words.items())],
        stdout=subprocess.PIPE, text=True, check=True).stdout
    step = re.search(r"step +([\d.e+]+) (ms|s):", done)
    seconds = float(step[1]) * (1e-3 if step[2] == "ms" else 1)
    return seconds, max(map(int, re.findall(r"\n  memory +(\d+) bytes", done)))


class Published(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ratios, cls.seconds = {}, {}
        for name, ranks, words, published in rows():
            if not (ALL or name in QUICK):
                continue
            seconds, memory = planned(ranks, words)
            cls.seconds[name], cls.ratios[name] = seconds, seconds / published
            if ALL:
                print(f"{name:24} {published:7.2f} s, planned {seconds:7.2f} s: {seconds / published:.3f}, "
                      f"{memory / 2**30:5.1f} GiB", flush=True)
            assert memory < 80 * 2**30, f"{name} is planned with {memory} bytes a rank, and ran on 80 GiB"
        held = [abs(ratio - 1) for name, ratio in cls.ratios.items() if name not in FITTED]
        cls.mean, cls.worst = sum(held) / len(held), max(held)
        if ALL:
            print(f"mean error of {len(held)} rows to which nothing was fitted: {cls.mean:.1%}, worst {cls.worst:.1%}")

    def test_times_are_near_those_that_were_measured(self):
        self.assertLess(self.mean, 0.10)
        self.assertLess(self.worst, 0.25)

    def test_the_faster_layout_is_the_faster_one(self):
        pairs = [(name, name.replace("-full", "-sequence")) for name in self.seconds if name.endswith("-full")]
        self.assertTrue(pairs)
        for full, sequence in pairs:
            self.assertLess(self.seconds[sequence], self.seconds[full], full)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
