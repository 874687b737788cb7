# SPDX-License-Identifier: Apache-2.0
"""Signals to the launcher, and its death: the exit code says how the job ended, and nothing is left.
What ranks meet is in random_failures_test.py.

Arguments: the build tree.
"""
import os
import signal
import sys
import unittest

from program import HERE, Job, orrery

DEADLINE = 2
RANKS = 3


class Failures(unittest.TestCase):
    def start(self):
        job = Job("run", "-n", RANKS, "--threads", 1, "forever.lua", cwd=HERE / "bad",
                  ORRERY_DEADLINE=str(DEADLINE))
        self.addCleanup(job.end)
        self.assertEqual(job.process.stdout.readline(), "under way\n")
        return job

    def check_end(self, job, code):
        job.finish(30)
        self.assertEqual(job.code, code, job.err)
        self.assertEqual(job.orphans(), [])
        self.assertEqual([n for n in os.listdir("/dev/shm") if "orrery" in n], [])

    def test_signals_to_the_launcher(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name):
                job = self.start()
                job.process.send_signal(number)
                self.check_end(job, 128 + number)
                self.assertIn(f"after signal {int(number)} to the launcher", job.err)

    # Liveness is not progress: a rank that lives is waited for past the deadline, and they say for what.
    def test_work_of_one_rank_alone_is_waited_for(self):
        job = orrery("run", "-n", 2, "alone.lua", "seconds=3", cwd=HERE / "bad", ORRERY_DEADLINE="1")
        self.assertEqual(job.code, 0, job.err)
        self.assertIn("together", job.out)
        self.assertRegex(job.err, r"orrery: waiting for rank 0 for \d+ s: it is in the script at alone\.lua:8")

    # But not for ever: ten deadlines.
    def test_a_rank_that_loops_for_ever_is_named_with_its_line(self):
        job = orrery("run", "-n", 2, "alone.lua", "seconds=1e9", cwd=HERE / "bad", ORRERY_DEADLINE="0.5")
        self.assertEqual(job.code, 124, job.err)
        self.assertRegex(job.err, r"error: .*rank 0 has not answered .*; it is in the script at alone\.lua:8")

    def test_killed_launcher(self):
        job = self.start()
        job.process.kill()
        self.check_end(job, -signal.SIGKILL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
