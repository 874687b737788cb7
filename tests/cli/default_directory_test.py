# SPDX-License-Identifier: Apache-2.0
"""A run without --dir is recorded in runs/TIME-SCRIPT of the working directory, in one directory for all of its ranks and
starts; where nothing is trained, recorded or wanted there is none.

Arguments: the build tree.
"""
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from program import Job, orrery, wait_for  # noqa: E402

TRAIN = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local o = orrery.args { steps = 3, die = "" }
local batch = { x = orrery.tensor { { 1.0 }, { 2.0 }, { 3.0 } }, y = orrery.tensor { { 3.0 }, { 5.0 }, { 7.0 } } }
local model = nn.linear(1, 1)
local run = orrery.compile(function(b) return nn.mse(model(b.x), b.y) end,
  { params = model, optimizer = optim.sgd { lr = 0.01 }, microbatches = 3 })
for i = 1, o.steps do
  run:step(batch)
  orrery.record("own", i)
end
if o.die ~= "" and orrery.world.rank == 1 then
  local first = io.open(o.die, "r")
  if not first then
    io.open(o.die, "w"):close()
    os.execute "kill -9 $PPID"
  end
end
"""
LINE = r"this run is recorded in (runs/\d{4}(?:-\d\d){5}-train(?:-\d)?) \(--no-dir: nowhere\)"
RECORDED = {"ORRERY_NO_DIR": ""}


class DefaultDirectory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "train.lua").write_text(TRAIN)

    def run_here(self, *words, code=0, **variables):
        done = orrery("run", *words, cwd=self.root, **RECORDED | variables)
        self.assertEqual(done.code, code, done.err)
        return done

    def only_directory(self, done):
        [said] = re.findall(LINE, done.err)
        self.assertEqual([path for path in (self.root / "runs").iterdir()], [self.root / said])
        return self.root / said

    def test_one_directory_of_all_ranks(self):
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                self.setUp()
                place = self.only_directory(self.run_here("-n", ranks, "train.lua"))
                names = sorted(path.name for path in place.iterdir() if "tfevents" not in path.name)
                self.assertEqual(names, [f"facts.{rank}.jsonl" for rank in range(ranks)] + ["metrics.jsonl"])
                self.assertEqual(len(list(place.glob("events.out.tfevents.*"))), 1)
                lines = [json.loads(line) for line in (place / "metrics.jsonl").read_text().splitlines()]
                steps = [line["step"] for line in lines if "loss" in line]
                self.assertEqual((steps[0], steps[-1]), (1, 3))
                self.assertEqual(steps, [line["step"] for line in lines if "seconds" in line])
                self.assertEqual([line["step"] for line in lines if "own" in line], [1, 2, 3])
                self.assertFalse(any("mfu" in line for line in lines))
                self.assertEqual(orrery("top", "--once", place).out.splitlines()[1], "finished")

    def test_an_observer_with_options_writes_there(self):
        place = self.only_directory(self.run_here("-n", 3, "--observe", "trace=1:2", "train.lua"))
        self.assertTrue((place / "trace.json").is_file())
        self.assertFalse((place / "metrics.csv").is_file())

    def test_there_is_none(self):
        (self.root / "nothing.lua").write_text('local orrery = require "orrery"\norrery.log "hello"\n')
        for words, variables in ((("nothing.lua",), {}), (("-n", 3, "nothing.lua"), {}), (("--no-dir", "train.lua"), {}),
                                 (("-n", 3, "--no-dir", "train.lua"), {}), (("train.lua",), {"ORRERY_NO_DIR": "1"}),
                                 (("-n", 3, "train.lua"), {"ORRERY_NO_DIR": "1"})):
            with self.subTest(words=words, variables=variables):
                done = self.run_here(*words, **variables)
                self.assertNotIn("recorded", done.err)
                self.assertFalse((self.root / "runs").exists())
        for words in (("plan", "train.lua"), ("repl",)):
            job = Job(*words, cwd=self.root, **RECORDED).finish()
            self.assertEqual(job.code, 0, job.err)
            self.assertFalse((self.root / "runs").exists())
        done = self.run_here("--dir", "here", "train.lua")
        self.assertNotIn("recorded", done.err)
        self.assertFalse((self.root / "runs").exists())
        self.assertIn("--no-dir", self.run_here("--dir", "here", "--no-dir", "train.lua", code=2).err)

    def test_where_none_can_be_made_training_goes_on(self):
        (self.root / "runs").write_text("a file")
        for ranks in (1, 3):
            done = self.run_here("-n", ranks, "train.lua")
            self.assertEqual(done.err.count("nothing of this run is recorded; --dir names another directory"), 1, done.err)
        self.assertEqual((self.root / "runs").read_text(), "a file")

    def test_a_name_that_is_taken(self):
        now = time.time()
        for second in range(120):
            stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.localtime(now + second))
            (self.root / f"runs/{stamp}-train").mkdir(parents=True)
        [said] = re.findall(LINE, self.run_here("-n", 3, "train.lua").err)
        self.assertTrue(said.endswith("-train-2"), said)
        self.assertTrue((self.root / said / "metrics.jsonl").is_file())
        self.assertFalse(any(path.is_file() for path in (self.root / "runs").glob("*-train/*")))

    def test_a_job_that_is_started_again_goes_on_in_its_directory(self):
        done = self.run_here("-n", 2, "--restarts", 1, "train.lua", f"die={self.root}/died", ORRERY_DEADLINE="5")
        self.assertTrue((self.root / "died").exists())
        [place] = list((self.root / "runs").iterdir())
        steps = [line["step"] for line in map(json.loads, (place / "metrics.jsonl").read_text().splitlines()) if "loss" in line]
        self.assertEqual([steps[0], steps[-1], steps.count(1), steps.count(3)], [1, 3, 2, 2], done.err)

    def test_ranks_that_another_launcher_starts(self):
        port, jobs = str(20000 + os.getpid() % 12000), []
        for rank in range(3):  # in time zones of their own: rank 0's clock counts
            jobs.append(Job("run", "train.lua", cwd=self.root, RANK=str(rank), WORLD_SIZE="3", LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="3",
                            MASTER_ADDR="127.0.0.1", MASTER_PORT=port, ORRERY_TOKEN="of this test",
                            TZ=f"UTC{rank * 3}", **RECORDED))
            self.addCleanup(jobs[-1].end)
        for job in jobs:
            self.assertEqual(job.finish().code, 0, job.err)
        place = self.only_directory(jobs[0])
        self.assertEqual(len(list(place.glob("facts.*.jsonl"))), 3)

    def test_a_stop_saves_nothing_there(self):
        (self.root / "wait.lua").write_text(TRAIN.replace("for i = 1, o.steps do", 'while true do local i = 1 io.open("stepped", "w"):close()'))
        job = Job("run", "wait.lua", cwd=self.root, **RECORDED)
        self.addCleanup(job.end)
        wait_for(lambda: (self.root / "stepped").exists() and (self.root / "runs").exists(), 60)
        job.process.send_signal(signal.SIGTERM)
        job.finish()
        [place] = list((self.root / "runs").iterdir())
        self.assertFalse((place / "checkpoint").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
