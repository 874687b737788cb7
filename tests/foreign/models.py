# SPDX-License-Identifier: Apache-2.0
# Takes: torch numpy
"""Random models (tests/golden/random_models.py) that train as PyTorch says, each under a random stack of strategies.

Arguments: the build tree, then if given the first seed and how many.
"""
import collections
import pathlib
import re
import sys
import warnings

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import torch  # noqa: E402
from random_models_record import is_sensitive, trained  # noqa: E402
from random_runs import Judge, condensed  # noqa: E402


def main():
    warnings.simplefilter("ignore")  # PyTorch's about padding
    torch.set_num_threads(1)
    first, count = map(int, sys.argv[2:4] or (1000, 1000))
    wrong = []

    def report(model, text):
        if "crash" in text or not is_sensitive(model):
            wrong.append(text)
            print(text, flush=True)
    judge = Judge(pathlib.Path(sys.argv[1]).resolve(), lambda _, model: condensed(trained(model)), report)
    for seed in range(first, first + count):
        judge.take(seed)
    judge.finish()
    reasons = collections.Counter(re.sub(r"\d+|'[^']*'", "*", why.split("\n")[0].split(": ", 1)[-1]) for _, _, why in judge.refused.values())
    for reason, times in reasons.most_common():
        print(f"{times} refused: {reason}")
    print(f"models: {judge.trained} of {count} train as PyTorch says, {len(judge.refused)} are refused, "
          f"{len(judge.wrong) - len(wrong)} are too sensitive to tell")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
