# SPDX-License-Identifier: Apache-2.0
"""A run whose directory is full says which observer writes no more, once, and trains on to its end with the same bits;
what is on the disk can be read.

Arguments: the build tree.
"""
import csv
import json
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("e2e", "observer")]
from event_records import records  # noqa: E402
from program import orrery  # noqa: E402

SCRIPT = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local model = nn.linear(4, 3)
local run = orrery.compile(function(b) return nn.mse(model(b.x), b.y) end,
  { params = model, optimizer = optim.sgd { lr = 0.01 } })
local batch = { x = orrery.tensor { { 1.0, 2.0, 0.5, 1.5 } }, y = orrery.tensor { { 3.0, 1.0, 2.0 } } }
for _ = 1, 12 do run:step(batch) end
print("digest " .. orrery.digest(model))
"""
# Mounts a small file system, runs the command, and copies what is on it to $1.
SMALL = 'mount -t tmpfs -o "$2" none "$0" || exit 99; to=$1; shift 2; "$@"; code=$?; cp -rT "$0" "$to"; exit $code'
SPACE = ["unshare", "--user", "--map-root-user", "--mount"]
SAID = re.compile(r"observer (\w+): cannot (open|write) (\S+): (No space left on device|File too large); .*"
                  r"it observes no more, and the run goes on")
FILES = {"metrics": r"metrics\.jsonl|facts\.\d\.jsonl", "csv": r"metrics\.csv", "tensorboard": r"events\.out\..*",
         "trace": r"trace\.\d\.json|trace\.json\.\d\.part"}


class FullDisk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.script = cls.root / "train.lua"
        cls.script.write_text(SCRIPT)
        done = orrery("run", cls.script)
        assert done.code == 0, done.err
        cls.digest = done.out

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, done, written):
        """Returns {observer: "open" or "write"} of those that gave up."""
        self.assertEqual((done.code, done.out), (0, self.digest), done.err)
        found = SAID.findall(done.err)
        self.assertEqual(len(found), done.err.count("observer "), done.err)
        self.assertEqual(len({(name, rank) for name, _, rank, _ in found}), len(found), done.err)
        for name, _, path, _ in found:
            self.assertRegex(pathlib.Path(path).name, f"^({FILES[name]})$")
        for path in written.iterdir():
            if path.suffix == ".jsonl":
                self.assertTrue(path.read_text() == "" or path.read_text().endswith("\n"), path)
                for line in path.read_text().splitlines():
                    json.loads(line)
            elif path.suffix == ".csv":
                with open(path, newline="") as file:
                    self.assertEqual([row for row in csv.reader(file) if len(row) != 4], [])
            elif "tfevents" in path.name:
                list(records(path.read_bytes()))
            self.assertNotEqual(path.suffix, ".part")
        return {name: what for name, what, _, _ in found}

    def on_small_disk(self, options, *words):
        place, written = self.root / "place", self.root / "written"
        place.mkdir(exist_ok=True)
        shutil.rmtree(written, ignore_errors=True)
        written.mkdir()
        done = orrery("run", "--dir", place, *words, self.script,
                      launcher=[*SPACE, "sh", "-c", SMALL, place, written, options])
        return self.check(done, written)

    def test_no_room_for_bytes_or_files(self):
        if not shutil.which("unshare") or subprocess.run([*SPACE, "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespaces here")
        seen = set()
        for options in ("size=4k", "size=8k", "size=16k", "size=28k", "size=60k", "size=96k",
                        *(f"size=1m,nr_inodes={n}" for n in range(1, 7))):
            with self.subTest(options=options):
                seen |= set(self.on_small_disk(options).items())
        for name in FILES:
            self.assertIn((name, "write"), seen)
            self.assertIn((name, "open"), seen)

    def test_a_limit_on_the_size_of_files(self):
        for limit, expected in ((0, {"metrics", "csv", "tensorboard", "trace"}), (3000, {"metrics", "csv", "tensorboard", "trace"}),
                                (12000, {"trace"})):
            with self.subTest(limit=limit):
                place = self.root / f"limit{limit}"
                done = orrery("run", "--dir", place, self.script,
                              limit=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                self.assertEqual(set(self.check(done, place)), expected)

    def test_a_directory_that_nobody_can_write_to_ends_the_run_at_once(self):
        place = self.root / "blocked"
        (place / "metrics.csv").mkdir(parents=True)
        done = orrery("run", "--dir", place, self.script)
        self.assertEqual((done.code, done.out), (1, ""), done.err)
        self.assertIn(f"observer csv: cannot open {place}/metrics.csv: Is a directory", done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
