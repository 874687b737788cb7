# SPDX-License-Identifier: Apache-2.0
"""Ranks that are lost in the midst of training: those that are left name them, and nothing is left running."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from runs import LEAST, Budget, OutOfTime, last_line_of, row

RANKS, LOST = 3, 1
WORDS = ("stack=data", "steps=1000000", "dim=32", "layers=1")
START = 60  # seconds until the third step is done
DEADLINE = 8  # of the ranks, where one is frozen
AFTER = 10  # seconds within which they have ended, beyond what they wait


def process_of(session, rank):
    """The process of a rank among those of a session."""
    wanted = f"ORRERY_RANK={rank}".encode()
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(place.name)) == session and wanted in (place / "environ").read_bytes().split(b"\0"):
                return int(place.name)
        except OSError:  # it has ended
            continue
    raise ProcessLookupError(f"no process of rank {rank}")


def wait_for(condition, seconds):
    """Whether the condition came to hold within so many seconds. OutOfTime if the stage has no more."""
    end = time.monotonic() + seconds
    while not condition():
        if Budget.left() < LEAST:
            raise OutOfTime
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def lose(name, how, why, patience, job, settings):
    """The row of a job of whose ranks one gets a signal: the others say why they end."""
    with tempfile.TemporaryFile("w+") as file:
        def text():
            return os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace")

        words = list(map(str, job(RANKS, *WORDS)))
        running = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=os.environ | settings,
                                   start_new_session=True)
        try:
            if not wait_for(lambda: "step 3 " in text() or running.poll() is not None, START) or running.poll() is not None:
                return row(name, "failed", f"it did not come to its third step: {last_line_of(text())}")
            os.kill(process_of(running.pid, LOST), how)
            began = time.monotonic()
            ended = wait_for(lambda: running.poll() is not None, patience + AFTER)
            seconds = time.monotonic() - began
        except ProcessLookupError as fault:
            return row(name, "failed", f"{fault}: {last_line_of(text())}")
        finally:
            running.kill()  # its ranks end with it
            running.wait()
        found = re.search(why, text())
        good = ended and found
        missing = "nobody named it" if ended else "the others went on"
        return row(name, "passed" if good else "failed",
                   f"after {seconds:.1f} s, exit {running.returncode}: {found[0] if good else f'{missing}: {last_line_of(text())}'}")


def killed(job, settings):
    return lose("a killed rank is named", signal.SIGKILL, rf"rank {LOST} died in [^\n]{{0,120}}", 0, job, settings)


def frozen(job, settings):
    why = rf"rank {LOST} has not answered for {DEADLINE} s[^\n]{{0,120}}"
    return lose("a frozen rank is named", signal.SIGSTOP, why, DEADLINE, job, settings | {"ORRERY_DEADLINE": str(DEADLINE)})


lost_ranks = (killed, frozen)
