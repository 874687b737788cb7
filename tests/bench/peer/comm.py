# SPDX-License-Identifier: Apache-2.0
"""comm `local` by TCP over loopback against PyTorch's Gloo, two ranks each, in turns: the median of all
turns in microseconds, and the ratio of neighbouring turns with its spread.

    ~/.cache/orrery/peer/bin/python tests/bench/peer/comm.py [turns]
"""
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parents[2] / "build/tests/bench/bench_comm"
ROUNDS = 3


def last_line(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def gloo(port):
    words = [sys.executable, HERE / "gloo_worker.py"]
    second = subprocess.Popen([*map(str, words), "1", str(port), str(ROUNDS)])
    figures = last_line([*map(str, words), "0", str(port), str(ROUNDS)])
    if second.wait(60) != 0:
        sys.exit("gloo: rank 1 failed")
    return figures


def main():
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    ours, theirs = [], []
    for turn in range(turns):
        ours.append(last_line([str(BENCH), "tcp", str(ROUNDS)]))
        theirs.append(gloo(29600 + turn))
    print(f"{'operation':<24}{'orrery us':>12}{'gloo us':>12}   gloo/orrery")
    for key in ours[0]:
        ratios = [t[key] / o[key] for o, t in zip(ours, theirs)]
        print(f"{key:<24}{statistics.median(o[key] for o in ours):>12.1f}"
              f"{statistics.median(t[key] for t in theirs):>12.1f}"
              f"   {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
