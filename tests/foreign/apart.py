# SPDX-License-Identifier: Apache-2.0
# Takes: torch numpy
"""Random models whose ranks train apart, as PyTorch trains as many models (tests/golden/random_apart.py).

Arguments: the build tree, then if given the first seed and how many.
"""
import pathlib
import sys
import warnings

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import torch  # noqa: E402
from expressions import Dice  # noqa: E402
from random_apart import Apart, trained  # noqa: E402
from random_models_record import is_sensitive  # noqa: E402
from random_runs import all_outputs, condensed, differences, model_of, refusal  # noqa: E402


def main():
    warnings.simplefilter("ignore")  # PyTorch's about padding
    torch.set_num_threads(1)
    first, count = map(int, sys.argv[2:4] or (1000, 1000))
    cases, good, refused, wrong = {}, 0, 0, 0
    for seed in range(first, first + count):
        apart = Apart(Dice(13 * 10**6 + seed), model_of(seed))
        if apart.can_be_told():
            cases.setdefault(apart.ranks, []).append((seed, apart))
    for ranks, given in cases.items():
        for i in range(0, len(given), 25):
            some = given[i:i + 25]
            for (seed, apart), output in zip(some, all_outputs(pathlib.Path(sys.argv[1]).resolve(),
                                                               [a.model.script(a.stack) for _, a in some], ranks)):
                if output and refusal(output):
                    refused += 1
                    continue
                crashed = output is None or "crash" in output
                found = [str(output)] if crashed else differences(output, condensed(trained(apart)), 3 * apart.model.tolerance)
                if found and (crashed or not is_sensitive(apart.model)):
                    wrong += 1
                    print(f"seed {seed}, {ranks} ranks, {apart.stack}: " + "\n".join(found) + "\n" + apart.model.script(apart.stack), flush=True)
                good += not found
    print(f"apart: {good} of {count} train as PyTorch says, {refused} are refused, others cannot be told")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
