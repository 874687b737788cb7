# SPDX-License-Identifier: Apache-2.0
"""Two hosts, here network namespaces joined by a cable, and what `orrery run --hosts` does on them however
it reaches them.
"""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from program import HERE, Job, orrery, under_way

DEADLINE = 2
TAG = f"orr{os.getpid()}h"
NET = "10.77.0"
GPT = ["--threads", 1, "examples/gpt.lua", "data=examples/gpt.lua", "dim=32", "layers=2", "heads=2", "ctx=16",
       "batch=12", "microbatches=12", "steps=5", "dropout=0.1", "clip=1", "eval=0", "sample=0"]


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], capture_output=True, text=True, check=True).stdout


def in_namespace(n):
    return [int(p) for p in ip("netns", "pids", f"{TAG}{n}").split()]


def end_all(n):
    for pid in in_namespace(n):
        with contextlib.suppress(ProcessLookupError):  # ended with another one
            os.kill(pid, signal.SIGKILL)


def ranks(variable="ORRERY_RANK", beside=()):
    """Process ids by rank, of all in the namespaces whose environment has the rank by this name, and `beside`."""
    found = {}
    for pid in in_namespace(1) + in_namespace(2):
        try:
            variables = pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0")
        except OSError:
            continue
        if set(beside) <= set(variables):
            found |= {int(v.partition("=")[2]): pid for v in variables if v.startswith(f"{variable}=")}
    return found


def listeners(pid):
    """Where anything but ssh listens in the process's network: address and port, in the kernel's words."""
    places = []
    for table in ("tcp", "tcp6"):
        rows = pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        places += [row.split()[1] for row in rows if row.split()[3] == "0A"]
    return [place for place in places if not place.endswith(f":{22:04X}")]


def digest(job):
    found = re.findall(r"^digest ([0-9a-f]{32})$", job.out, re.MULTILINE)
    if job.code != 0 or len(found) != 1:
        raise AssertionError(f"exit code {job.code}, {len(found)} digests:\n{job.out}{job.err}")
    return found[0]


