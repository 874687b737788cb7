# SPDX-License-Identifier: Apache-2.0
"""The built program as the end-to-end tests start it: `orrery` runs to its end, `Job` runs beside.

The first argument of every test script is the build tree. Each start is a session of its own, so
that what it leaves behind can be found and is ended with it.
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
# Seconds that a job may take; scripts/sanitize sets the variable, and its programs are slow.
PATIENCE = 600 if "TSAN_OPTIONS" in os.environ else 120
# Sweeps take one case of so many; scripts/sanitize sets that, too.
STRIDE = int(os.environ.get("ORRERY_TEST_STRIDE", 1))
SCHEDULES = ("gpipe", "1f1b", "interleaved", "looped", "zb1", "zbv")  # of strategy.pipeline


def sampled(cases):
    """Cases of a sweep whose loops all look alike to a sanitizer."""
    return list(cases)[::STRIDE]


def session_members(session):
    """Processes of a session that have not ended; those that wait to be reaped have."""
    members = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, _, _, sid = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(sid) == session and state not in "ZX":
            members.append(int(entry.name))
    return members


# Trainings of tests run beside each other: none has cores of its own, or those of one that goes on and on (a job
# that a test is about to end) would be kept from all others. pinning_test.py takes this back. What they train is
# recorded nowhere unless a test names a directory; default_directory_test.py takes this back.
SETTINGS = {"ORRERY_PIN": "none", "ORRERY_NO_DIR": "1"}


def wait_for(condition, seconds):
    """Waits for the first true value of `condition()`; returns it and how long that took. A pause of this
    very process, with all that it has started, counts as one second."""
    waited, begun = 0.0, time.monotonic()
    while not (value := condition()):
        if waited > seconds:
            raise AssertionError(f"not so within {seconds} s: {condition}")
        time.sleep(0.01)
        now = time.monotonic()
        waited, begun = waited + min(now - begun, 1.0), now
    return value, waited


def as_at_a_terminal(limit):
    """Who starts the tests may ignore SIGHUP, as nohup does; a job's launcher would do so, too."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if limit:
        limit()


class Job:
    """A running `orrery WORDS...`, behind a launcher if there is one."""

    def __init__(self, *words, cwd=SOURCE, limit=None, launcher=(), stdin=False, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}
        self.process = subprocess.Popen(
            [*map(str, launcher), BUILD / "orrery", *map(str, words)], cwd=cwd, env=kept | SETTINGS | variables, text=True,
            errors="replace",  # a message may quote a damaged file
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, preexec_fn=lambda: as_at_a_terminal(limit))

    def finish(self, timeout=PATIENCE):
        try:
            self.out, self.err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as late:
            self.end()
            raise AssertionError(f"no end within {timeout} s: {self.process.args}") from late
        self.code = self.process.returncode
        return self

    def end(self):
        for pid in session_members(self.process.pid):
            with contextlib.suppress(ProcessLookupError):  # ended with another one
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()

    def orphans(self, patience=5.0):
        """What of it still runs after the program has ended."""
        until = time.monotonic() + patience
        while (left := session_members(self.process.pid)) and time.monotonic() < until:
            time.sleep(0.02)
        return left


def orrery(*words, timeout=PATIENCE, **options):
    return Job(*words, **options).finish(timeout)


def under_way(start):
    """The job of `start()` once it has said that it is under way, for tests of what comes after. Where the machine
    kept its ranks from meeting within the deadline, another one is started, at most twice."""
    for _ in range(3):
        job = start()
        if job.process.stdout.readline() == "under way\n":
            return job
        job.finish()
        if "while the world was forming" not in job.err:
            break
    raise AssertionError(f"not under way, exit code {job.code}:\n{job.out}{job.err}")
