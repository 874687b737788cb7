# SPDX-License-Identifier: Apache-2.0
"""MPI on two hosts, here network namespaces: the digest of one host, and ranks that are killed or frozen
before the world has formed, when MPI_Init itself would wait for them for ever.

Arguments: the build tree.
"""
import os
import signal
import sys
import threading
import unittest

from launchers_test import ENVIRONMENT, has_mpi
from program import BUILD, HERE, Job, orrery, wait_for
from two_hosts import GPT, NET, TAG, TwoHostsAlone, digest, end_all, ranks

DEADLINE = 2
AGENT = f"{sys.executable} {HERE / 'namespace_shell.py'} {TAG}"
ON_HOST = [*AGENT.split(), f"{NET}.1"]
OPEN_MPI = ["mpirun.openmpi", "--bind-to", "none", "--host", f"{NET}.1:2,{NET}.2:2", "-n", 4,
            "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", f"'{AGENT}'", "--mca", "oob_tcp_if_include", f"{NET}.0/24",
            "--mca", "btl_tcp_if_include", f"{NET}.0/24", "--mca", "btl", "self,vader,tcp", "--mca", "pml", "ob1"]
MPICH = ["mpiexec.mpich", "-hosts", f"{NET}.1:2,{NET}.2:2", "-n", 4, "-launcher", "ssh", "-launcher-exec",
         str(HERE / "namespace_ssh.sh"), "-iface", "v0", "-genv", "UCX_TLS", "tcp,self"]


def guarded(variable):
    """The ranks themselves, not the guards that the launcher has started."""
    return ranks(variable, beside=["ORRERY_GUARDED=1"])


class MpiHosts(TwoHostsAlone, unittest.TestCase):
    def start(self, launcher, *words, comm="mpi", **variables):
        kept = {k: v for k, v in ENVIRONMENT.items() if not k.startswith("OMPI_MCA")}
        job = Job("run", "--comm", comm, *words, launcher=[*ON_HOST, *launcher], cwd=HERE.parents[1],
                  ORRERY_TEST_TAG=TAG, ORRERY_TEST_PYTHON=sys.executable, **kept, **variables)
        # What the launcher has started on the hosts is in no session of the job's.
        for cleanup in (job.end, lambda: end_all(2), lambda: end_all(1)):
            self.addCleanup(cleanup)
        return job

    def finish(self, job, seconds=60):
        guard = threading.Timer(seconds, lambda: (end_all(1), end_all(2)))
        guard.start()
        self.addCleanup(guard.cancel)
        job.finish(seconds + 30)
        self.assertTrue(guard.is_alive(), f"no end within {seconds} s")
        guard.cancel()
        return job

    def each(self):
        for launcher, library, variable in ((OPEN_MPI, "openmpi", "OMPI_COMM_WORLD_RANK"), (MPICH, "mpich", "PMI_RANK")):
            if not has_mpi(launcher, library):
                self.skipTest(f"{library} is not installed")
            with self.subTest(library=library):
                yield launcher, variable

    # Without a place to meet and a token: the launcher's daemons carry where rank 0 listens, and the secret.
    def test_local_joins_ranks_that_meet_by_pmix(self):
        if not has_mpi(OPEN_MPI, "openmpi") or not (BUILD / "plugins/orrery-boot-pmix.so").exists():
            self.skipTest("Open MPI or PMIx is not installed")
        job = self.finish(self.start([*OPEN_MPI, "-x", "ORRERY_BOOT"], *GPT, comm="local", ORRERY_BOOT="pmix"))
        self.assertEqual(digest(job), digest(orrery("run", "-n", 4, *GPT)))

    def test_the_digest_of_one_host(self):
        expected = digest(orrery("run", "-n", 4, *GPT))
        for launcher, _ in self.each():
            # More than once: how connections end is a matter of luck.
            for _ in range(3):
                self.assertEqual(digest(self.finish(self.start(launcher, *GPT))), expected)

    def test_early_blows(self):
        for launcher, variable in self.each():
            for victim, blow in ((3, signal.SIGSTOP), (1, signal.SIGKILL), (2, signal.SIGSTOP), (0, signal.SIGKILL)):
                with self.subTest(victim=victim, blow=blow.name):
                    self.check_blow(launcher, variable, victim, blow)

    def check_blow(self, launcher, variable, victim, blow):
        job = self.start(launcher, "--threads", 1, "tests/e2e/bad/forever.lua", ORRERY_DEADLINE=str(DEADLINE))
        pid, _ = wait_for(lambda: guarded(variable).get(victim), 20)
        os.kill(pid, blow)
        # Three deadlines while nobody can ask the others (core/launch/forming.h), and what starting takes.
        wait_for(lambda: not set(guarded(variable)) - {victim}, 3 * DEADLINE + 10)
        end_all(1), end_all(2)
        self.finish(job)
        self.assertNotEqual(job.code, 0, job.err)
        self.assertNotIn("under way", job.out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
