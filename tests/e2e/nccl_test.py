# SPDX-License-Identifier: Apache-2.0
"""Comm `nccl` as a user meets it: without a driver, with the real library and no GPU, and over the fake.

What runs over the fake proves the plugin, not NCCL. Arguments: the build tree.
"""
import contextlib
import ctypes
import os
import pathlib
import re
import signal
import unittest

from program import BUILD, Job, orrery, session_members

PLUGIN = BUILD / "plugins/comm/nccl/orrery-comm-nccl.so"
FAKE = BUILD / "tests/comm/fake_nccl/libfake_nccl.so"
GPT = ["--threads", "1", "examples/gpt.lua", "data=examples/gpt.lua", "dim=32", "layers=2", "heads=2",
       "ctx=16", "batch=12", "microbatches=12", "steps=5", "dropout=0.1", "clip=1", "eval=0", "sample=0"]
STAGES = ["--threads", "1", "examples/pipeline.lua", "data=examples/gpt.lua", "steps=3"]


def fake(**variables):
    return {"ORRERY_CUDA_LIBRARY": str(FAKE), "ORRERY_NCCL_LIBRARY": str(FAKE), **variables}


def run(ranks, *words, comm="nccl", **variables):
    return orrery("run", "-n", ranks, "--comm", comm, *words, **variables)


def digest(done):
    found = re.findall(r"^digest ([0-9a-f]{32})$", done.out, re.MULTILINE)
    if done.code != 0 or len(found) != 1:
        raise AssertionError(f"exit code {done.code}, {len(found)} digests:\n{done.out}{done.err}")
    return found[0]


def process_of(job, rank):
    wanted = f"ORRERY_RANK={rank}".encode()
    for pid in session_members(job.process.pid):
        with contextlib.suppress(OSError):  # it has ended
            if wanted in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return pid
    raise AssertionError(f"no process of rank {rank}")


