# SPDX-License-Identifier: Apache-2.0
"""What trainings print that are as one process to rounding: steps and evaluations, then a digest."""
import re

TOLERANCE = 1e-5  # of a number


def numbers(line):
    """The loss, the norm and the dropped tokens of a step's line, or the loss of an evaluation's."""
    return [float(x) for x in re.findall(r"(?:loss|norm|dropped|eval) (\S+)", line)]


def assert_close(test, lines, expected):
    """Line by line; digests, which are the last, differ by rounding."""
    test.assertEqual(len(lines), len(expected))
    for got, want in zip(lines[:-1], expected[:-1], strict=True):
        for x, y in zip(numbers(got), numbers(want), strict=True):
            test.assertLessEqual(abs(x - y), TOLERANCE * abs(y), f"{got}: one process has {want}")
