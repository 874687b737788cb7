# SPDX-License-Identifier: Apache-2.0
"""A reader that stops reading what a job prints holds up its ranks, and neither its signals nor its end.

Arguments: the build tree.
"""
import fcntl
import os
import pathlib
import signal
import sys
import tempfile
import unittest

from program import HERE, Job, session_members, wait_for

SCRIPT = HERE / "bad" / "loud.lua"
TOGETHER = ["sh", "-c", 'exec "$@" 2>&1', "sh"]  # stdout and stderr are one pipe


def held_up(job):
    """Ranks that wait for somebody to read what they print."""
    def where(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/wchan").read_text()
        except OSError:
            return ""
    return [pid for pid in session_members(job.process.pid) if pid != job.process.pid and "pipe_write" in where(pid)]


class Stalled(unittest.TestCase):
    def start(self, *words, steps=10 ** 9, launcher=()):
        job = Job("run", *words, "--threads", 1, SCRIPT, f"steps={steps}", launcher=launcher)
        self.addCleanup(job.end)
        fcntl.fcntl(job.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        return job

    def stalled(self, *words, **options):
        job = self.start(*words, **options)
        wait_for(lambda: held_up(job), 60)
        return job

    def test_a_stop_saves(self):
        for launcher, words in (((), ["-n", 2]), (TOGETHER, ["-n", 2]), ((), ["-n", 1, "--restarts", 1])):
            with self.subTest(launcher=launcher, words=words), tempfile.TemporaryDirectory() as folder:
                job = self.stalled(*words, "--dir", folder, launcher=launcher)
                job.process.send_signal(signal.SIGTERM)
                self.assertEqual(job.process.wait(60), 75)
                self.assertTrue((pathlib.Path(folder) / "checkpoint/checkpoint.json").exists())
                self.assertEqual(job.orphans(), [])

    def test_without_a_place_a_stop_ends_the_job(self):
        job = self.stalled("-n", 2)
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.process.wait(30), 128 + signal.SIGINT)

    def test_a_killed_rank_is_noticed(self):
        job = self.stalled("-n", 2)
        os.kill(held_up(job)[0], signal.SIGKILL)
        for line in job.process.stderr:
            if "was killed by signal 9" in line:
                break
        job.process.send_signal(signal.SIGTERM)  # all ranks have ended: there is only the reader to wait for
        self.assertEqual(job.process.wait(30), 128 + signal.SIGKILL)

    def test_who_reads_on_gets_every_line(self):
        job = self.stalled("-n", 2, steps=200)
        job.finish()
        self.assertEqual(job.code, 0, job.err)
        found = {"": [], "[rank 1] ": []}
        for line in job.out.splitlines():
            found["[rank 1] " if line.startswith("[") else ""].append(line)
        for prefix, lines in found.items():
            self.assertEqual(lines, [f"{prefix}{n:<99d}" for n in range(1, 200 * 40 + 1)])

    def test_a_reader_that_leaves_ends_the_job(self):
        job = self.stalled("-n", 2)
        job.process.stdout.close()
        self.assertEqual(job.process.wait(60), 128 + signal.SIGPIPE)
        self.assertIn("signal 13", job.process.stderr.read())
        self.assertEqual(job.orphans(), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
