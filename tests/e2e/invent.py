# SPDX-License-Identifier: Apache-2.0
"""Copies the source of a strategy under names that nobody has heard of: its own and those of the axes
that it makes, backwards.

Arguments: the strategy's name, the folder of the copies, the plugin's sources.
"""
import pathlib
import re
import sys

AXES = [re.compile(p) for p in (r'\baxis\(\s*[\w.>-]+,\s*"(\w+)"', r'draft:axis\(?\s*"(\w+)"', r'\baxis = "(\w+)"',
                                r'halve\([^;]*?"[\w.]+",\s*"([\w.]+)"',
                                r'halve\([^;]*?"[\w.]+",\s*"[\w.]+",\s*"([\w.]+)"')]


def names(name, text):
    """{name: invented}: the strategy's and its axes'."""
    return {known: known[::-1] for known in {name, *(n for p in AXES for n in p.findall(text))}}


def invent(name, text, whole=""):
    """The text, which is part of `whole`, with each literal that is one of its names as another."""
    known = names(name, whole or text)
    return re.sub(r'"([\w.]+)"', lambda m: f'"{known.get(m[1], m[1])}"', text)


if __name__ == "__main__":
    name, folder, *sources = sys.argv[1:]
    texts = {pathlib.Path(source).name: pathlib.Path(source).read_text() for source in sources}
    for file, text in texts.items():
        (pathlib.Path(folder) / f"{name}_{file}").write_text(invent(name, text, "".join(texts.values())))
