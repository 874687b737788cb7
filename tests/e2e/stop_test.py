# SPDX-License-Identifier: Apache-2.0
"""A job that is told to stop writes a checkpoint after the step under way and ends with 75; continued on
another number of ranks it comes to the digest of the run that nobody stopped.

Arguments: the build tree.
"""
import pathlib
import re
import signal
import sys
import tempfile
import unittest

from program import Job, orrery

SCRIPT = pathlib.Path(__file__).resolve().parent / "bad" / "stoppable.lua"


def digest(done):
    [found] = re.findall(r"^digest ([0-9a-f]{32})$", done.out, re.MULTILINE)
    return found


class Stop(unittest.TestCase):
    def stop(self, number, ranks, words=(), arguments=()):
        """The ended job; told to stop when it was under way."""
        job = Job("run", *words, "-n", ranks, "--threads", 1, SCRIPT, f"steps={10**9}", *arguments)
        self.addCleanup(job.end)
        self.assertEqual(job.process.stdout.readline(), "under way\n")
        job.process.send_signal(number)
        job.finish(60)
        self.assertEqual(job.orphans(), [])
        return job

    def test_every_rank_stops_after_the_same_step_and_another_world_continues(self):
        for number, ranks, others in ((signal.SIGTERM, 3, 2), (signal.SIGUSR1, 2, 1), (signal.SIGTERM, 1, 3)):
            with self.subTest(number=number.name, ranks=ranks), tempfile.TemporaryDirectory() as folder:
                job = self.stop(number, ranks, ["--dir", folder])
                self.assertEqual(job.code, 75, job.err)
                [step] = set(re.findall(rf"stopped by signal {int(number)} after step (\d+); run:load", job.err))
                step = int(step)
                whole = orrery("run", "--threads", 1, SCRIPT, f"steps={step + 7}")
                rest = orrery("run", "-n", others, "--threads", 1, SCRIPT, f"steps={step + 7}",
                              f"load={folder}/checkpoint")
                self.assertEqual(digest(rest), digest(whole))

    def test_saves_where_the_script_did(self):
        with tempfile.TemporaryDirectory() as folder:
            job = self.stop(signal.SIGTERM, 2, arguments=[f"save={folder}/mine"])
            self.assertEqual(job.code, 75, job.err)
            self.assertIn(f'run:load "{folder}/mine" continues from there', job.err)

    # It may come while the first step is compiled; SIGTERM then ends the job at once.
    def test_user_signal_before_the_first_step_is_obeyed_after_it(self):
        for place in "run", "series":
            with self.subTest(place=place), tempfile.TemporaryDirectory() as folder:
                words, arguments = (["--dir", folder], []) if place == "run" else ([], [f"series={folder}"])
                job = self.stop(signal.SIGUSR1, 2, words, [*arguments, "wait=1"])
                self.assertEqual(job.code, 75, job.err)
                self.assertIn("after step 1; run:load", job.err)
        with tempfile.TemporaryDirectory() as folder:
            job = self.stop(signal.SIGTERM, 2, ["--dir", folder], ["wait=1"])
            self.assertEqual(job.code, 128 + signal.SIGTERM)

    def test_without_a_place_signals_end_the_job_as_ever(self):
        for number, arguments in (signal.SIGTERM, []), (signal.SIGUSR1, []), (signal.SIGUSR1, ["wait=1"]):
            with self.subTest(number=number.name, arguments=arguments):
                self.assertEqual(self.stop(number, 2, arguments=arguments).code, 128 + number)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
