# SPDX-License-Identifier: Apache-2.0
"""Judges Orrery on the GPU of this machine, in stages or one race a call; lies in the folder that scripts/gpu-bundle
makes.

  tests/gpu/run [--stage 0,1,2,3,4,5,6 | --race NAME,...] [--budget STAGE=SECONDS,...] [--out DIR]

Needs no network and nothing installed but the NVIDIA driver, cuBLASLt and NVRTC, which are looked for where
machines have them; the race wants a PyTorch. Each row is printed, and written to result.jsonl, as soon as it
is known. A stage ends with its budget, and the next one begins. Without a driver what needs none is done.
Exits with 1 if something that was tried failed.
"""
import argparse
import json
import os
import pathlib
import sys
import time
import traceback

import checks
import first
import kernels
import libraries
import nccl
import races
import speed
from runs import Budget, OutOfTime, row, run

BUNDLE = pathlib.Path(__file__).resolve().parents[2]
# Seconds, and what is done in them.
STAGES = {
    "0": (20, (checks.bundle, first.first_kernels)),
    "1": (60, (checks.losses, checks.values)),
    "2": (120, (speed.speed,)),
    "3": (120, (kernels.beside_the_floor,)),
    "4": (240, (races.gpt2,)),
    "5": (7200, (checks.ops, checks.same_bits, checks.sanitizer, races.against_autotune)),
    "6": (120, (nccl.on_one_card,)),
}
# What --race takes, in the order of worth for whoever has a card for minutes.
RACES = {
    "nccl": (120, (nccl.on_one_card,)),
    **{name: (seconds, (races.of_family(name),)) for name, (_, seconds) in races.FAMILIES.items()},
    "values": (120, (checks.values,)),
    "ops": (120, (kernels.beside_the_floor,)),
}


def environment():
    """What the programs of the bundle need to find one another, and another Python its own library."""
    os.environ.pop("PYTHONHOME", None)
    os.environ["PATH"] = f"{BUNDLE / 'prefix/bin'}:{os.environ['PATH']}"
    given = os.environ.get("LD_LIBRARY_PATH", "")
    for more in ([], [BUNDLE / "lib/cxx"]):  # the machine's own C++ library first
        os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(BUNDLE / "lib"), *map(str, more), given]))
        if run("orrery", "--version").returncode == 0:
            return


class Report:
    """Rows, shown and written as they come."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.file, self.path = open(folder / "result.jsonl", "w", encoding="utf-8"), folder / "result.jsonl"
        self.counts = dict.fromkeys(("passed", "failed", "skipped", "measured", "late"), 0)
        self.began = time.monotonic()

    def add(self, stage, found):
        self.counts[found["verdict"]] += 1
        at = time.monotonic() - self.began
        self.write({"stage": stage, "at": round(at, 2)} | found)
        print(f"{stage:<10} {at:6.1f} s  {found['verdict']:<8} {found['name']:<34} {found['text']}", flush=True)

    def write(self, what):
        self.file.write(json.dumps(what) + "\n")
        self.file.flush()

    def summary(self):
        return ", ".join(f"{n} {verdict}" for verdict, n in self.counts.items()) + f"; {self.path}"


def libraries_and_machine(root, facts):
    """What all stages need."""
    yield from libraries.libraries(root, facts)
    yield row("machine", "measured", json.dumps(facts | {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}))


def run_stage(number, seconds, parts, facts, report):
    """All parts of a stage: a failing one does not end the next, the end of the budget ends the stage."""
    Budget.start(seconds)
    for part in parts:
        name = part.__name__.replace("_", " ")
        try:
            for found in part(BUNDLE, facts):
                report.add(number, found)
        except OutOfTime as late:
            return report.add(number, row(name, "late", f"{seconds:g} s are over; --budget {number}={2 * seconds:g} gives more. {late}"))
        except Exception as fault:  # whatever it was, the other parts are told apart from it
            place = traceback.extract_tb(fault.__traceback__)[-1]
            report.add(number, row(name, "failed", f"{type(fault).__name__}: {fault} ({pathlib.Path(place.filename).name}:{place.lineno})"))


def budgets(text):
    """{stage: seconds} of "0=20,gpt2=60"."""
    return {name: float(seconds) for name, seconds in (part.split("=") for part in filter(None, text.split(",")))}


def described_races():
    """For --help."""
    lines = [f"  {name:<12}{seconds:>4} s" for name, (seconds, _) in RACES.items()]
    return "races, in the order of their worth for whoever has a card for minutes:\n" + "\n".join(lines)


def read_choice():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=described_races(),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--stage", default="0,1,2,3,4", help="stages, with commas; 5 takes hours, 6 is NCCL (default %(default)s)")
    what.add_argument("--race", help="one of the races below, or several with commas")
    parser.add_argument("--budget", default="", help="seconds of stages and races, such as 2=60,gpt2=300")
    parser.add_argument("--out", default=".", type=pathlib.Path, help="where result.jsonl goes")
    choice = parser.parse_args()
    kind, choice.known, asked = ("race", RACES, choice.race) if choice.race else ("stage", STAGES, choice.stage)
    choice.names = asked.split(",")
    try:
        choice.budgets = budgets(choice.budget)
    except ValueError:
        parser.error(f"--budget '{choice.budget}': write such as --budget 2=60,gpt2=300")
    unknown = [name for name in choice.names + list(choice.budgets) if name not in choice.known]
    if unknown:
        parser.error(f"there is no {kind} '{unknown[0]}'; there are {', '.join(choice.known)}")
    return choice


def main():
    choice = read_choice()
    report = Report(choice.out)
    environment()
    facts = {}
    for found in libraries_and_machine(BUNDLE, facts):
        report.add("0", found)
    for name in choice.names:
        seconds, parts = choice.known[name]
        run_stage(name, choice.budgets.get(name, seconds), parts, facts, report)
    print(report.summary())
    return 1 if report.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
