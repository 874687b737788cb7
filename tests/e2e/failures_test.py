# SPDX-License-Identifier: Apache-2.0
"""Signals to the launcher, and its death: the exit code says how the job ended, and nothing is left.
What ranks meet is in random_failures_test.py.

Arguments: the build tree.
"""
import os
import re
import signal
import sys
import tempfile
import unittest

from program import BUILD, HERE, Job, orrery, under_way

DEADLINE = 2
RANKS = 3
KERNEL = str(BUILD / "tests/e2e/faulty")


def stuck(ranks, rank, seconds, deadline):
    """A training in which the first product of a rank (-1: all) takes so long."""
    with tempfile.NamedTemporaryFile() as file:
        return orrery("run", "-n", ranks, "--threads", 1, "verify.lua", cwd=HERE, ORRERY_PLUGIN_PATH=KERNEL,
                      ORRERY_DEADLINE=str(deadline), FAULTY_FILE=file.name, FAULTY_RANK=str(rank),
                      FAULTY_SECONDS=str(seconds))


def told(job, who):
    """The lines of a rank about a plugin that does not come back."""
    return re.findall(rf"orrery: {who} has been in 'launch' of kernel 'faulty' \({KERNEL}/\S+\.so\) for \d+ s, "
                      "in a call of .* for .* s: it may be in an endless loop", job.err)


class Failures(unittest.TestCase):
    def start(self):
        def forever():
            job = Job("run", "-n", RANKS, "--threads", 1, "forever.lua", cwd=HERE / "bad",
                      ORRERY_DEADLINE=str(DEADLINE))
            self.addCleanup(job.end)
            return job
        return under_way(forever)

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

    # The peer waits ten deadlines, as for a script, and then names the callback, too.
    def test_a_plugin_that_loops_for_ever_on_one_rank_is_named(self):
        job = stuck(2, rank=1, seconds=10**6, deadline=0.5)
        self.assertEqual(job.code, 124, job.err)
        self.assertTrue(told(job, "rank 1"), job.err)
        self.assertEqual(told(job, "rank 0"), [], job.err)
        self.assertRegex(job.err, r"waiting for rank 1 for .* s: it is in 'launch' of kernel 'faulty' \(")
        self.assertRegex(job.err, r"error: .*rank 1 has not answered .*; it is in 'launch' of kernel 'faulty' \(")

    def test_and_on_all_ranks(self):
        job = stuck(2, rank=-1, seconds=3, deadline=1)
        self.assertEqual(job.code, 0, job.err)
        for rank in (0, 1):
            self.assertTrue(told(job, f"rank {rank}"), job.err)

    def test_a_kernel_that_takes_long_is_told_once_and_goes_on(self):
        job = stuck(1, rank=0, seconds=3, deadline=2)
        self.assertEqual(job.code, 0, job.err)
        self.assertEqual(len(told(job, "this process")), 1, job.err)
        self.assertIn("step\t9", job.out)

    def test_killed_launcher(self):
        job = self.start()
        job.process.kill()
        self.check_end(job, -signal.SIGKILL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
