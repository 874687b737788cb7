# SPDX-License-Identifier: Apache-2.0
#
# Writes what Orrery's byte-level BPE is held against: a small vocabulary trained by Hugging Face's tokenizers, texts
# and their ids by the same library; and core/data/unicode_classes.inc, the letters and numbers that GPT-2's split
# knows, as that library knows them. Takes tokenizers.
import json
import pathlib

import tokenizers

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


def train():
    """On this project's documents."""
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


def write_classes():
    split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    kinds = {code: kind_of(split, chr(code)) for code in range(0x110000) if not 0xd800 <= code < 0xe000}
    lines = ["// SPDX-License-Identifier: Apache-2.0", "//",
             "// Ranges of code points, first and last, by tests/data/make_bpe.py.", "// clang-format off"]
    for kind, name in (("L", "kLetters"), ("N", "kNumbers"), ("s", "kBlanks")):
        lines.append(f"constexpr Range {name}[] = {{")
        line = ""
        for first, last in ranges(kinds, kind):
            each = f"{{{first:#x},{last:#x}}},"
            if len(line) + len(each) > 96:
                lines.append(line)
                line = ""
            line += each
        lines += [line, "};"]
    (ROOT / "core/data/unicode_classes.inc").write_text("\n".join(lines) + "\n")


bpe = train()
ids = [bpe.encode(text).ids for text in TEXTS]
assert [bpe.decode(each) for each in ids] == TEXTS
(FILES / "texts.json").write_text(json.dumps([{"text": text, "ids": each} for text, each in zip(TEXTS, ids)]) + "\n")
write_classes()
