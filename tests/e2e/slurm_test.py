# SPDX-License-Identifier: Apache-2.0
"""Under a real Slurm: srun starts the ranks, which find each other and train to the digest of one
process, over shared memory and over MPI.

Arguments: the build tree.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from program import SETTINGS

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
BOX = pathlib.Path(__file__).resolve().parent / "slurm_box.sh"
GPT = [BUILD / "orrery", "run", "--threads", "1", "examples/gpt.lua", "data=examples/gpt.lua", "dim=32",
       "layers=1", "heads=2", "ctx=16", "batch=12", "microbatches=12", "steps=5", "eval=0", "sample=0"]


def run(*command):
    """What has ended within two minutes, or the box is closed with all that is in it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ORRERY_", "SLURM_"))}
    process = subprocess.Popen(list(map(str, command)), cwd=SOURCE, env=kept | SETTINGS, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def digest(done):
    found = re.findall(r"^digest ([0-9a-f]{32})$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or len(found) != 1:
        raise AssertionError(f"exit code {done.returncode}, {len(found)} digests:\n{done.stdout}{done.stderr}")
    return found[0]


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [p for p in ("srun", "slurmctld", "slurmd", "munged", "unshare", "ip") if not shutil.which(p)]
        if missing:
            raise unittest.SkipTest(f"not installed: {', '.join(missing)}")
        if os.geteuid() != 0:
            raise unittest.SkipTest("starting a Slurm needs root")
        up = run(BOX, "true")
        if up.returncode != 0:
            raise unittest.SkipTest(f"Slurm does not start here: {up.stderr[-300:]}")
        cls.expected = digest(run(*GPT))

    def test_shared_memory(self):
        self.assertEqual(digest(run(BOX, "srun", "-n", 4, *GPT)), self.expected)

    def test_mpi(self):
        for interface, library in (("pmix", "openmpi"), ("pmi2", "mpich")):
            with self.subTest(interface=interface):
                if not (BUILD / f"plugins/orrery-comm-mpi-{library}.so").exists():
                    self.skipTest(f"{library} is not installed")
                done = run(BOX, "srun", f"--mpi={interface}", "-n", 4, *GPT, "--comm", "mpi")
                self.assertEqual(digest(done), self.expected)

    # Each with its own network and shared memory: Slurm's daemons carry where rank 0 listens, and the secret.
    def test_two_hosts_that_meet_by_pmix(self):
        if not (BUILD / "plugins/orrery-boot-pmix.so").exists():
            self.skipTest("the plugin pmix is not built")
        step = ["srun", "--mpi=pmix", "--kill-on-bad-exit", "-N", 2, "-n", 4, "--ntasks-per-node=2", *GPT,
                "--comm", "local"]
        without = run("env", "SLURM_BOX_HOSTS=2", BOX, *step)
        self.assertEqual(without.returncode, 69, without.stderr)
        self.assertIn("they share no secret to know each other by", without.stderr)
        done = run("env", "SLURM_BOX_HOSTS=2", BOX, "env", "ORRERY_BOOT=pmix", *step)
        self.assertEqual(digest(done), self.expected)

    # Slurm puts the variables of a step into a batch's own shell, which is no rank.
    def test_a_job_script_is_one_process(self):
        self.assertEqual(digest(run(BOX, "salloc", "-n", 4, *GPT)), self.expected)

    def test_a_cancelled_job_leaves_a_checkpoint(self):
        program = " ".join(map(str, [BUILD / "orrery", "run", "--threads", "1", "--dir"]))
        for how in ("scancel", "scancel --signal=USR1"):
            with self.subTest(how=how), tempfile.TemporaryDirectory() as folder:
                script = f"""srun -n 2 {program} {folder} tests/e2e/bad/stoppable.lua steps=1000000000 \
                    > {folder}/out & step=$!
                    for _ in {{1..400}}; do grep -q 'under way' {folder}/out && break; sleep 0.05; done
                    {how} $(squeue -h -o %i); wait $step"""
                done = run(BOX, "bash", "-c", script)
                self.assertEqual(done.returncode, 75, done.stderr)
                self.assertIn(f'run:load "{folder}/checkpoint" continues from there', done.stderr)
                self.assertTrue((pathlib.Path(folder) / "checkpoint").is_dir())

    # Slurm signals all processes of a batch script, or, with --batch, its shell alone.
    def test_a_cancelled_batch_leaves_a_checkpoint(self):
        program = " ".join(map(str, [BUILD / "orrery", "run", "-n 3", "--threads", "1", "--dir"]))
        for before, after, how in (("trap : TERM;", "echo code $?", "scancel"), ("", "", "scancel"),
                                   ("exec", "", "scancel --batch --signal=TERM")):
            with self.subTest(before=before, how=how), tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "batch").write_text(
                    f"#!/bin/bash\n{before} {program} {folder} {SOURCE}/tests/e2e/bad/stoppable.lua steps=1000000000\n"
                    f"{after}\n")
                script = f"""job=$(sbatch --parsable -n 3 -o {folder}/out {folder}/batch)
                    for _ in {{1..400}}; do grep -q 'under way' {folder}/out && break; sleep 0.05; done
                    {how} $job
                    for _ in {{1..400}}; do grep -q '^orrery: rank' {folder}/out && break; sleep 0.05; done"""
                done = run(BOX, "bash", "-c", script)
                out = (pathlib.Path(folder) / "out").read_text()
                self.assertIn(f'run:load "{folder}/checkpoint" continues from there', out, done.stderr)
                self.assertRegex(out, r"orrery: rank \d failed with exit code 75")
                self.assertTrue((pathlib.Path(folder) / "checkpoint/checkpoint.json").exists())
                if after:
                    self.assertIn("code 75", out)

    def test_a_failing_rank_ends_the_step(self):
        done = run(BOX, "srun", "--kill-on-bad-exit", "-n", 3, BUILD / "orrery", "run", "no-such-script.lua")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no-such-script.lua", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
