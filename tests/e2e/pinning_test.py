# SPDX-License-Identifier: Apache-2.0
"""What ranks of one host may run on: cores of their own under every launcher, unless it has bound them
itself or the user says otherwise; and the same bits whatever they are given.

Arguments: the build tree.
"""
import os
import sys
import unittest

from launchers_test import ENVIRONMENT, GPT, MPIRUN, digest, has_mpi, run
from launchers_test import orrery as command
from program import HERE, SETTINGS, Job, orrery, session_members

ALLOWED = os.sched_getaffinity(0)
del SETTINGS["ORRERY_PIN"]


class Pinning(unittest.TestCase):
    def masks(self, *words, launcher=(), limit=None, ranks=2, **variables):
        """What every rank of a job that is under way may run on, in order."""
        job = Job("run", *words, "forever.lua", cwd=HERE / "bad", launcher=launcher, limit=limit,
                  **ENVIRONMENT, **variables)
        try:
            self.assertEqual(job.process.stdout.readline(), "under way\n", job.process.stderr)
            found = {}
            for pid in session_members(job.process.pid):
                with open(f"/proc/{pid}/environ", "rb") as file:
                    own = dict(v.split(b"=", 1) for v in file.read().split(b"\0") if b"=" in v)
                rank = own.get(b"ORRERY_RANK", own.get(b"OMPI_COMM_WORLD_RANK"))
                guards = b"OMPI_COMM_WORLD_RANK" in own and b"ORRERY_GUARDED" not in own
                if rank and not guards and os.readlink(f"/proc/{pid}/exe").endswith("/orrery"):
                    found[int(rank)] = os.sched_getaffinity(pid)
        finally:
            job.end()
        self.assertEqual(len(found), ranks)
        return [found[r] for r in sorted(found)]

    def setUp(self):
        if len(ALLOWED) < 2:
            self.skipTest("needs 2 CPUs")

    def check_apart(self, masks):
        self.assertEqual(masks[0] & masks[1], set())
        self.assertEqual(masks[0] | masks[1], ALLOWED)

    def test_own_launcher(self):
        self.check_apart(self.masks("-n", 2, "--threads", 1))
        self.check_apart(self.masks("-n", 2, "--threads", 1, "--pin", "cores"))
        self.assertEqual(self.masks("-n", 2, "--threads", 1, "--pin", "none"), [ALLOWED] * 2)
        self.assertEqual(self.masks("-n", 2, "--threads", 1, ORRERY_PIN="none"), [ALLOWED] * 2)

    def test_only_what_the_launcher_may_use(self):
        one = {min(ALLOWED)}
        crowd = self.masks("-n", 2, "--threads", 1, limit=lambda: os.sched_setaffinity(0, one))
        self.assertEqual(crowd, [one] * 2)

    def test_open_mpi(self):
        if not has_mpi(MPIRUN, "openmpi"):
            self.skipTest("Open MPI is not installed")
        launcher = [*MPIRUN, "-n", 2]
        self.check_apart(self.masks("--threads", 1, launcher=launcher))
        self.assertEqual(self.masks("--threads", 1, "--pin", "none", launcher=launcher), [ALLOWED] * 2)
        # Bound by its launcher, both to the same: that is respected.
        last = max(ALLOWED)
        bound = [MPIRUN[0], "--oversubscribe", "--cpu-set", str(last), "--bind-to",
                 "core:overload-allowed", "-n", 2]
        self.assertEqual(self.masks("--threads", 1, launcher=bound), [{last}] * 2)

    def test_more_ranks_than_cpus(self):
        ranks = len(ALLOWED) + 1
        self.assertEqual(self.masks("-n", ranks, "--threads", 1, ranks=ranks), [ALLOWED] * ranks)
        done = orrery("run", "-n", ranks, "--pin", "cores", "forever.lua", cwd=HERE / "bad")
        self.assertEqual(done.code, 2, done.err)
        self.assertIn(f"--pin cores: {ranks} ranks of this host cannot share {len(ALLOWED)} CPUs evenly", done.err)

    def test_twice_as_many_ranks_as_cpus(self):
        ranks = 2 * len(ALLOWED)
        masks = self.masks("-n", ranks, "--threads", 1, ranks=ranks)
        self.assertEqual(masks[::2], masks[1::2])  # neighbours share
        self.assertEqual(sorted(masks[::2], key=min), [{cpu} for cpu in sorted(ALLOWED)])

    def test_words_that_are_no_choice(self):
        done = orrery("run", "--pin", "sockets", "forever.lua", cwd=HERE / "bad")
        self.assertEqual(done.code, 2)
        self.assertIn("sockets not in {cores,none}", done.err)

    def test_the_bits_do_not_depend_on_it(self):
        script = GPT[2:]
        expected = digest(run(command("--threads", "1", *script)))
        for words in (["-n", 2], ["-n", 2, "--pin", "none"], ["-n", 2, "--pin", "none", "--threads", 3]):
            self.assertEqual(digest(run(command(*words, *script))), expected, words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
