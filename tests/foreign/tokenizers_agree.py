# SPDX-License-Identifier: Apache-2.0
# Takes: tokenizers tiktoken
"""Random texts, trained on and encoded by Orrery, by Hugging Face's tokenizers and by tiktoken: the same tokens."""
import base64
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import tiktoken
import tokenizers
from tiktoken_ext import openai_public
from tokenizers import models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
CL100K = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"""
          r"""|\s+(?!\S)|\s""")
O200K = "|".join([
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""\p{N}{1,3}""", r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""", r"""\s*[\r\n]+""", r"""\s+(?!\S)""", r"""\s+"""])
# Characters among which splits decide, beside all others.
TELLING = "   \n\n\r\t//'''sStTdDmMlLvVrReE01239.,;!_-()<|>\u017f\u00a0\u2003\u3000\u0085éß漢字א٣½²😀\u0301\u0301\u200bǅʰÀΑबि"
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
local all = { gpt2, gpt4 }
for i, split in ipairs { "r50k", "cl100k", "o200k" } do
  all[2 + i] = orrery.data.tiktoken(folder .. "/unsplit.tiktoken", { split = split })
end
local out = assert(io.open(folder .. "/ids", "w"))
for i = 1, count do
  local text = read(("%s/text%d"):format(folder, i))
  for _, tokenizer in ipairs(all) do
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


def train_foreign(corpus, size, least, split=True):
    """Without a split, merges show wherever an encoder makes one."""
    bpe = tokenizers.Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split)
    bpe.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=size, min_frequency=least, special_tokens=["<|end|>"] if split else [], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return bpe


def bytes_by_character():
    visible = [*range(ord("!"), ord("~") + 1), *range(0xa1, 0xad), *range(0xae, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(0x100 + i): byte for i, byte in enumerate(hidden)}


CHARACTERS = bytes_by_character()


def one_round(orrery, seed):
    chance = random.Random(seed)
    corpus = "".join(text_of(chance).replace("<|end|>", "") for _ in range(200))
    texts = [text_of(chance) for _ in range(100)]
    size, least = chance.choice((257, 300, 500, 3000)), chance.choice((1, 2, 5))
    foreign = train_foreign([corpus], size, least)
    unsplit = {bytes(CHARACTERS[c] for c in token): id for token, id in json.loads(
        train_foreign([text.replace("<|end|>", "") for text in texts], 3000, 1, split=False).to_str())["model"]["vocab"].items()}
    model = json.loads(foreign.to_str())["model"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "corpus").write_bytes(corpus.encode())
        (folder / "unsplit.tiktoken").write_text("".join(f"{base64.b64encode(t).decode()} {id}\n" for t, id in unsplit.items()))
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
    ranks = {bytes(CHARACTERS[c] for c in token): id for token, id in vocab.items() if token != "<|end|>"}
    gpt4 = tiktoken.Encoding("trained", pat_str=CL100K, mergeable_ranks=ranks, special_tokens={"<|end|>": 0})
    encodings = [tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=unsplit, special_tokens={}) for name, pattern in (
        ("r50k", openai_public.r50k_pat_str), ("cl100k", CL100K), ("o200k", O200K))]
    for i, text in enumerate(texts):
        found = ids[5 * i:5 * i + 5]
        assert found[0] == foreign.encode(text).ids, f"seed {seed}: {text!r}: tokenizers has other ids"
        wanted = [gpt4.encode(text, allowed_special="all"), *(e.encode(text, disallowed_special=()) for e in encodings)]
        assert found[1:] == wanted, f"seed {seed}: {text!r}: tiktoken has other ids"
    return len(texts)


def main():
    orrery = pathlib.Path(sys.argv[1]) / "orrery"
    rounds = range(1, 1 + (int(sys.argv[2]) if len(sys.argv) > 2 else 30))
    texts = sum(one_round(orrery, seed) for seed in rounds)
    print(f"{len(rounds)} random vocabularies as tokenizers {tokenizers.__version__} trains them, {texts} texts with its ids "
          f"and those of tiktoken {tiktoken.__version__}")


if __name__ == "__main__":
    main()
