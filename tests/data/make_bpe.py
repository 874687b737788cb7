# SPDX-License-Identifier: Apache-2.0
#
# Writes what Orrery's byte-level BPE is held against: a small vocabulary trained by Hugging Face's tokenizers, texts
# and their ids by the same library, and by tiktoken with the splits of GPT-4 and o200k; vocabularies trained on these
# texts; and plugins/data/bpe/unicode_classes.inc, the letters and numbers that GPT-2's split knows, as that library knows
# them, with unicode_cases.inc, the capitals, small letters and marks that o200k's knows, as tiktoken does. Takes
# tokenizers and tiktoken.
import base64
import json
import pathlib
import random

import tiktoken
import tiktoken_ext.openai_public
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
FILES = HERE / "files" / "bpe"
ROOT = HERE.parents[1]

TEXTS = [
    "", " ", "  ", "\n", " \n", "\n\n a", "a  b", "a   b ", "  leading", "trailing  ", "tabs\t\tand\n\nlines\r\n",
    "Hello, world!", "I'm you're he's we'll they'd I've can't", "I'M YOU'RE", "'s't 're' 'quoted'", "don''t",
    "123 4567 3.14 1,000", "abc123def", "x=1;y+=2//3", "naïve café ÀÉÎ", "日本語のテキスト 漢字", "Привет, мир", "مرحبا بالعالم",
    "😀😀 👩‍👩‍👧 🇩🇪", "½ ² Ⅷ ٣٤ ৫", "a\u00a0b\u2003c\u3000d", "e\u0301 combining", "\u200bzero\u200b", "_under_score_",
    "\u0000\u0001\u007f\u0085", "don\u2019t", "<|endoftext|>", "ǅ ʰ ª º", "\U0001d7d8\U00010400", "x" * 100, "ab" * 50 + " " * 20,
    "The quick brown fox jumps over the lazy dog. " * 3,
]
# What GPT-4's split treats in another way than GPT-2's.
GPT4_TEXTS = TEXTS + [
    "12345 1234567", "a \n ", " \n \n\n", "x\r\n\r\n  y", "!!!\n\n?", "\tabc\u00a0def", "'\u017f 'S 'Ll'VE a'RE", "'", "a'", "''s",
    "(hello)", "\n\t\tindented", "\r\rx", " \u3000\n\u3000x", "1\u00b23\u0664\u0665", "end<|endoftext|>  <|fim|><|fim|>more\n",
]
CL100K = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"""
          r"""|\s+(?!\S)|\s""")
O200K = "|".join([
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""\p{N}{1,3}""", r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""", r"""\s*[\r\n]+""", r"""\s+(?!\S)""", r"""\s+"""])
# What o200k's split treats in another way: cases, marks, letters without case, contractions behind words, slashes.
O200K_TEXTS = GPT4_TEXTS + [
    "HTTPServer camelCaseWord XMLHttp ABCs iPhone", "DON'T don't I'LL she'D'VE we'\u017fx'S", "a/b//c /usr/bin://\n/x !!/\r\n/",
    "\u0301ABC \u0301\u0301 !\u0301x a\u0301B\u0301c", "A\u0301\u0302BC d\u0301EF \u0301\u01c5x", "\u02b0A \u02b0a A\u02b0B\u02b0 AB\u02b0CD", "ÀÉÎÕ éÀÉ ÉaÉ",
    "日本語ABC abc日本語 A日B本c", "हिन्दी में लिखा तमिழ்", "ไทยภาษาABC", "\u01c5\u01c8A\u01c5a", "word\n  \n  ", "tail  \n \t ", "x \u0301y  \u0301z",
    "ПРИВЕТ Привет ПриВет'S мир're", "١٢٣٤٥٦A1b2C3", "'s 'S's ''s", "a'' b'sx c'ree 1's !'s", "\u200dA\u200db", "e\u0301'll E\u0301'LL\u0301",
]


def vocabulary():
    """What lies there, or, if nothing does, one trained on this project's documents, which change."""
    if not (FILES / "vocab.json").exists():
        bpe = tokenizers.ByteLevelBPETokenizer()
        bpe.train([str(ROOT / "docs" / name) for name in ("design.md", "how-to.md")], vocab_size=600, min_frequency=2,
                  show_progress=False)
        FILES.mkdir(parents=True, exist_ok=True)
        bpe.save_model(str(FILES))
    return tokenizers.ByteLevelBPETokenizer(str(FILES / "vocab.json"), str(FILES / "merges.txt"))


def kind_of(split, character):
    """'L', 'N', 's' (blank) or '': with what a character stays together."""
    for kind, before in (("L", "a"), ("N", "1"), ("", "!")):
        if len(split.pre_tokenize_str(before + character)) == 1:
            return kind
    return "s"


def ranges(kinds, wanted):
    found = []
    for code, kind in kinds.items():
        if kind != wanted:
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def members(pattern):
    """The characters that tiktoken's regular expressions find."""
    everything = "".join(chr(code) for code in range(0x110000) if not 0xd800 <= code < 0xe000)
    found = tiktoken.Encoding("found", pat_str=pattern, mergeable_ranks={bytes([b]): b for b in range(256)}, special_tokens={})
    return {ord(c): "x" for c in sorted(found.decode(found.encode(everything)))}


def write_tables(name, tables):
    lines = ["// SPDX-License-Identifier: Apache-2.0", "//",
             "// Ranges of code points, first and last, by tests/data/make_bpe.py.", "// clang-format off"]
    for name_of, found in tables:
        lines.append(f"constexpr Range {name_of}[] = {{")
        line = ""
        for first, last in found:
            each = f"{{{first:#x},{last:#x}}},"
            if len(line) + len(each) > 96:
                lines.append(line)
                line = ""
            line += each
        lines += [line, "};"]
    (ROOT / "plugins/data/bpe" / name).write_text("\n".join(lines) + "\n")


