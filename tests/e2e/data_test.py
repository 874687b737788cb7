# SPDX-License-Identifier: Apache-2.0
"""Training on files: the same bits on any number of ranks and after a restart, in little memory.

Arguments: the build tree.
"""
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, SOURCE, orrery

FILES = SOURCE / "tests/data/files"


def train(*words, ranks=1, launch=()):
    done = orrery("run", "-n", ranks, *launch, HERE / "data.lua", *words, timeout=120)
    if done.code:
        raise AssertionError(done.err)
    return done.out


def digest(text):
    return re.search(r"digest (\w+)", text)[1]


class Data(unittest.TestCase):
    def test_ranks_and_restarts_change_no_bit(self):
        for kind in ("idx", "images"):
            with self.subTest(kind=kind), tempfile.TemporaryDirectory() as folder:
                words = (f"kind={kind}", f"files={FILES}")
                whole = train(*words)
                self.assertEqual(digest(train(*words, ranks=2)), digest(whole))
                train(*words, "stop=5", f"save={folder}/saved")
                self.assertEqual(digest(train(*words, f"load={folder}/saved", ranks=2)), digest(whole))
                losses = re.findall(r"loss (\S+)", whole)
                self.assertLess(float(losses[-1]), float(losses[0]))

    def test_metrics_say_what_was_waited_for_data(self):
        with tempfile.TemporaryDirectory() as folder:
            train("kind=images", f"files={FILES}", "steps=3", launch=("--dir", folder))
            lines = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
            waited = [line["data_seconds"] for line in lines if "data_seconds" in line]
            self.assertEqual(len(waited), 3)
            self.assertGreater(waited[0], 0)

    def test_ten_gigabytes_of_tokens_in_little_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokens.bin"
            with open(path, "wb") as file:
                os.truncate(file.fileno(), 10 << 30)
            text = train("kind=tokens", f"files={path}", "steps=4")
            self.assertLess(int(re.search(r"anonymous (\d+)", text)[1]), 200 << 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
