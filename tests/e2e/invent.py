# SPDX-License-Identifier: Apache-2.0
"""Copies the source of a strategy under names that nobody has heard of: its own and those of the axes
that it makes, backwards.

Arguments: a strategy plugin's source, the copy.
"""
import pathlib
import re
import sys

AXES = [re.compile(p) for p in (r'\baxis\(\s*[\w.>-]+,\s*"(\w+)"', r'draft:axis\(?\s*"(\w+)"', r'\baxis = "(\w+)"',
                                r'halve\([^;]*?"[\w.]+",\s*"([\w.]+)"',
                                r'halve\([^;]*?"[\w.]+",\s*"[\w.]+",\s*"([\w.]+)"')]


def names(stem, text):
    """{name: invented}: the strategy's and its axes'."""
    return {name: name[::-1] for name in {stem, *(n for p in AXES for n in p.findall(text))}}


def invent(stem, text):
    """The text with each literal that is one of its names as another."""
    known = names(stem, text)
    return re.sub(r'"([\w.]+)"', lambda m: f'"{known.get(m[1], m[1])}"', text)


if __name__ == "__main__":
    source, copy = map(pathlib.Path, sys.argv[1:])
    copy.write_text(invent(source.stem, source.read_text()))
