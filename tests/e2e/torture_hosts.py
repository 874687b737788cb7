# SPDX-License-Identifier: Apache-2.0
"""Two hosts (network namespaces) whose cable is pulled, or one of whose ranks is killed or frozen, at a random moment:
all ranks must end within the deadline + 2 s, and one of the other host be named.
"""
import math
import os
import pathlib
import re
import signal
import sys
import tempfile
import threading
import time

from program import HERE, wait_for
from two_hosts import DEADLINE, TAG, TwoHosts, end_all, in_namespace, ip, ranks

CUT = "cut"


class Hosts(TwoHosts):
    """The two hosts, for one blow at a time. Raises unittest.SkipTest where namespaces cannot be made."""
    shell = f"{sys.executable} {HERE / 'namespace_shell.py'} {TAG}"
    one_at_a_time = threading.Lock()

    def __init__(self):
        self.setUpClass()

    # A blow ends its job itself, and `cut` removes the hosts.
    addCleanup = addClassCleanup = staticmethod(lambda *_: None)  # noqa: N815 - of unittest

    def strike_in(self, folder, blow):
        return self.on_hosts({1: 2, 2: 2}, "--threads", 1, "churn.lua", f"save={folder}/saved", f"stack={blow.stack}",
                             cwd=HERE / "bad", ORRERY_DEADLINE=str(DEADLINE))


class HostBlow:
    def __init__(self, hosts, what, victim, moment, stack):
        self.what, self.victim, self.moment, self.stack = what, victim, moment, stack
        self.late = 0
        with Hosts.one_at_a_time, tempfile.TemporaryDirectory() as folder:
            self.job = hosts.strike_in(folder, self)
            try:
                self.strike(pathlib.Path(folder) / "saved.begun")
            finally:
                ip("-n", f"{TAG}1", "link", "set", "v0", "up")
                for n in (1, 2):
                    end_all(n)
                self.job.end()

    def __str__(self):
        return f"two hosts, {self.stack}: {self.what} to rank {self.victim} after {self.moment:.3f} s"

    def strike(self, begun):
        wait_for(lambda: begun.exists() and begun.stat().st_size == 4, 30)
        time.sleep(self.moment)
        struck = ranks()
        if self.what == CUT:
            ip("-n", f"{TAG}1", "link", "set", "v0", "down")
        else:
            os.kill(struck[self.victim], self.what)
        survivors = set(struck.values()) - ({struck[self.victim]} if self.what != CUT else set())
        try:
            _, self.seconds = wait_for(lambda: not survivors & set(in_namespace(1) + in_namespace(2)), DEADLINE + 20)
        except AssertionError:
            self.seconds = math.inf
            return
        self.job.finish(60)
        self.orphans = self.job.orphans() + list(ranks().values())

    def complaints(self):
        if self.seconds >= DEADLINE + 12:
            yield f"survivors ended after {self.seconds:.1f} s"
            return
        if self.job.code == 0 or self.orphans:
            yield f"exit code {self.job.code}, left: {self.orphans}"
        blamed = {int(rank) for rank in re.findall(r"error: .*\brank (\d) (?:died|has)", self.job.err)}
        if self.what == CUT and not blamed and not re.search(r"error: .*rank \d", self.job.err):
            yield "no rank is named"
        if self.what != CUT and blamed != {self.victim}:
            yield f"named: {blamed}"


KINDS = (signal.SIGKILL, signal.SIGSTOP, CUT)
