# SPDX-License-Identifier: Apache-2.0
"""Programs that a stage runs, within the seconds that it has, and rows of what they showed.

A row is {name, verdict, text}; a verdict is passed, failed, skipped, measured or late.
"""
import subprocess
import time

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


def run(*words, timeout=600):
    """What a program did; code 124 if it took longer than `timeout`. OutOfTime if the stage has no more."""
    left = Budget.left()
    if left < LEAST:
        raise OutOfTime
    try:
        return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=min(timeout, left))
    except subprocess.TimeoutExpired as late:
        if Budget.left() < LEAST:
            raise OutOfTime(last_line_of(text_of(late.stdout))) from late
        return subprocess.CompletedProcess(words, 124, text_of(late.stdout), f"no end within {late.timeout:.0f} s")
    except OSError as fault:
        return subprocess.CompletedProcess(words, 127, "", str(fault))


def last_line_of(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1][:300]


def last_line(done):
    return last_line_of(done.stderr.strip() or done.stdout)


def verdict_of(name, good, done, text=""):
    return row(name, "passed", text) if good else row(name, "failed", text or f"exit {done.returncode}: {last_line(done)}")