class TwoHostsAlone:
    """For a test case: the two hosts, from its first test to its last."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.cut)
        try:
            for n in (1, 2):
                ip("netns", "add", f"{TAG}{n}")
            ip("link", "add", "v0", "netns", f"{TAG}1", "type", "veth", "peer", "name", "v0", "netns", f"{TAG}2")
            for n in (1, 2):
                # No IPv6, whose own address is of no use for a second: MPICH takes it and fails.
                ip("-n", f"{TAG}{n}", "link", "set", "v0", "addrgenmode", "none")
                ip("-n", f"{TAG}{n}", "addr", "add", f"{NET}.{n}/24", "dev", "v0")
                ip("-n", f"{TAG}{n}", "link", "set", "lo", "up")
                ip("-n", f"{TAG}{n}", "link", "set", "v0", "up")
        except (OSError, subprocess.CalledProcessError) as e:
            raise unittest.SkipTest(f"no network namespaces here: {getattr(e, 'stderr', e)}")

    @classmethod
    def cut(cls):
        for n in (1, 2):
            if not os.path.exists(f"/run/netns/{TAG}{n}"):
                continue
            end_all(n)
            ip("netns", "del", f"{TAG}{n}")


class TwoHosts(TwoHostsAlone):
    """For a test case that says how it reaches the hosts."""
    shell = ""        # --remote-shell
    launcher = ()     # in front of the program
    daemons = ()      # their process ids, which stay when a job has ended

    def on_hosts(self, slots, *words, **options):
        path = pathlib.Path(self.folder.name) / f"hosts-{len(os.listdir(self.folder.name))}"
        path.write_text("# two hosts\n" + "".join(f"{NET}.{n} slots={s}\n" for n, s in slots.items()))
        job = Job("run", "--hosts", path, "--remote-shell", self.shell, *words, launcher=self.launcher,
                  **options)
        self.addCleanup(job.end)
        return job

    def start(self):
        return self.forever({1: 2, 2: 2})

    def forever(self, slots):
        return under_way(lambda: self.on_hosts(slots, "--threads", 1, "forever.lua", cwd=HERE / "bad",
                                               ORRERY_DEADLINE=str(DEADLINE)))

    def strike(self, victim, blow):
        """A job one of whose ranks has just got the signal, and when that was."""
        job = self.start()
        process = ranks()[victim]
        begun = time.monotonic()
        os.kill(process, blow)
        return job, begun

    def check_end(self, job, code):
        job.finish(30)
        self.assertEqual(job.code, code, job.err)
        self.check_nothing_left(job)

    def check_nothing_left(self, job):
        until = time.monotonic() + 5
        while (left := set(in_namespace(1) + in_namespace(2)) - set(self.daemons)) and time.monotonic() < until:
            time.sleep(0.02)
        self.assertEqual(left, set())
        self.assertEqual(job.orphans(), [])
        self.assertEqual([n for n in os.listdir("/dev/shm") if "orrery" in n], [])

    def test_the_digest_of_one_host(self):
        expected = digest(orrery("run", "-n", 4, "--comm", "local", *GPT))
        for slots in ({1: 2, 2: 2}, {1: 2, 2: 1}, {1: 1, 2: 3}):
            with self.subTest(slots=slots):
                job = self.on_hosts(slots, *GPT).finish()
                self.assertEqual(digest(job), expected)
                self.check_nothing_left(job)
        sent = ip("-n", f"{TAG}1", "-s", "link", "show", "v0")
        self.assertGreater(max(int(n) for n in re.findall(r"\b\d+\b", sent)), 1 << 20)

    def test_killed_rank(self):
        for victim in (0, 3):
            with self.subTest(victim=victim):
                job, begun = self.strike(victim, signal.SIGKILL)
                self.check_end(job, 128 + signal.SIGKILL)
                self.assertLess(time.monotonic() - begun, DEADLINE + 10)
                for rank in {0, 1, 2, 3} - {victim}:
                    prefix = "" if rank == 0 else rf"\[rank {rank}\] "
                    self.assertRegex(job.err, rf"(?m)^{prefix}error: forever\.lua:\d+: rank {victim} died")
                host = f"{NET}.{1 if victim < 2 else 2}"
                self.assertEqual(job.err.splitlines()[-1],
                                 f"orrery: rank {victim} on {host} was killed by signal 9 (Killed)")

    def test_stopped_rank(self):
        for victim in (1, 2):
            with self.subTest(victim=victim):
                job, begun = self.strike(victim, signal.SIGSTOP)
                guard = threading.Timer(30, job.end)  # whoever wakes the rank again: the test ends
                guard.start()
                self.addCleanup(guard.cancel)
                said = [(time.monotonic() - begun, line) for line in job.process.stderr]
                self.check_end(job, 124)
                survivors = [(after, line) for after, line in said if not line.startswith("orrery:")
                             and f"rank {victim} has not answered for {DEADLINE} s" in line]
                self.assertEqual(len(survivors), 3, said)
                self.assertLess(max(after for after, _ in survivors), DEADLINE + 10)

    def test_signal_to_the_launcher(self):
        job = self.start()
        job.process.send_signal(signal.SIGINT)
        self.check_end(job, 128 + signal.SIGINT)
        self.assertIn("after signal 2 to the launcher", job.err.splitlines()[-1])

    def test_killed_launcher(self):
        job = self.start()
        job.process.kill()
        self.check_end(job, -signal.SIGKILL)

    # Rank 0 listens where the others reach it, each on no more than its own address; and the secret by
    # which they know each other is on no command line.
    def test_who_listens_and_who_reads(self):
        job = self.start()
        there = ranks()
        token = next(v for v in pathlib.Path(f"/proc/{there[3]}/environ").read_text().split("\0")
                     if v.startswith("ORRERY_TOKEN=")).partition("=")[2]
        self.assertEqual(len(token), 64)
        for command in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has ended
                self.assertNotIn(token.encode(), command.read_bytes())
        for rank, own in ((0, "0100"), (2, "0200")):  # the last two bytes of 10.77.0.x, backwards
            self.assertEqual({p[:8] for p in listeners(there[rank])} - {f"{own}4D0A"}, set())
        self.assertEqual(len(listeners(there[0])), 1)
        job.process.send_signal(signal.SIGINT)
        self.check_end(job, 128 + signal.SIGINT)
