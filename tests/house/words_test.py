# SPDX-License-Identifier: Apache-2.0
"""The core speaks the field's words: no new name is made of a word that only this house uses.

A name of C++ is taken apart at its underscores and capitals. For each private word the table has the field's
term and how many different names of the core still have it: the number may only fall, and is lowered here then.
The plugin interface keeps its names until its next revision, and is not looked at.
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# private word: (the field's term, names that still have it)
WORDS = {
    "spread": ("mesh", 0),
    "halves": ("split axes", 0),
    "drawing": ("step builder", 0),
    "cause": ("origin", 0),
    "idle": ("dedicated", 1),
    "idler": ("dedicated", 0),
    "leaf": ("microbatch", 3),
    "leaves": ("microbatches", 1),
    "slices": ("microbatch steps", 0),
    "sliced": ("microbatch steps", 0),
    "cell": ("pipeline action", 3),
    "cells": ("pipeline actions", 0),
    "cut": ("sharding option", 14),
    "ways": ("sharding options", 0),
    "piece": ("shard", 3),
    "pieces": ("shards", 8),
    "home": ("in-place target", 0),
    "homes": ("in-place targets", 0),
    "neighbours": ("flat buffer", 0),
    "life": ("activation policy", 4),
    "lives": ("activation policies", 0),
    "letter": ("request", 1),
    "parcel": ("packed tensors", 0),
    "door": ("connection", 0),
    "doors": ("connections", 0),
    "saying": ("collective", 0),
    "word": ("collective", 1),  # of libedit: rl_completer_word_break_characters
    "words": ("collectives", 0),
    "notice": ("description", 0),
    "rolls": ("liveness", 0),
    "envelope": ("header", 0),
    "layered": ("hierarchical", 0),
    "poison": ("abort", 0),
    "loner": ("rank of its own", 0),
    "taker": ("receiver", 0),
    "apart": ("independent", 0),
    "among": ("over an axis", 3),
    "chain": ("sharded parameter", 0),
    "chains": ("sharded parameters", 0),
    "dealt": ("assigned", 1),
    "deals": ("splits", 0),
    "lent": ("reused", 2),
    "seated": ("laid out", 0),
}

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def names_of(text):
    return set(re.findall(r"[A-Za-z_]\w*", COMMENT_OR_TEXT.sub(" ", text)))


def words_of(name):
    return {word.lower() for part in name.split("_") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", part)}


def with_word(word, names):
    return sorted(name for name in names if word in words_of(name))


class Words(unittest.TestCase):
    def test_core(self):
        names = set()
        for path in (ROOT / "core").rglob("*"):
            if path.suffix in (".cpp", ".h") and "include" not in path.relative_to(ROOT).parts:
                names |= names_of(path.read_text())
        for word, (term, most) in WORDS.items():
            found = with_word(word, names)
            with self.subTest(word=word):
                self.assertEqual(len(found), most, f"'{word}' is a word of this house; the field says {term}: {found}")

    def test_new_names_are_seen(self):
        self.assertEqual(with_word("leaf", names_of('int leaf_first, leaves; // leaf\nclass LeafNode; "leaf_x"')),
                         ["LeafNode", "leaf_first"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
