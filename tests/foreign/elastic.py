# SPDX-License-Identifier: Apache-2.0
# Takes: numpy
"""Trainings that are killed, stopped, continued on other ranks, backends and stacks (tests/e2e/histories.py), with the
figures and the state of the run that nothing happened to.

Arguments: the build tree, then if given the first seed and how many.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from histories import History  # noqa: E402


def main():
    first, count = map(int, sys.argv[2:4] or (1, 60))
    wrong = refused = lives = 0
    for seed in range(first, first + count):
        history = History(seed)
        complaints = history.complaints()
        refused, lives = refused + (not history.lives), lives + len(history.lives)
        if complaints:
            wrong += 1
            print(f"{history}\n" + "\n".join(complaints), flush=True)
        elif not history.lives:
            print(f"seed {seed}: refused: {history.refused.strip()[:300]}", flush=True)
    print(f"elastic: {count - wrong - refused} of {count} train what nothing disturbs, in {lives} starts; {refused} are refused")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