def loads(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


@unittest.skipUnless(PLUGIN.exists(), "no CUDA toolkit with NCCL was found: the plugin is not built")
class Unavailable(unittest.TestCase):
    def check(self, reason, **variables):
        listed = orrery("plugins", **variables)
        self.assertRegex(listed.out, rf"comm +nccl .* off .*\n +{re.escape(reason)}")
        done = run(2, *GPT, **variables)
        self.assertEqual(done.code, 69, done.err)
        self.assertIn(f"comm 'nccl' does not work here: {reason}", done.err)

    @unittest.skipIf(loads("libcuda.so.1"), "there is a driver")
    def test_without_a_driver(self):
        self.check("no NVIDIA driver here (libcuda.so.1 was not found)")

    def test_without_the_library(self):
        self.check("ORRERY_NCCL_LIBRARY names a library that cannot be loaded: /nowhere/libnccl.so.2",
                   **fake(ORRERY_NCCL_LIBRARY="/nowhere/libnccl.so.2"))

    def test_a_library_that_is_too_old(self):
        self.check("NCCL 2.14.5 is too old: this plugin needs 2.18.0", **fake(FAKE_NCCL_VERSION="21405"))

    def test_without_a_gpu(self):
        self.check("the NVIDIA driver shows no GPU: see CUDA_VISIBLE_DEVICES", **fake(FAKE_NCCL_GPUS="0"))

    def test_more_ranks_than_gpus(self):
        done = run(3, *GPT, **fake(FAKE_NCCL_GPUS="2"))
        self.assertEqual(done.code, 69, done.err)
        self.assertIn("ranks 0 and 2 have the same GPU, and NCCL takes one rank per GPU: start at most 2 ranks",
                      done.err)

    # The real library, asked to form a communicator on a machine without a driver.
    @unittest.skipIf(loads("libcuda.so.1"), "there is a driver")
    def test_the_real_library_fails_in_one_line(self):
        real = loads("libnccl.so.2")
        if not real:
            self.skipTest("libnccl.so.2 is not installed")
        code = ctypes.c_int()
        self.assertEqual(real.ncclGetVersion(ctypes.byref(code)), 0)
        version = f"{code.value // 10000}.{code.value // 100 % 100}.{code.value % 100}"
        done = run(2, *GPT, **fake(ORRERY_NCCL_LIBRARY="libnccl.so.2"))
        self.assertEqual(done.code, 1, done.err)
        lines = [line for line in done.err.splitlines() if "ncclCommInitRankConfig" in line and "rank" not in line]
        self.assertEqual(len(lines), 1, done.err)
        self.assertIn(f"ncclCommInitRankConfig: NCCL {version}: unhandled cuda error", lines[0])


@unittest.skipUnless(FAKE.exists(), "no CUDA toolkit with NCCL was found: the fake is not built")
class OverTheFake(unittest.TestCase):
    def test_same_digest_as_local(self):
        expected = digest(orrery("run", *GPT))
        for ranks in (2, 3, 4):
            with self.subTest(ranks=ranks):
                self.assertEqual(digest(run(ranks, *GPT, comm="local")), expected)
                self.assertEqual(digest(run(ranks, *GPT, **fake())), expected)

    def test_ranks_may_share_a_gpu(self):
        expected = digest(run(3, *GPT, comm="local"))
        shared = fake(FAKE_NCCL_GPUS="1", ORRERY_NCCL_SHARE_GPU="1")
        self.assertEqual(digest(run(3, *GPT, **shared)), expected)
        named = {"NCCL_HOSTID": "this", "NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_DISABLE": "0"}
        for name, reason in zip(named, ("Duplicate GPU detected", "no socket interface but lo", "ibv_modify_qp failed")):
            with self.subTest(name=name):  # what a user has set stays
                done = run(2, *GPT, **shared, **{name: named[name]})
                self.assertEqual(done.code, 1, done.err)
                self.assertIn(reason, done.err)

    def test_sharing_is_on_or_off(self):
        self.assertEqual(run(2, *GPT, **fake(FAKE_NCCL_GPUS="1", ORRERY_NCCL_SHARE_GPU="0")).code, 69)
        done = run(2, *GPT, **fake(ORRERY_NCCL_SHARE_GPU="yes"))
        self.assertEqual(done.code, 1, done.err)
        self.assertIn("ORRERY_NCCL_SHARE_GPU is 'yes': 1 lets ranks share a GPU, for tests; 0 does not", done.err)

    def test_same_digest_in_stages(self):
        for schedule in ("1f1b", "zb1"):
            with self.subTest(schedule=schedule):
                words = [*STAGES, f"schedule={schedule}"]
                self.assertEqual(digest(run(3, *words, **fake())), digest(run(3, *words, comm="local")))

    def test_a_killed_rank_is_named(self):
        job = Job("run", "-n", 3, "--comm", "nccl", *GPT, "steps=100000", **fake())
        for line in job.process.stdout:
            if "step" in line:
                break
        os.kill(process_of(job, rank=1), signal.SIGKILL)
        job.finish(timeout=10)
        self.assertEqual(job.code, 128 + 9, job.err)
        self.assertEqual(len(re.findall("rank 1 died in", job.err)), 2, job.err)
        self.assertEqual(job.orphans(), [])
        self.assertEqual(list(pathlib.Path("/dev/shm").glob("fake-nccl-*")), [])

    # What NCCL reports after a call has returned reaches every rank, as one sentence.
    def test_an_asynchronous_error_is_told(self):
        done = run(3, *GPT, **fake(FAKE_NCCL_FAIL="1:20"))
        self.assertEqual(done.code, 1, done.err)
        words = "unhandled system error; the fake was told to fail in "
        self.assertGreaterEqual(done.err.count(words), 3, done.err)


if __name__ == "__main__":
    unittest.main(argv=["nccl_test"])
