# SPDX-License-Identifier: Apache-2.0
# Takes: numpy
"""Random pipelines of data (tests/golden/random_feeds.py), whose arrays NumPy saves: which rows each step sees, in one
process and in two that take turns on other numbers of ranks.

Arguments: the build tree, then if given the first seed and how many.
"""
import io
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import numpy as np  # noqa: E402
import random_data  # noqa: E402
from random_feeds import Feed, Tally, judge  # noqa: E402

TOGETHER = 20


def saved(kind, dims, numbers, fortran):
    file = io.BytesIO()
    np.save(file, np.asarray(np.array(numbers, random_data.CODES[kind][1]).reshape(dims), order="F" if fortran else "C"))
    return file.getvalue()


def main():
    first, count = map(int, sys.argv[2:4] or (1, 300))
    random_data.npy, tally, wrong, refused = saved, Tally(), {}, {}
    for begin in range(first, first + count, TOGETHER):
        with tempfile.TemporaryDirectory() as folder:
            some = judge(pathlib.Path(sys.argv[1]).resolve(), Feed, range(begin, min(begin + TOGETHER, first + count)), pathlib.Path(folder), tally)
        for seed, lines in some[0].items():
            feed = Feed(seed)
            print(f"seed {seed}, ranks {feed.ranks}, saved after {feed.cut}:", *lines, feed.script(1, feed.steps, "FOLDER"), sep="\n", flush=True)
        for seed, why in some[1].items():
            print(f"seed {seed} is refused: {why}", flush=True)
        wrong.update(some[0])
        refused.update(some[1])
    print(*tally.wrong(), sep="\n")
    print(f"data: {count - len(wrong) - len(refused)} of {count} are fed as they should be, {len(refused)} refused; "
          f"{', '.join(f'{name} {total}' for name, (_, _, total) in tally.sums.items())}")
    return bool(wrong or tally.wrong())


if __name__ == "__main__":
    sys.exit(main())
