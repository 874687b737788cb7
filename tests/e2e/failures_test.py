# SPDX-License-Identifier: Apache-2.0
"""Ranks that die or freeze in the middle of a step, and signals to the launcher: every survivor
names the rank within the deadline + 2 s, the exit code says how it ended, and nothing is left.

Arguments: the build tree.
"""
import os
import signal
import sys
import time
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

    def check_survivors(self, job, victim, words):
        for rank in set(range(RANKS)) - {victim}:
            prefix = "" if rank == 0 else rf"\[rank {rank}\] "
            self.assertRegex(job.err, rf"(?m)^{prefix}error: forever\.lua:\d+: rank {victim} {words}")

    def test_killed_rank(self):
        for victim in range(RANKS):
            with self.subTest(victim=victim):
                job, begun = self.start(), time.monotonic()
                os.kill(job.ranks()[victim], signal.SIGKILL)
                self.check_end(job, 128 + signal.SIGKILL)
                self.assertLess(time.monotonic() - begun, DEADLINE + 2)
                self.check_survivors(job, victim, "died")
                self.assertIn(f"orrery: rank {victim} was killed by signal 9", job.err)

    def test_stopped_rank(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                job, begun = self.start(), time.monotonic()
                os.kill(job.ranks()[victim], signal.SIGSTOP)
                said = [(time.monotonic() - begun, line) for line in job.process.stderr
                        if f"rank {victim} has not answered for {DEADLINE} s" in line]
                self.check_end(job, 124)
                survivors = [(after, line) for after, line in said if "orrery:" not in line]
                self.assertEqual(len(survivors), RANKS - 1, said)
                self.assertLess(max(after for after, _ in survivors), DEADLINE + 2)

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
