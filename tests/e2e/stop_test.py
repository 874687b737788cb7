# SPDX-License-Identifier: Apache-2.0
"""A job that is told to stop writes a checkpoint after the step under way and ends with 75; continued on
another number of ranks it comes to the digest of the run that nobody stopped.

Arguments: the build tree.
"""
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from program import Job, orrery, session_members, wait_for

SCRIPT = pathlib.Path(__file__).resolve().parent / "bad" / "stoppable.lua"


def digest(done):
    [found] = re.findall(r"^digest ([0-9a-f]{32})$", done.out, re.MULTILINE)
    return found


class Stop(unittest.TestCase):
    def start(self, ranks, words=(), arguments=(), launcher=()):
        job = Job("run", *words, "-n", ranks, "--threads", 1, SCRIPT, f"steps={10**9}", *arguments, launcher=launcher)
        self.addCleanup(job.end)
        self.assertEqual(job.process.stdout.readline(), "under way\n")
        return job

    def finish(self, job):
        job.finish(60)
        self.assertEqual(job.orphans(), [])
        return job

    def stop(self, number, ranks, words=(), arguments=(), launcher=()):
        """The ended job; told to stop when it was under way."""
        job = self.start(ranks, words, arguments, launcher)
        job.process.send_signal(number)
        return self.finish(job)

    def check_saved(self, job, folder):
        self.assertEqual(job.code, 75, job.err)
        self.assertIn(f'run:load "{folder}/checkpoint" continues from there', job.err)
        self.assertTrue((pathlib.Path(folder) / "checkpoint/checkpoint.json").exists())

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

    # As systemd stops a service, and Slurm the processes of a batch script: each process gets the signal, and the
    # ranks the launcher's copy besides.
    def test_a_signal_to_all_processes_is_one_stop(self):
        for number, reverse in itertools.product((signal.SIGTERM, signal.SIGUSR1), (False, True)):
            with self.subTest(number=number.name, reverse=reverse), tempfile.TemporaryDirectory() as folder:
                job = self.start(3, ["--dir", folder])
                all_of_it = sorted(session_members(job.process.pid), reverse=reverse)
                self.assertEqual(len(all_of_it), 4)
                for pid in all_of_it:
                    os.kill(pid, number)
                self.check_saved(self.finish(job), folder)

    # A copy that the launcher passes on late is no second stop, either.
    def test_a_launcher_that_is_late_sends_no_second_stop(self):
        with tempfile.TemporaryDirectory() as folder:
            halfway = pathlib.Path(folder) / "halfway"
            job = self.start(2, ["--dir", folder], ["last=3", f"halfway={halfway}"])
            job.process.send_signal(signal.SIGSTOP)
            for pid in session_members(job.process.pid):
                os.kill(pid, signal.SIGTERM)
            wait_for(halfway.exists, 30)  # of the step in which the ranks are, 1.5 s later
            job.process.send_signal(signal.SIGCONT)
            self.check_saved(self.finish(job), folder)

    # timeout signals its child, and then the child's process group.
    def test_timeout_stops_once(self):
        with tempfile.TemporaryDirectory() as folder:
            job = self.stop(signal.SIGTERM, 3, ["--dir", folder], launcher=["timeout", "1000"])
            self.assertIn(job.code, (75, 124), job.err)
            job.code = 75  # that timeout itself has been told to stop is what it may say
            self.check_saved(job, folder)

    def test_a_second_stop_ends_the_job(self):
        for number in (signal.SIGTERM, signal.SIGUSR1):
            with self.subTest(number=number.name), tempfile.TemporaryDirectory() as folder:
                job = self.start(2, ["--dir", folder], ["last=1e9"])
                while job.process.poll() is None:
                    job.process.send_signal(number)
                self.assertEqual(self.finish(job).code, 128 + signal.SIGKILL, job.err)

    # In a container the program is process 1, which the kernel ends by no signal without a handler.
    def test_as_process_1(self):
        space = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if not shutil.which("unshare") or subprocess.run([*space, "true"], capture_output=True).returncode != 0:
            self.skipTest("namespaces cannot be made here")
        for ranks, number in itertools.product((1, 3), (signal.SIGTERM, signal.SIGUSR1)):
            with self.subTest(ranks=ranks, number=number.name), tempfile.TemporaryDirectory() as folder:
                job = self.start(ranks, ["--dir", folder], launcher=space)
                for pid in session_members(job.process.pid):
                    if pid != job.process.pid:
                        os.kill(pid, number)
                self.check_saved(self.finish(job), folder)
        for number, arguments in (signal.SIGTERM, ["wait=1000"]), (signal.SIGUSR1, []), (signal.SIGTERM, []):
            with self.subTest(number=number.name, arguments=arguments):
                job = self.start(1, arguments=arguments, launcher=space)
                [first] = [p for p in session_members(job.process.pid) if p != job.process.pid]
                os.kill(first, number)
                self.assertEqual(self.finish(job).code, 128 + number)

    # Whether there is a place to save to is found before the first step, and not when the stop comes.
    def test_a_place_that_is_taken_is_found_at_the_start(self):
        for ranks in 1, 2:
            with self.subTest(ranks=ranks), tempfile.TemporaryDirectory() as folder:
                taken = pathlib.Path(folder) / "checkpoint"
                taken.write_text("mine")
                job = Job("run", "--dir", folder, "-n", ranks, "--threads", 1, SCRIPT, "steps=3").finish(60)
                self.assertEqual(job.code, 1, job.err)
                self.assertRegex(job.err, rf"stoppable\.lua:\d+: --dir: a stop could not save: .*{taken}")
                self.assertNotIn("digest", job.out)
                self.assertEqual(taken.read_text(), "mine")

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
