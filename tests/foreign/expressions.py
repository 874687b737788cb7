# SPDX-License-Identifier: Apache-2.0
# Takes: torch numpy
"""Random losses (tests/golden/expressions.py) that train as PyTorch says, on one rank, on two, and in stacks.

Arguments: the build tree, then if given the first seed and how many.
"""
import pathlib
import sys

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
from expressions import Loss  # noqa: E402
from expressions_record import trained  # noqa: E402
from expressions_test import differences  # noqa: E402

STACKS = {
    "one rank": (1, ""),
    "data": (2, "strategy = strategy.data {}, "),
    "zero 2, accumulated": (2, "strategy = { strategy.data {}, strategy.zero { stage = 2, bucket = 64 }, strategy.accumulate {} }, "),
    "zero 3": (2, "strategy = { strategy.data {}, strategy.zero { stage = 3, bucket = 64 } }, "),
    "recomputed": (1, "strategy = strategy.recompute { path = '' }, "),
}


def main():
    first, count = map(int, sys.argv[2:4] or (1000, 1000))
    wrong = 0
    for seed in range(first, first + count):
        stack = list(STACKS)[seed % len(STACKS)]
        ranks, strategy = STACKS[stack]
        loss = Loss(seed, least_microbatches=ranks)
        if found := differences(loss, trained(loss), ranks, strategy):
            wrong += 1
            print(f"seed {seed}, {stack}: {found}\n{loss.script(strategy)}")
    print(f"expressions: {count - wrong} of {count} losses train as PyTorch says, in {len(STACKS)} ways")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
