# SPDX-License-Identifier: Apache-2.0
"""What lanes are worth: pipeline x tensor x data over slow links, beside a backend that has one exchange in progress.

Kernels wait as long as products would take, so that ranks may be more than CPUs. Exposed communication is the step over
slow links less the step over links that are not slow; bubbles are in both. Turns of both backends alternate.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FAST, SLOW = "100GB", "100MB"  # bytes a second of each rank's link
SCHEDULES = ("1f1b", "interleaved", "zb1")


def step_ms(build, ranks, schedule, link, one_lane):
    """Milliseconds of a step: the median of those after the first."""
    words = ["run", "-n", ranks, "--threads", 1, "--pin", "none", "--link-speed", link, "--kernels", "timed",
             HERE / "step.lua", f"schedule={schedule}"]
    with tempfile.TemporaryDirectory() as folder:
        for name in ["orrery-kernel-timed.so"] + ["orrery-comm-local.so"] * one_lane:
            os.symlink(build / "tests/bench/lanes" / name, pathlib.Path(folder, name))
        settings = {"TIMED_FLOPS": "2e10", "ORRERY_PLUGIN_PATH": folder, "ORRERY_LUA_PATH": str(ROOT / "examples")}
        done = subprocess.run([build / "orrery", *map(str, words)], text=True, capture_output=True, env=os.environ | settings)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr}")
    return statistics.median([float(x) for x in re.findall(r"ms (\S+)", done.stdout)][1:])


def race(build, ranks, schedule, turns):
    exposed = {False: [], True: []}
    for _ in range(turns):
        for one_lane, all_of in exposed.items():
            all_of.append(step_ms(build, ranks, schedule, SLOW, one_lane) - step_ms(build, ranks, schedule, FAST, one_lane))
    ratios = sorted(mine / other for mine, other in zip(exposed[False], exposed[True]))
    print(f"{ranks} ranks, {schedule:<12} exposed: {statistics.median(exposed[False]):7.1f} ms a step, with one lane "
          f"{statistics.median(exposed[True]):7.1f}; {statistics.median(ratios):.2f} of it ({ratios[0]:.2f} to {ratios[-1]:.2f})",
          flush=True)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench lanes", description=__doc__)
    parser.add_argument("--turns", type=int, default=5, help="turns of each backend")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    for ranks in (4, 8):
        for schedule in SCHEDULES:
            race(options.build.resolve(), ranks, schedule, options.turns)


if __name__ == "__main__":
    main()
