# SPDX-License-Identifier: Apache-2.0
# Takes: torch transformers tokenizers pyarrow numpy
"""A BERT of transformers, with a tokenizer.json and Parquet, is tuned by Orrery (tuned.lua) and goes back: the losses
before and after are those that transformers compute.

Arguments: the build tree.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import pyarrow as pa
import pyarrow.parquet as pq
import tokenizers
import torch
import transformers

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
THINGS = ["film", "book", "song", "play", "meal"]
GOOD, BAD = ["great", "lovely", "fine"], ["poor", "awful", "dull"]


def table(count, seed):
    rng, rows = random.Random(seed), []
    for _ in range(count):
        label = rng.randrange(2)
        thing, how, word = rng.choice(THINGS), rng.choice(["", "really ", "so "]), rng.choice(GOOD if label else BAD)
        rows.append((f"The {thing} was {how}{word}!", label))
    return rows


class Tuned(unittest.TestCase):
    def setUp(self):
        if not (BUILD / "plugins/orrery-data-arrow.so").exists():
            print(f"tuned: the plugin arrow is not built; configure with -Darrow={pathlib.Path(pa.__file__).parent}")
            sys.exit(77)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def tokenizer(self, texts):
        made = tokenizers.BertWordPieceTokenizer(lowercase=True)
        made.train_from_iterator(texts, vocab_size=120, min_frequency=1)
        made.save(str(self.folder / "tokenizer.json"))
        return made

    def loss(self, path, tokenizer, rows):
        model = transformers.BertForSequenceClassification.from_pretrained(path).eval()
        ids = [tokenizer.encode(text).ids for text, _ in rows]
        x = torch.tensor([row + [0] * (16 - len(row)) for row in ids])
        with torch.no_grad():
            logits = model(input_ids=x, attention_mask=(x != 0).long()).logits
        y = torch.tensor([label for _, label in rows])
        return float(torch.nn.functional.cross_entropy(logits, y)), int((logits.argmax(-1) == y).sum())

    def test_there_and_back(self):
        rows = {"train": table(256, 1), "test": table(64, 2)}
        for name, part in rows.items():
            columns = {"text": [text for text, _ in part], "label": [label for _, label in part]}
            pq.write_table(pa.table(columns), self.folder / f"{name}.parquet")
        tokenizer = self.tokenizer([text for text, _ in rows["train"]])
        torch.manual_seed(1)
        transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=tokenizer.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=128, max_position_embeddings=16)).save_pretrained(self.folder)
        (self.folder / "tuned").mkdir()
        first, _ = self.loss(self.folder, tokenizer, rows["test"])
        done = subprocess.run([BUILD / "orrery", "run", "--no-dir", "-n", "2", HERE / "tuned.lua", f"folder={self.folder}"],
                              capture_output=True, text=True, timeout=300, check=False,
                              env=os.environ | {"ORRERY_LUA_PATH": str(HERE.parents[1] / "examples")})
        self.assertEqual(done.returncode, 0, done.stderr)
        last, right = self.loss(self.folder / "tuned", tokenizer, rows["test"])
        self.assertIn("first ", done.stdout)
        words = done.stdout.split()
        self.assertAlmostEqual(float(words[words.index("first") + 1]), first, places=5)
        self.assertAlmostEqual(float(words[words.index("last") + 1].rstrip(",")), last, places=5)
        self.assertEqual(int(words[words.index("last") + 2]), right)
        self.assertGreater(right, 60)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
