# SPDX-License-Identifier: Apache-2.0
# Takes: torch numpy
"""Functions and layers at the edges of their dtypes (tests/golden/edges.py) as PyTorch computes them, on the kernels cpu
with the widest and with narrower vectors, and reference.

Arguments: the build tree, then if given the first case and how many.
"""
import pathlib
import sys

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
from edges import computed_by, differences  # noqa: E402
from edges_record import all_cases, computed  # noqa: E402

WAYS = [("cpu", "reference"), ("cpu-avx2", "reference"), ("reference",)]
AT_ONCE = 400  # in a process


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    cases = all_cases()
    first, count = map(int, sys.argv[2:4] or (0, len(cases)))
    cases, wrong = cases[first:first + count], 0
    for start in range(0, len(cases), AT_ONCE):
        part = cases[start:start + AT_ONCE]
        expected = [(computed(case), computed(case, exact=True)) for case in part]
        for kernels in WAYS:
            found = computed_by(build, part, *kernels, ORRERY_PLUGIN_PATH=str(build / "tests/kernels"))
            for i, case in enumerate(part):
                for text in differences(case, found.get(i), *expected[i])[:3]:
                    wrong += 1
                    print(f"case {first + start + i}, {kernels[0]}: {case.name}: {text}")
    print(f"edges: {len(cases)} cases on {len(WAYS)} kernels, {wrong} numbers are not PyTorch's")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
