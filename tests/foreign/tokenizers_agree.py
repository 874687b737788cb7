# SPDX-License-Identifier: Apache-2.0
# Takes: tokenizers tiktoken
"""Random texts, trained on and encoded by Orrery, by Hugging Face's tokenizers and by tiktoken: the same tokens."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import tiktoken
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
CL100K = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"""
          r"""|\s+(?!\S)|\s""")
# Characters among which splits decide, beside all others.
TELLING = "   \n\n\r\t'''sStTdDmMlLvVrReE01239.,;!_-()<|>\u017f\u00a0\u2003\u3000\u0085éß漢字א٣½²😀\u0301\u200b"
SCRIPT = """
local orrery = require "orrery"
local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end
local folder = orrery.args { folder = "" }.folder
local count = tonumber(read(folder .. "/count"))
local trained = orrery.data.train_bpe(folder .. "/corpus", { vocab = SIZE, min_frequency = LEAST, special = { "<|end|>" } })
trained:save(folder)
local gpt2 = orrery.data.bpe(folder .. "/vocab.json", folder .. "/merges.txt", { special = { "<|end|>" } })
local gpt4 = orrery.data.bpe(folder .. "/vocab.json", folder .. "/merges.txt", { split = "gpt4", special = { "<|end|>" } })
local out = assert(io.open(folder .. "/ids", "w"))
for i = 1, count do
  local text = read(("%s/text%d"):format(folder, i))
  for _, tokenizer in ipairs { gpt2, gpt4 } do
    local ids = tokenizer:encode(text):tolist()
    assert(tokenizer:decode(ids) == text)
    out:write(table.concat(ids, " "), "\\n")
  end
end
out:close()
"""


def text_of(chance):
    pieces = []
    for _ in range(chance.randrange(60)):
        kind = chance.random()
        if kind < 0.5:
            pieces.append(chance.choice(TELLING) * chance.choice((1, 1, 1, 2, 3)))
        elif kind < 0.85:
            pieces.append(chance.choice(("the", "The", "low", "lower", "newest", "'re", "'LL", "aaa", "abab", "12", "345", "=")))
        elif kind < 0.9:
            pieces.append("<|end|>")
        else:
            code = chance.randrange(1, 0x30000)
            pieces.append(chr(code) if not 0xd800 <= code < 0xe000 else "x")
    return "".join(pieces)


def train_foreign(corpus, size, least):
    bpe = tokenizers.Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.train_from_iterator([corpus], trainers.BpeTrainer(
        vocab_size=size, min_frequency=least, special_tokens=["<|end|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return bpe


def bytes_by_character():
    visible = [*range(ord("!"), ord("~") + 1), *range(0xa1, 0xad), *range(0xae, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(0x100 + i): byte for i, byte in enumerate(hidden)}


def one_round(orrery, seed):
    chance = random.Random(seed)
    corpus = "".join(text_of(chance).replace("<|end|>", "") for _ in range(200))
    texts = [text_of(chance) for _ in range(100)]
    size, least = chance.choice((257, 300, 500, 3000)), chance.choice((1, 2, 5))
    foreign = train_foreign(corpus, size, least)
    model = json.loads(foreign.to_str())["model"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "corpus").write_bytes(corpus.encode())
        (folder / "count").write_text(str(len(texts)))
        for i, text in enumerate(texts, 1):
            (folder / f"text{i}").write_bytes(text.encode())
        script = folder / "script.lua"
        script.write_text(SCRIPT.replace("SIZE", str(size)).replace("LEAST", str(least)))
        subprocess.run([orrery, "run", script, f"folder={folder}"], check=True, stdout=subprocess.DEVNULL)
        vocab = json.loads((folder / "vocab.json").read_text())
        merges = (folder / "merges.txt").read_text().splitlines()[1:]
        ids = [[int(word) for word in line.split()] for line in (folder / "ids").read_text().split("\n")]
    assert vocab == model["vocab"], f"seed {seed}: the vocabularies differ"
    wanted = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    assert merges == wanted, f"seed {seed}: the merges differ"
    known = bytes_by_character()
    ranks = {bytes(known[c] for c in token): id for token, id in vocab.items() if token != "<|end|>"}
    gpt4 = tiktoken.Encoding("trained", pat_str=CL100K, mergeable_ranks=ranks, special_tokens={"<|end|>": 0})
    for i, text in enumerate(texts):
        assert ids[2 * i] == foreign.encode(text).ids, f"seed {seed}: {text!r}: tokenizers has other ids"
        assert ids[2 * i + 1] == gpt4.encode(text, allowed_special="all"), f"seed {seed}: {text!r}: tiktoken has other ids"
    return len(texts)


def main():
    orrery = pathlib.Path(sys.argv[1]) / "orrery"
    rounds = range(1, 1 + (int(sys.argv[2]) if len(sys.argv) > 2 else 30))
    texts = sum(one_round(orrery, seed) for seed in rounds)
    print(f"{len(rounds)} random vocabularies as tokenizers {tokenizers.__version__} trains them, {texts} texts with its ids "
          f"and those of tiktoken {tiktoken.__version__}")


if __name__ == "__main__":
    main()
