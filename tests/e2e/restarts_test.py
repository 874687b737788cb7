# SPDX-License-Identifier: Apache-2.0
"""Jobs that lose ranks and start again by --restarts end with the bits of a job that nothing happened to.

Arguments: the build tree.
"""
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import time
import unittest

from program import HERE, Job, orrery, wait_for
from two_hosts import TAG, TwoHosts, TwoHostsAlone, digest, end_all, in_namespace

SCRIPT = HERE / "restarts.lua"


class Restarts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def job(self, *words, ranks=4, folder="job", deadline=30):
        (self.folder / folder).mkdir(exist_ok=True)
        return orrery("run", "-n", ranks, *words[:-1], SCRIPT, f"folder={self.folder / folder}", *words[-1],
                      ORRERY_DEADLINE=str(deadline))

    def test_two_random_kills_leave_the_digest(self):
        seed = random.SystemRandom().randrange(10 ** 6)
        chance = random.Random(seed)
        for stack in ("data", "zero3", "pipeline"):
            ranks = 2 if stack == "pipeline" else 4
            blows = ",".join(f"KILL {chance.randrange(ranks)} {step}" for step in sorted(chance.sample(range(1, 60), 2)))
            with self.subTest(stack=stack, blows=blows, seed=seed):
                quiet = digest(self.job([f"stack={stack}"], ranks=ranks, folder=f"{stack}-quiet"))
                job = self.job("--restarts", 3, [f"stack={stack}", f"blows={blows}"], ranks=ranks, folder=stack)
                self.assertEqual(digest(job), quiet)
                self.assertEqual(re.findall(r"starting again in (\d) s, (\d) restarts? left", job.err), [("1", "2"), ("2", "1")])
                self.assertEqual(len(re.findall(r"orrery: rank \d was killed by signal 9", job.err)), 2)
                begun = [int(step) for step in re.findall(r"^rank 0 of \d begins behind step (\d+)", job.out, re.M)]
                self.assertEqual(begun, sorted(begun))

    def test_what_begins_anew_says_so_once(self):
        for series, why in (("true", "checkpoints' has no checkpoint yet"),
                            ("false", "the script has loaded no checkpoint, as run:checkpoints would")):
            with self.subTest(series=series):
                job = self.job("--restarts", 2, [f"series={series}", "steps=9", "blows=KILL 1 3"], ranks=2, folder=series)
                self.assertEqual(job.code, 0, job.err)
                [line] = [line for line in job.err.splitlines() if "begins at step 0 again" in line]
                self.assertTrue(line.startswith("orrery: start 2 of the job begins at step 0 again: "), line)
                self.assertTrue(line.endswith(why), line)
        job = self.job("--restarts", 2, ["blows=KILL 1 20"], ranks=2, folder="continued")
        self.assertNotIn("begins at step 0 again", job.err)

    def test_a_frozen_rank_is_lost_too(self):
        job = self.job("--restarts", 1, ["blows=STOP 1 20"], deadline=2)
        self.assertEqual(digest(job), digest(self.job([], folder="quiet")))
        self.assertIn("rank 1 has not answered for 2 s", job.err)

    def test_restarts_end(self):
        job = self.job("--restarts", 1, ["blows=KILL 1 10,KILL 2 20"])
        self.assertEqual(job.code, 137, job.err)
        self.assertEqual(job.err.count("starting again in 1 s, 0 restarts left after this one"), 1)
        self.assertIn("orrery: rank 2 was killed by signal 9", job.err.splitlines()[-1])

    def test_a_single_rank_starts_again(self):
        self.assertEqual(digest(self.job("--restarts", 1, ["blows=KILL 0 30"], ranks=1)),
                         digest(self.job([], ranks=1, folder="quiet")))

    def test_what_would_fail_again_is_not_tried_again(self):
        job = self.job("--restarts", 3, ["stack=nothing"])
        self.assertEqual(job.code, 1, job.err)
        self.assertNotIn("starting again", job.err)

    def test_a_job_that_is_told_to_stop_stops(self):
        job = Job("run", "-n", 2, "--restarts", 3, SCRIPT, f"folder={self.folder}", "steps=100000", "pause=0.01")
        self.addCleanup(job.end)
        wait_for(lambda: list(self.folder.glob("checkpoints/*/checkpoint.json")), 30)
        job.process.terminate()
        job.finish(30)
        self.assertEqual(job.code, 75, job.err)
        self.assertNotIn("starting again", job.err)

    def test_a_stop_ends_the_wait_for_the_next_start(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with self.subTest(number=number.name), tempfile.TemporaryDirectory() as folder:
                job = Job("run", "-n", 2, "--restarts", 9, SCRIPT, f"folder={folder}",
                          "blows=" + ",".join(f"KILL 1 {step}" for step in range(1, 6)))
                self.addCleanup(job.end)
                for line in job.process.stderr:
                    if "starting again in 4 s" in line:
                        break
                begun = time.monotonic()
                job.process.send_signal(number)
                job.finish(30)
                self.assertLess(time.monotonic() - begun, 3)
                self.assertEqual(job.code, 128 + number, job.err)
                self.assertIn(f"signal {int(number)} to the launcher: the job does not start again", job.err)
                self.assertEqual(job.orphans(), [])

    def test_usage(self):
        for words, message in ((["--restarts", -1], "--restarts"), (["--min-ranks", 2], "--min-ranks requires --hosts"),
                               (["--restarts", 2], "only it can start it again")):
            environment = dict(RANK="0", WORLD_SIZE="2") if message.startswith("only") else {}
            job = orrery("run", *words, SCRIPT, **environment)
            self.assertNotEqual(job.code, 0)
            self.assertIn(message, job.err)


class LostHosts(TwoHostsAlone, unittest.TestCase):
    shell = f"{sys.executable} {HERE / 'namespace_shell.py'} {TAG}"
    launcher, on_hosts = TwoHosts.launcher, TwoHosts.on_hosts

    def on_two(self, *words, pause=0.02, deadline=5):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        job = self.on_hosts({1: 1, 2: 1}, *words, SCRIPT, f"folder={folder.name}", f"pause={pause}",
                            ORRERY_DEADLINE=str(deadline))
        return job, pathlib.Path(folder.name)

    def undisturbed(self):
        job, _ = self.on_two()
        return digest(job.finish(60))

    def lose_the_second(self, *words, **options):
        """Once there is a checkpoint."""
        job, folder = self.on_two(*words, **options)
        wait_for(lambda: list(folder.glob("checkpoints/*/checkpoint.json")), 30)
        end_all(2)
        return job.finish(60)

    def test_a_restart_leaves_out_a_lost_host(self):
        quiet = self.undisturbed()
        job = self.lose_the_second("--restarts", 1, "--min-ranks", 1)
        self.assertEqual(digest(job), quiet)
        self.assertIn("orrery: on 1 of 2 ranks: 1 of 2 hosts are left", job.err)
        self.assertRegex(job.out, r"rank 0 of 1 begins behind step [1-9]")

    # Its processes go on when the job has long started again without them, as those of a host that hangs.
    def test_a_host_that_hangs_keeps_no_lock(self):
        quiet = self.undisturbed()
        job, folder = self.on_two("--restarts", 2, "--min-ranks", 1, deadline=2)
        wait_for(lambda: list(folder.glob("checkpoints/*/checkpoint.json")), 30)
        self.addCleanup(end_all, 1)
        for pid in in_namespace(1):
            os.kill(pid, signal.SIGSTOP)
        self.assertEqual(digest(job.finish(90)), quiet)
        self.assertIn("starting again", job.err)
        self.assertNotIn("is saving there", job.err)

    def test_a_host_that_is_back_takes_part_again(self):
        quiet = self.undisturbed()
        job = self.lose_the_second("--restarts", 1, "--min-ranks", 1, pause=0.08, deadline=1)
        self.assertEqual(digest(job), quiet)
        begun = re.findall(r"^rank 0 of (\d) begins behind step (\d+)", job.out, re.M)
        self.assertEqual([ranks for ranks, _ in begun], ["2", "1", "2"])
        self.assertLess(int(begun[1][1]), int(begun[2][1]))
        self.assertEqual(job.err.count("starting again"), 1)
        self.assertIn("orrery: host 10.77.0.2 is back: the ranks save and start again with it", job.err)

    # The second host's shell fails for as long as 4 s: three starts at once would be over by then.
    def test_a_host_that_is_away_does_not_use_all_restarts(self):
        quiet = self.undisturbed()
        with tempfile.TemporaryDirectory() as place:
            away = pathlib.Path(place) / "away"
            shell = pathlib.Path(place) / "shell"
            shell.write_text(f"#!/bin/sh\n"
                             f"if [ \"$1\" = 10.77.0.2 ] && [ \"$(date +%s)\" -lt \"$(cat {away})\" ]; then exit 255; fi\n"
                             f"exec {self.shell} \"$@\"\n")
            shell.chmod(0o755)
            away.write_text("0")
            self.shell = str(shell)
            job, folder = self.on_two("--restarts", 3)
            wait_for(lambda: list(folder.glob("checkpoints/*/checkpoint.json")), 30)
            away.write_text(str(int(time.time()) + 5))
            end_all(2)
            self.assertEqual(digest(job.finish(60)), quiet)
        self.assertRegex(job.err, "starting again in 2 s, 1 restart left after this one")

    def test_without_leave_all_hosts_start_again(self):
        job = self.lose_the_second("--restarts", 1)
        self.assertRegex(job.out, r"rank 0 of 2 begins behind step [1-9]")
        self.assertEqual(digest(job), self.undisturbed())


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main()
