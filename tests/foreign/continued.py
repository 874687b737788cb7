# SPDX-License-Identifier: Apache-2.0
# Takes: numpy
"""Random models that draw random numbers, are saved and go on on other ranks under another stack of strategies
(tests/golden/random_continued.py), with the figures of one process.

Arguments: the build tree, then if given the first seed and how many.
"""
import pathlib
import sys

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
from random_continued import Judge  # noqa: E402


def main():
    first, count = map(int, sys.argv[2:4] or (1000, 1000))
    judge = Judge(pathlib.Path(sys.argv[1]).resolve())
    for begin in range(first, first + count, 100):
        told = len(judge.wrong)
        judge.judge(range(begin, min(begin + 100, first + count)))
        print("\n".join(judge.wrong[told:]), end="", flush=True)
    print(f"continued: {judge.good} of {count} go on as one process does, {len(judge.refused)} are refused")
    return len(judge.wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
