# SPDX-License-Identifier: Apache-2.0
"""Programs that a stage runs, within the seconds that it has, and rows of what they showed.

A row is {name, verdict, text}; a verdict is passed, failed, skipped, measured or late.
"""
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

LEAST = 0.5  # seconds: with less left nothing is started


class OutOfTime(Exception):
    """The stage has used up its seconds."""


class Budget:
    """The seconds that the stage under way may still take."""
    end = float("inf")

    @classmethod
    def start(cls, seconds):
        cls.end = time.monotonic() + seconds

    @classmethod
    def left(cls):
        return cls.end - time.monotonic()


def row(name, verdict, text=""):
    return {"name": name, "verdict": verdict, "text": text}


def without_gpu(name):
    return row(name, "skipped", "no NVIDIA device here")


def text_of(output):
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def run(*words, timeout=600, **variables):
    """What a program did, with these variables beside its environment's; code 124 if it took longer than `timeout`. OutOfTime if the stage has no more."""
    left = Budget.left()
    if left < LEAST:
        raise OutOfTime
    try:
        started = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   env=os.environ | variables, start_new_session=True)
    except OSError as fault:
        return subprocess.CompletedProcess(words, 127, "", str(fault))
    try:
        out, err = started.communicate(timeout=min(timeout, left))
        return subprocess.CompletedProcess(words, started.returncode, out, err)
    except subprocess.TimeoutExpired as late:
        if Budget.left() < LEAST:
            raise OutOfTime(last_line_of(text_of(late.stdout))) from late
        return subprocess.CompletedProcess(words, 124, text_of(late.stdout), f"no end within {late.timeout:.0f} s")
    finally:
        end_group(started)


def end_group(started):
    """Ends what a program has started in its session, too, which may hold the GPU."""
    if started.poll() is None:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()
    started.stdout.close()
    started.stderr.close()


def at_once(how_many, tasks):
    """What each of the tasks returns, as it comes, with so many under way. OutOfTime ends those that have not begun."""
    with ThreadPoolExecutor(how_many) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def last_line_of(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1][:300]


def last_line(done):
    return last_line_of(done.stderr.strip() or done.stdout)


def verdict_of(name, good, done, text=""):
    return row(name, "passed", text) if good else row(name, "failed", text or f"exit {done.returncode}: {last_line(done)}")
