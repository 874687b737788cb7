# SPDX-License-Identifier: Apache-2.0
"""`orrery top` and `orrery report` say how a run goes or has ended, and one directory is of one living job.

Arguments: the build tree.
"""
import html
import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from program import Job, orrery  # noqa: E402

# Prints "here" after its second step, and waits for a line of the fifo `wait`; then does what `case` says.
SCRIPT = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { wait = "", case = "finish" }
local model = nn.linear(2, 1)
local run = orrery.compile(function(b) return nn.mse(model(b.x), b.y) end,
  { params = model, optimizer = optim.sgd { lr = 0.01 } })
local batch = { x = orrery.tensor { { 1.0, 2.0 }, { 2.0, 3.0 } }, y = orrery.tensor { { 3.0 }, { 2.0 } } }
for step = 1, 3 do
  if step == 3 and args.case == "fail" then error "the <third> step\\nis too many" end
  run:step(batch)
  if step == 2 and args.wait ~= "" and orrery.world.rank == 0 then
    print "here"
    io.stdout:flush()
    local file <close> = io.open(args.wait)
    file:read "l"
  end
end
"""


class Ending(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.script, self.place, self.fifo = self.root / "train.lua", self.root / "place", self.root / "fifo"
        self.script.write_text(SCRIPT)
        os.mkfifo(self.fifo)

    def waiting(self, *words):
        """A job that waits after its second step."""
        job = Job("run", *words, "--dir", self.place, self.script, f"wait={self.fifo}", ORRERY_DEADLINE="5")
        self.addCleanup(job.end)
        self.assertEqual(job.process.stdout.readline(), "here\n")
        return job

    def go_on(self, job):
        with open(self.fifo, "w") as file:
            file.write("\n")
        return job.finish()

    def told(self):
        """What top says on its second line, and that the report says the same."""
        top, report = orrery("top", "--once", self.place), orrery("report", self.place)
        self.assertEqual((top.code, report.code), (0, 0), top.err + report.err)
        ending = top.out.splitlines()[1]
        self.assertIn(f">{html.escape(ending, quote=False)}</td>".replace('"', "&quot;"), report.out)
        return ending

    def test_running_then_finished(self):
        job = self.waiting()
        self.assertRegex(self.told(), f"^running, by process {job.process.pid} on host ")
        self.assertEqual(self.go_on(job).code, 0, job.err)
        self.assertEqual(self.told(), "finished")
        self.assertFalse((self.place / "run.lock").exists())

    def test_failed(self):
        for ranks in (1, 2):
            done = orrery("run", "-n", ranks, "--dir", self.place, self.script, "case=fail")
            self.assertEqual(done.code, 1, done.err)
            self.assertEqual(self.told(), f"failed: {self.script}:10: the <third> step")
            # The next start in the directory begins anew.
            self.assertEqual(orrery("run", "--dir", self.place, self.script).code, 0)
            self.assertEqual(self.told(), "finished")

    def test_stopped(self):
        job = self.waiting()
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.go_on(job).code, 75, job.err)
        self.assertRegex(self.told(), r"^stopped and saved: .*stopped by signal 15 after step 3; run:load .* continues from there")

    def test_lost(self):
        job = self.waiting()
        job.process.kill()
        job.finish()
        self.assertEqual(self.told(), "lost without a word: it has not told how it ended, and no process of it is left")
        # What a dead job has left refuses nobody.
        self.assertEqual(orrery("run", "--dir", self.place, self.script).code, 0)
        self.assertEqual(self.told(), "finished")

    def test_rank_0_is_lost_and_another_rank_tells_it(self):
        script = self.root / "killed.lua"
        script.write_text(SCRIPT.replace('if step == 3 and', """
  if step == 3 and orrery.world.rank == 0 then os.execute("kill -9 $PPID") end
  if step == 3 and"""))
        orrery("run", "--dir", self.place, self.script, "case=fail")
        done = orrery("run", "-n", "2", "--dir", self.place, script, ORRERY_DEADLINE="5")
        self.assertNotEqual(done.code, 0)
        self.assertRegex(self.told(), r"^failed: .*rank 0 .* \(rank 1\)$")

    def test_an_older_directory(self):
        self.assertEqual(orrery("run", "--dir", self.place, self.script).code, 0)
        facts = self.place / "facts.0.jsonl"
        lines = [line for line in facts.read_text().splitlines(True)
                 if json.loads(line)["name"] not in ("run/locked", "run/end", "run/status", "run/error")]
        facts.write_text("".join(lines))
        self.assertEqual(self.told(), "not known: it has not told how it ended")

    def test_a_directory_is_of_one_living_job(self):
        for first, second in ((1, 1), (1, 2), (2, 1)):
            with self.subTest(first=first, second=second):
                job = self.waiting("-n", first)
                kept = {path.name: path.read_bytes() for path in self.place.iterdir()}
                done = orrery("run", "-n", second, "--dir", self.place, self.script, "case=fail")
                self.assertEqual(done.code, 1, done.err)
                self.assertRegex(done.err, fr"--dir {self.place}: process \d+ on host \S+ is writing there; "
                                           "wait for its end or name another directory")
                self.assertNotIn("too many", done.err)
                self.assertEqual(kept, {path.name: path.read_bytes() for path in self.place.iterdir()})
                self.assertEqual(self.go_on(job).code, 0, job.err)

    def test_restarts_do_not_refuse_themselves(self):
        script = self.root / "killed.lua"
        script.write_text(SCRIPT.replace('if step == 3 and', f"""
  if step == 3 and not io.open("{self.root}/once") then
    io.open("{self.root}/once", "w"):close()
    os.execute("kill -9 $PPID")
  end
  if step == 3 and"""))
        done = orrery("run", "-n", "2", "--restarts", "1", "--dir", self.place, script, ORRERY_DEADLINE="5")
        self.assertEqual(done.code, 0, done.err)
        self.assertTrue((self.root / "once").exists())
        self.assertEqual(self.told(), "finished")

    def test_a_lock_that_cannot_be_made_is_said(self):
        (self.place / "run.lock").mkdir(parents=True)
        done = orrery("run", "--dir", self.place, self.script)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("run.lock cannot be made: Is a directory; check the disk or save elsewhere; a second job in this directory would not be noticed", done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
