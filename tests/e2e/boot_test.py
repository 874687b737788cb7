# SPDX-License-Identifier: Apache-2.0
"""Ranks that a boot plugin brings together, which no line of the program names: in a directory, started by this test
as a user's shell loop would, and over the PMIx of a launcher. One digest; who dies, freezes or belongs to another job
is named.

Arguments: the build tree.
"""
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import unittest

from launchers_test import ENVIRONMENT, GPT, MPIRUN, digest, run
from program import BUILD, HERE, Job, orrery, wait_for

PLUGIN = BUILD / "tests/e2e/boot"
PMIX = BUILD / "plugins/orrery-boot-pmix.so"
# Each rank on a host of its own, as far as the plugin knows.
APART = {"DIRBOOT_LOCAL_RANK": "0", "DIRBOOT_LOCAL_SIZE": "1"}
STOPPABLE = ["run", "--threads", "1", HERE / "bad/stoppable.lua", "steps=1000000000"]
TRAIN = ["run", *GPT]


def variables(rank, size, folder):
    return {"DIRBOOT_DIR": str(folder), "DIRBOOT_RANK": str(rank), "DIRBOOT_SIZE": str(size)}


class Directory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def rank(self, rank, size, words, deadline=20, **more):
        job = Job(*words, ORRERY_PLUGIN_PATH=str(PLUGIN), ORRERY_DEADLINE=str(deadline),
                  **variables(rank, size, self.folder) | more)
        self.addCleanup(job.end)
        return job

    def ranks(self, size, words, deadline=20, **more):
        return [self.rank(r, size, words, deadline, **more) for r in range(size)]

    def under_way(self, size, deadline, **more):
        jobs = self.ranks(size, STOPPABLE, deadline, **more)
        self.assertEqual(jobs[0].process.stdout.readline(), "under way\n")
        return jobs

    def trained(self, jobs):
        for job in jobs:
            job.finish(60)
            self.assertEqual(job.code, 0, job.err)
        return [line for line in jobs[0].out.splitlines() if line.startswith("digest ")]

    def test_the_digest_of_one_process(self):
        expected = [line for line in orrery(*TRAIN).out.splitlines() if line.startswith("digest ")]
        self.assertEqual(len(expected), 1)
        for size, where in ((3, {}), (2, APART | {"ORRERY_TEST_HOSTS": "ab"}),
                            (3, APART | {"MASTER_ADDR": "127.0.0.1"})):
            with self.subTest(size=size, where=where):
                jobs = self.ranks(size, TRAIN, **where)
                self.assertEqual(self.trained(jobs), expected)
                # Rank 0 speaks for all.
                self.assertEqual([job.out for job in jobs[1:]], [""] * (size - 1))
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_killed_rank_is_named(self):
        for where in ({}, APART):
            with self.subTest(where=where):
                jobs = self.under_way(3, deadline=20, **where)
                jobs[1].process.kill()
                for r in (0, 2):
                    jobs[r].finish(15)  # before the deadline
                    self.assertEqual(jobs[r].code, 75, jobs[r].err)
                    self.assertRegex(jobs[r].err, "error: .*rank 1 died")

    def test_a_frozen_rank_is_named(self):
        jobs = self.under_way(3, deadline=4)
        jobs[1].process.send_signal(signal.SIGSTOP)
        for r in (0, 2):
            jobs[r].finish(30)
            self.assertEqual(jobs[r].code, 124, jobs[r].err)
            self.assertRegex(jobs[r].err, "error: .*rank 1 has not answered for 4 s")

    def test_rank_0_that_does_not_come_is_named(self):
        job = self.rank(1, 2, TRAIN, deadline=0.5).finish()
        self.assertEqual(job.code, 124, job.err)
        self.assertIn("rank 1 of 2 (boot plugin 'directory') waits for rank 0", job.err)

    def test_what_a_killed_job_has_left_is_no_place_to_meet(self):
        for job in (jobs := self.under_way(2, deadline=20, **APART)):
            job.process.kill()
        for job in jobs:
            job.finish()
        self.assertTrue((self.folder / "0.meeting").exists())
        one = self.rank(1, 2, TRAIN, **APART)
        with self.assertRaises(AssertionError):  # it waits, and neither fails nor trains
            wait_for(lambda: one.process.poll() is not None, 1)
        self.assertEqual(len(self.trained([self.rank(0, 2, TRAIN, **APART), one])), 1)

    def test_a_second_job_in_the_directory_is_refused(self):
        first = self.rank(0, 2, TRAIN)
        wait_for((self.folder / "0.meeting").exists, 20)
        second = self.rank(0, 2, TRAIN).finish()
        self.assertEqual(second.code, 69, second.err)
        self.assertIn("0.meeting: it belongs to another job that runs: give this one a DIRBOOT_DIR", second.err)
        self.assertEqual(len(self.trained([first, self.rank(1, 2, TRAIN)])), 1)

    def test_ranks_of_other_numbers_are_told(self):
        zero = self.rank(0, 2, TRAIN, deadline=3)
        other = self.rank(1, 3, TRAIN, deadline=3).finish()
        self.assertEqual(other.code, 1, other.err)
        self.assertIn("rank 0 is one of 2 ranks and rank 1 one of 3", other.err)
        self.assertNotEqual(zero.finish().code, 0)

    def refused(self, code, words, **given):
        job = orrery("run", *GPT, ORRERY_PLUGIN_PATH=str(PLUGIN), **given)
        self.assertEqual(job.code, code, job.err)
        self.assertEqual(job.err.count("error: "), 1, job.err)
        self.assertIn(words, job.err)

    def test_names_and_variables_that_cannot_be(self):
        self.refused(2, "ORRERY_BOOT=directry: no plugin provides boot 'directry' (did you mean 'directory'?)",
                     ORRERY_BOOT="directry")
        self.refused(69, "ORRERY_BOOT=directory: boot plugin 'directory' has not started this process (DIRBOOT_DIR and "
                     "DIRBOOT_RANK are not set): start it so, or unset ORRERY_BOOT", ORRERY_BOOT="directory")
        self.refused(2, "DIRBOOT_SIZE: set it to a number", DIRBOOT_DIR="/tmp", DIRBOOT_RANK="0")
        self.refused(2, "boot plugin 'directory' says that this is rank 2 of 2", **variables(2, 2, self.folder))
        self.refused(2, "two launchers disagree: this is rank 0 of 2 (torchrun), but rank 1 of 2 (boot plugin "
                     "'directory')",
                     **variables(1, 2, self.folder), ORRERY_BOOT="directory", RANK="0", WORLD_SIZE="2")

    # One that is installed, and has not started the process, is silent.
    def test_a_plugin_that_has_not_started_it_takes_no_part(self):
        job = orrery("run", *GPT, ORRERY_PLUGIN_PATH=str(PLUGIN))
        self.assertEqual((job.code, job.err.count("warning"), job.err.count("boot")), (0, 0, 0), job.err)

    # A launcher that is known comes first, unless the plugin is named.
    def test_a_known_launcher_comes_first(self):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(os.getpid())}
        jobs = [self.rank(r, 7, TRAIN, RANK=str(r), WORLD_SIZE="2", **place) for r in range(2)]
        self.assertEqual(len(self.trained(jobs)), 1)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_it_is_said_who_brings_ranks_together(self):
        given = {"ORRERY_PLUGIN_PATH": str(PLUGIN)} | variables(1, 4, self.folder)
        plugins = json.loads(orrery("plugins", "--json", **given).out)
        [found] = [p for p in plugins if p["name"] == "directory"]
        self.assertEqual((found["kind"], found["reason"]), ("boot", ""))
        self.assertRegex(orrery("doctor", **given).out,
                         "launched by +boot plugin 'directory', as rank 1 of 4; ranks meet by 'directory'\n")
        torchrun = given | {"RANK": "1", "WORLD_SIZE": "4", "ORRERY_BOOT": "directory"}
        self.assertRegex(orrery("doctor", **torchrun).out,
                         "launched by +torchrun, as rank 1 of 4; ranks meet by 'directory'\n")


