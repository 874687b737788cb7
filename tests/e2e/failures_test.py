# SPDX-License-Identifier: Apache-2.0
"""Signals to the launcher, and its death: the exit code says how the job ended, and nothing is left.
What ranks meet is in random_failures_test.py.

Arguments: the build tree.
"""
import os
import signal
import sys
import unittest

from program import HERE, Job

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

    def test_killed_launcher(self):
        job = self.start()
        job.process.kill()
        self.check_end(job, -signal.SIGKILL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
