# SPDX-License-Identifier: Apache-2.0
"""Training on files: the same bits on any number of ranks and after a restart, in little memory.

Arguments: the build tree.
"""
import gzip
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, SOURCE, orrery

FILES = SOURCE / "tests/data/files"


def train(*words, ranks=1, launch=(), script=HERE / "data.lua"):
    done = orrery("run", "-n", ranks, *launch, script, *words, timeout=120)
    if done.code:
        raise AssertionError(done.err)
    return done.out


def digest(text):
    return re.search(r"digest (\w+)", text)[1]


class Data(unittest.TestCase):
    def test_ranks_and_restarts_change_no_bit(self):
        mnist = (f"images={FILES}/images.idx", f"labels={FILES}/labels.idx", "batch=4", "microbatches=2")
        for script, words in ((SOURCE / "examples/mnist.lua", mnist), (HERE / "data.lua", ("kind=images", f"files={FILES}"))):
            with self.subTest(script=script), tempfile.TemporaryDirectory() as folder:
                saved = f"{folder}/saved"
                whole = train(*words, "steps=12", script=script)
                self.assertEqual(digest(train(*words, "steps=12", ranks=2, script=script)), digest(whole))
                train(*words, "steps=5", f"save={saved}", script=script)
                again = train(*words, "steps=12", f"load={saved}", ranks=2, script=script)
                self.assertEqual(digest(again), digest(whole))
                self.assertNotEqual(digest(train(*words, "steps=11", script=script)), digest(whole))

    def test_parts_of_json_lines_are_the_same_on_ranks_and_after_restarts(self):
        with tempfile.TemporaryDirectory() as folder:
            with gzip.open(f"{folder}/lines.jsonl.gz", "wt") as file:
                for i in range(40):
                    file.write(json.dumps({"x": [i / 7, -i, 1], "y": 2 * i + 1, "kind": "ab"[i % 2]}) + "\n")
            words, saved = ("kind=lines", f"files={folder}/lines.jsonl.gz"), f"{folder}/saved"
            whole = train(*words, "steps=12")
            for ranks in (2, 3):
                self.assertEqual(digest(train(*words, "steps=12", ranks=ranks)), digest(whole))
            train(*words, "steps=5", f"save={saved}", ranks=3)
            self.assertEqual(digest(train(*words, "steps=12", f"load={saved}", ranks=2)), digest(whole))
            self.assertNotEqual(digest(train(*words, "steps=11")), digest(whole))

    def test_a_pass_in_order_that_begins_again_says_so_once(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "wraps.lua"
            script.write_text("""
local orrery = require "orrery"
local data = orrery.data.arrays { x = { { 1.0 }, { 2.0 }, { 3.0 }, { 4.0 }, { 5.0 } } }
for _ = 1, 2 do
  for i = 1, 3 do data:batch(i, { size = 2, shuffle = false }) end
end
for _ in data:batches { size = 5, steps = 2, shuffle = false } do end
""")
            done = orrery("run", "-n", 2, script)
            self.assertEqual(done.code, 0, done.err)
            said = re.findall(r"wraps\.lua:(\d+): batch 3 of size 2 has the last of 5 samples and begins again with the "
                              r"first: .* is data:batches \{ size = 2, epochs = 1 \}", done.err)
            self.assertEqual(said, ["5"])

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