def write_cases():
    write_tables("unicode_cases.inc", [
        (name, ranges(members(pattern), "x")) for pattern, name in (
            (r"[\p{Lu}\p{Lt}]", "kCapitals"), (r"\p{Ll}", "kSmall"), (r"\p{M}", "kMarks"))])


def write_classes():
    split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    kinds = {code: kind_of(split, chr(code)) for code in range(0x110000) if not 0xd800 <= code < 0xe000}
    write_tables("unicode_classes.inc", [
        (name, ranges(kinds, kind)) for kind, name in (("L", "kLetters"), ("N", "kNumbers"), ("s", "kBlanks"))])


def bytes_by_character():
    """Of the characters that stand for bytes in vocab.json."""
    visible = [*range(ord("!"), ord("~") + 1), *range(0xa1, 0xad), *range(0xae, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(0x100 + i): byte for i, byte in enumerate(hidden)}


def write_tiktoken():
    """The trained vocabulary as tiktoken's file, and the ids by tiktoken."""
    known = bytes_by_character()
    vocab = json.loads((FILES / "vocab.json").read_text())
    ranks = {bytes(known[c] for c in token): id for token, id in vocab.items()}
    (FILES / "ranks.tiktoken").write_text(
        "".join(f"{base64.b64encode(token).decode()} {id}\n" for token, id in sorted(ranks.items(), key=lambda e: e[1])))
    special = {"<|endoftext|>": 600, "<|fim|>": 607}
    encoding = tiktoken.Encoding("small", pat_str=CL100K, mergeable_ranks=ranks, special_tokens=special)
    found = [encoding.encode(text, allowed_special="all") for text in GPT4_TEXTS]
    (FILES / "gpt4.json").write_text(json.dumps([{"text": t, "ids": ids} for t, ids in zip(GPT4_TEXTS, found)]) + "\n")


def write_o200k():
    """A vocabulary whose merges know no split, so that wherever one is made the ids tell; the ids of all splits by
    tiktoken."""
    bpe = tokenizers.Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bpe.train_from_iterator(O200K_TEXTS, trainers.BpeTrainer(
        vocab_size=2500, min_frequency=1, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    known = bytes_by_character()
    ranks = {bytes(known[c] for c in token): id for token, id in json.loads(bpe.to_str())["model"]["vocab"].items()}
    (FILES / "unsplit.tiktoken").write_text(
        "".join(f"{base64.b64encode(token).decode()} {id}\n" for token, id in sorted(ranks.items(), key=lambda e: e[1])))
    cases = []
    for name, pattern in (("r50k", tiktoken_ext.openai_public.r50k_pat_str), ("cl100k", CL100K), ("o200k", O200K)):
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        cases += [{"split": name, "text": text, "ids": encoding.encode(text, disallowed_special=())} for text in O200K_TEXTS]
    (FILES / "unsplit.json").write_text(json.dumps(cases) + "\n")


def write_odd():
    """Merges in random order and some twice, ids with holes: the ids by tokenizers; ranks so by tiktoken."""
    dice = random.Random(3)
    vocab = json.loads((FILES / "vocab.json").read_text())
    merges = (FILES / "merges.txt").read_text().splitlines()[1:]
    known, cases = bytes_by_character(), []
    for twice in (0, 3, 200):
        ids = dict(zip(vocab, sorted(dice.sample(range(3 * len(vocab)), len(vocab)))))
        some = merges + dice.choices(merges, k=twice)
        dice.shuffle(some)
        bpe = tokenizers.Tokenizer(models.BPE(vocab=ids, merges=[tuple(pair.split(" ")) for pair in some]))
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        cases.append({"vocab": ids, "merges": some, "ids": [bpe.encode(text).ids for text in TEXTS]})
        ranks = {bytes(known[c] for c in token): id for token, id in ids.items()}
        encoding = tiktoken.Encoding("odd", pat_str=CL100K, mergeable_ranks=ranks, special_tokens={})
        lines = [f"{base64.b64encode(token).decode()} {id}" for token, id in ranks.items()]
        dice.shuffle(lines)
        cases.append({"ranks": lines, "ids": [encoding.encode(text, disallowed_special=()) for text in TEXTS]})
    (FILES / "odd.json").write_text(json.dumps({"texts": TEXTS, "cases": cases}) + "\n")


def write_trained():
    """What BpeTrainer makes of all texts, from no merges to more than there are pairs."""
    corpus = "\n".join(GPT4_TEXTS)
    cases = []
    for size, least, special in ((300, 2, []), (420, 1, ["<pad>", "<|endoftext|>"]), (5000, 3, []), (5000, 1, [])):
        bpe = tokenizers.Tokenizer(models.BPE())
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        bpe.train_from_iterator([corpus], trainers.BpeTrainer(
            vocab_size=size, min_frequency=least, special_tokens=special, show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        made = json.loads(bpe.to_str())["model"]
        merges = [pair if isinstance(pair, list) else pair.split(" ") for pair in made["merges"]]
        cases.append({"vocab": size, "min_frequency": least, "special": special, "tokens": made["vocab"], "merges": merges})
    (FILES / "trained.json").write_text(json.dumps({"text": corpus, "cases": cases}, ensure_ascii=False) + "\n")


bpe = vocabulary()
ids = [bpe.encode(text).ids for text in TEXTS]
assert [bpe.decode(each) for each in ids] == TEXTS
(FILES / "texts.json").write_text(json.dumps([{"text": text, "ids": each} for text, each in zip(TEXTS, ids)]) + "\n")
write_tiktoken()
write_o200k()
write_odd()
write_trained()
write_classes()
write_cases()
