# SPDX-License-Identifier: Apache-2.0
"""The same program and script under every launcher: one digest. And what a user sees when launcher and
library, or two launchers, do not fit.

Arguments: the build tree.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from program import SETTINGS, session_members

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
GPT = ["--threads", "1", "examples/gpt.lua", "data=examples/gpt.lua", "dim=32", "layers=2", "heads=2",
       "ctx=16", "batch=12", "microbatches=12", "steps=5", "dropout=0.1", "clip=1", "eval=0", "sample=0"]
MPIRUN = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]
MPIEXEC = ["mpiexec.mpich"]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_oob_tcp_if_include": "lo", "OMPI_MCA_btl": "self,vader",
               # No looking for PCI devices, OpenCL and displays: half of a start.
               "HWLOC_PLUGINS_PATH": "/nonexistent", "HWLOC_COMPONENTS": "-linuxio,-pci",
               "LSAN_OPTIONS": "detect_leaks=0"}  # an MPI library keeps memory when it ends


def start(command, **variables):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}
    return subprocess.Popen(list(map(str, command)), cwd=SOURCE, env=kept | SETTINGS | ENVIRONMENT | variables,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, start_new_session=True)


def run(command, **variables):
    process = start(command, **variables)
    process.out, process.err = process.communicate(timeout=120)
    return process


def end_session(session):
    for pid in session_members(session):
        with contextlib.suppress(ProcessLookupError):  # ended with another one
            os.kill(pid, signal.SIGKILL)


def orrery(*words):
    return [BUILD / "orrery", "run", *words]


def digest(done):
    found = re.findall(r"^digest ([0-9a-f]{32})$", done.out, re.MULTILINE)
    if done.returncode != 0 or len(found) != 1:
        raise AssertionError(f"exit code {done.returncode}, {len(found)} digests:\n{done.out}{done.err}")
    return found[0]


def has_mpi(launcher, library):
    return shutil.which(launcher[0]) and (BUILD / f"plugins/orrery-comm-mpi-{library}.so").exists()


class Launchers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.expected = digest(run(orrery(*GPT)))

    def check_mpi(self, launcher, library):
        if not has_mpi(launcher, library):
            self.skipTest(f"{launcher[0]} or its library is not installed")
        for ranks in (3, 4):
            for backend in ("mpi", "local"):
                with self.subTest(ranks=ranks, backend=backend):
                    done = run([*launcher, "-n", ranks, *orrery("--comm", backend, *GPT)])
                    self.assertEqual(digest(done), self.expected)

    def test_own_launcher(self):
        for ranks in (3, 4):
            done = run(orrery("-n", ranks, "--comm", "local", *GPT))
            self.assertEqual(digest(done), self.expected)

    def test_open_mpi(self):
        self.check_mpi(MPIRUN, "openmpi")

    def test_mpich(self):
        self.check_mpi(MPIEXEC, "mpich")

    # mpirun of Open MPI ends with 1 when it is told to end, whatever its ranks say.
    def test_a_stop_by_mpis_launchers_is_saved(self):
        for launcher, library, number, code in (
                (MPIEXEC, "mpich", signal.SIGTERM, 75), (MPIEXEC, "mpich", signal.SIGUSR1, 75),
                (MPIRUN, "openmpi", signal.SIGTERM, 1), (MPIRUN, "openmpi", signal.SIGUSR1, 75)):
            with self.subTest(library=library, number=number.name), tempfile.TemporaryDirectory() as folder:
                if not has_mpi(launcher, library):
                    self.skipTest(f"{library} is not installed")
                process = start([*launcher, "-n", 3, *orrery("--comm", "mpi", "--threads", "1", "--dir", folder,
                                 "tests/e2e/bad/stoppable.lua", "steps=1000000000")])
                try:
                    self.assertEqual(process.stdout.readline(), "under way\n")
                    process.send_signal(number)
                    _, err = process.communicate(timeout=60)
                finally:
                    end_session(process.pid)
                # MPICH's has said 0 once in 90 stops, of ranks that had said that they stopped and saved.
                said = [code, 0] if library == "mpich" else [code]
                self.assertIn(process.returncode, said, err)
                self.assertIn(f'run:load "{folder}/checkpoint" continues from there', err)
                self.assertTrue((pathlib.Path(folder) / "checkpoint/checkpoint.json").exists())

    # Raw collectives, too, fold in one order whoever carries the bytes.
    def test_horovods_words(self):
        script = ["--threads", "1", "examples/horovod.lua", "steps=25"]
        expected = digest(run(orrery("-n", 3, *script)))
        for launcher, library in ((MPIRUN, "openmpi"), (MPIEXEC, "mpich")):
            with self.subTest(library=library):
                if not has_mpi(launcher, library):
                    self.skipTest(f"{library} is not installed")
                self.assertEqual(digest(run([*launcher, "-n", 3, *orrery("--comm", "mpi", *script)])), expected)

    def test_mpich_with_a_shell_between(self):
        if not shutil.which(MPIEXEC[0]):
            self.skipTest("mpiexec.mpich is not installed")
        words = " ".join(map(str, orrery(*GPT)))
        done = run([*MPIEXEC, "-n", 3, "bash", "-c", f"{words}; exit $?"])
        self.assertEqual(digest(done), self.expected)

    # Ranks with these options of `orrery run`, as torchrun starts them.
    def by_torchrun(self, options):
        ranks = [start(orrery(*options[r], *GPT), RANK=str(r), WORLD_SIZE=str(len(options)), LOCAL_RANK=str(r),
                       LOCAL_WORLD_SIZE=str(len(options)), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(os.getpid()))
                 for r in range(len(options))]
        for process in ranks:
            process.out, process.err = process.communicate(timeout=120)
        return ranks

    def test_torchrun_variables(self):
        ranks = self.by_torchrun([[], [], []])
        self.assertEqual(digest(ranks[0]), self.expected)
        self.assertEqual([p.returncode for p in ranks], [0, 0, 0])

    # A host may have another kernel plugin: its ranks' parameters would drift away from the others'.
    def test_ranks_with_other_kernels_are_refused(self):
        for process in self.by_torchrun([["--kernels", "cpu"], ["--kernels", "cpu"], ["--kernels", "reference"]]):
            self.assertEqual(process.returncode, 1, process.err)
            self.assertRegex(process.err, r"gpt.lua:\d+: rank 0 computes \w+ by cpu \(.+\), rank 2 \w+ by reference "
                                          r"\(.+\): .*--kernels")

    # What a rank sees that is alone on its host: MPI forms the world without our store, `local` has to be
    # told where.
    def test_ranks_on_several_hosts(self):
        if not has_mpi(MPIRUN, "openmpi"):
            self.skipTest("Open MPI is not installed")
        alone = [*MPIRUN, "-n", 3, "env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "OMPI_COMM_WORLD_LOCAL_RANK=0"]
        self.assertEqual(digest(run([*alone, *orrery("--comm", "mpi", *GPT)])), self.expected)
        done = run([*alone, *orrery("--comm", "local", *GPT)])
        self.assertEqual(done.returncode, 69, done.err)
        self.assertIn("Open MPI has put 1 of 3 ranks on this host, and nothing says where they meet", done.err)
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + os.getpid() % 12000),
                   "ORRERY_TOKEN": "of this test"}
        done = run([*alone, *orrery("--comm", "local", *GPT)], **meeting, ORRERY_TEST_HOSTS="abc")
        self.assertEqual(digest(done), self.expected)

    def test_mpi_without_its_launcher_is_refused(self):
        if not has_mpi(MPIRUN, "openmpi"):
            self.skipTest("Open MPI is not installed")
        done = run(orrery("-n", 2, "--comm", "mpi", *GPT))
        self.assertEqual(done.returncode, 69, done.err)
        self.assertIn("the ranks were started without MPI (ORRERY_RANK is set): start them with mpirun",
                      done.err)

    def test_the_wrong_library_is_refused(self):
        if not (has_mpi(MPIRUN, "openmpi") and has_mpi(MPIEXEC, "mpich")):
            self.skipTest("both MPIs are needed")
        for launcher, other, words in (
                (MPIEXEC, "openmpi", "the launcher is MPICH's and this build speaks Open MPI"),
                (MPIRUN, "mpich", "the launcher is Open MPI's and this build speaks MPICH")):
            with self.subTest(launcher=launcher[0]), tempfile.TemporaryDirectory() as folder:
                shutil.copy(BUILD / f"plugins/orrery-comm-mpi-{other}.so", folder)
                done = run([*launcher, "-n", 2, *orrery("--comm", "mpi", *GPT)], ORRERY_PLUGIN_PATH=folder)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(words, done.err + done.out)

    def test_two_launchers_that_disagree_are_both_named(self):
        done = run(orrery(*GPT), RANK="0", WORLD_SIZE="2", PMI_RANK="0", PMI_SIZE="4")
        self.assertEqual(done.returncode, 2, done.err)
        self.assertIn("RANK=0 of WORLD_SIZE=2 (torchrun), but PMI_RANK=0 of PMI_SIZE=4 (hydra)", done.err)

    # Rank 0 alone waits for its peer; all that it listens at is a name without a file.
    def test_nothing_listens_on_a_network(self):
        process = start(orrery(*GPT), RANK="0", WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", ORRERY_DEADLINE="20",
                        MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
        place = f"@orrery-{os.geteuid()}-torchrun-127.0.0.1-1"
        until = time.monotonic() + 10
        while place not in pathlib.Path("/proc/net/unix").read_text() and time.monotonic() < until:
            time.sleep(0.01)
        self.assertIn(place, pathlib.Path("/proc/net/unix").read_text())
        held = {os.readlink(p) for p in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()}
        for table in ("tcp", "tcp6", "udp", "udp6"):
            rows = pathlib.Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]
            self.assertEqual([r for r in rows if f"socket:[{r.split()[9]}]" in held], [])
        process.kill()
        process.communicate(timeout=20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