class Pmix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not PMIX.exists() or not shutil.which(MPIRUN[0]):
            raise unittest.SkipTest("the plugin pmix is not built, or Open MPI is not installed")
        cls.expected = digest(run([BUILD / "orrery", "run", *GPT]))

    def start(self, *command, **more):
        return run([*MPIRUN, "-n", 3, "env", *command, BUILD / "orrery", "run", "--comm", "local", *GPT], **more)

    # As on three hosts, to which nothing says where they meet.
    def test_ranks_of_mpirun_on_several_hosts(self):
        alone = ["OMPI_COMM_WORLD_LOCAL_SIZE=1", "OMPI_COMM_WORLD_LOCAL_RANK=0"]
        done = self.start(*alone)
        self.assertEqual(done.returncode, 69, done.err)
        self.assertIn("set ORRERY_BOOT to a plugin by which they meet (found: pmix)", done.err)
        self.assertEqual(digest(self.start(*alone, ORRERY_BOOT="pmix", ORRERY_TEST_HOSTS="abc")), self.expected)

    # A launcher that sets no variables but those of PMIx.
    def test_a_launcher_that_nobody_knows(self):
        without = [f"--unset=OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")]
        self.assertEqual(digest(self.start(*without)), self.expected)

    # The launcher would call a rank crashed that ends without a word to its daemon.
    def test_ranks_that_do_not_meet_end_well(self):
        done = run([*MPIRUN, "-n", 2, BUILD / "orrery", "run", "examples/mlp.lua", "--help"], ORRERY_BOOT="pmix")
        self.assertEqual((done.returncode, done.err), (0, ""))

    # Its library is then in use twice, by the plugin and by MPI.
    def test_beside_mpi(self):
        done = run([*MPIRUN, "-n", 3, BUILD / "orrery", "run", "--comm", "mpi", *GPT], ORRERY_BOOT="pmix")
        self.assertEqual(digest(done), self.expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
