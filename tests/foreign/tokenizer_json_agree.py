# SPDX-License-Identifier: Apache-2.0
# Takes: tokenizers
"""Random texts, encoded and decoded by Orrery and by Hugging Face's tokenizers from the same tokenizer.json: the same ids
and texts. Characters are those that Unicode 3.2 has and that mean the same today: parts of that package know no newer ones.

Arguments: the build tree, how many texts of each tokenizer (3000), more files of the kind.
"""
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

import tokenizers

FILES = pathlib.Path(__file__).resolve().parents[1] / "data" / "files" / "tokenizer_json"
SCRIPT = """
local orrery = require "orrery"
local args = orrery.args { file = "", texts = "", out = "" }
local shown = orrery.data.tokenizer_json(args.file)
local all = orrery.data.tokenizer_json(args.file, { add_special_tokens = false, skip_special_tokens = false })
local file = assert(io.open(args.texts, "rb"))
local bytes = file:read "a"
file:close()
local out = assert(io.open(args.out, "wb"))
local at = 1
while at <= #bytes do
  local text
  text, at = string.unpack("<s4", bytes, at)
  for _, tokenizer in ipairs { shown, all } do
    local ids = tokenizer:encode(text):tolist()
    out:write(string.pack("<s4", table.concat(ids, " ")), string.pack("<s4", #ids > 0 and tokenizer:decode(ids) or ""))
  end
end
out:close()
"""
WORDS = ("the The dog lower newest 'll don't tokens unbelievable 12 345 x=1 <s> </s> <unk> [CLS] [SEP] [mask] Fox <sp> dog "
         "<|endoftext|> <|eot|> naïve e\u0301 日本 漢字 Привет مرحبا 👩\u200d👩\u200d👧 🇩🇪 ﬁ ㎏ İ Σ \u2581 <0x0A> _ -- \n\n").split(" ")
TELLING = "    \n\r\t\u00a0\u2003\u3000\u0085''.,;!?-_/#0123abcxyzABÀéß\u0301\u0323\u200d\u200b\ufeff\u00ad\u2028日한א٣½²Ⅷ😀\U0001d400"


def known_characters():
    old = unicodedata.ucd_3_2_0
    return [chr(code) for code in range(1, 0x110000) if old.category(chr(code)) == unicodedata.category(chr(code))
            and not 0xd800 <= code < 0xe000 and unicodedata.category(chr(code)) != "Cn"]


def text_of(chance, known):
    parts = []
    for _ in range(chance.randrange(24)):
        kind = chance.random()
        if kind < 0.4:
            parts.append(chance.choice(WORDS) + chance.choice(("", " ", "  ")))
        elif kind < 0.8:
            parts.append(chance.choice(TELLING) * chance.choice((1, 1, 2, 7)))
        else:
            parts.append(chance.choice(known))
    return "".join(parts)


def packed(texts):
    return b"".join(struct.pack("<I", len(each)) + each for each in texts)


def unpacked(data):
    at = 0
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        yield data[at + 4:at + 4 + size].decode()
        at += 4 + size


def compare(orrery, file, texts):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "texts").write_bytes(packed([text.encode() for text in texts]))
        (folder / "script.lua").write_text(SCRIPT)
        subprocess.run([orrery, "run", folder / "script.lua", f"file={file}", f"texts={folder}/texts", f"out={folder}/out"],
                       check=True, stdout=subprocess.DEVNULL)
        found = list(unpacked((folder / "out").read_bytes()))
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    for i, text in enumerate(texts):
        for k, special in enumerate((True, False)):
            ids = tokenizer.encode(text, add_special_tokens=special).ids
            wanted = [" ".join(map(str, ids)), tokenizer.decode(ids, skip_special_tokens=special) if ids else ""]
            ours = found[4 * i + 2 * k:4 * i + 2 * k + 2]
            assert ours == wanted, f"{file.name}: {text!r}:\n{ours}\nof tokenizers:\n{wanted}"


def main():
    orrery = pathlib.Path(sys.argv[1]) / "orrery"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    files = sorted(path for path in FILES.glob("*.json") if path.name != "texts.json") + [pathlib.Path(p) for p in sys.argv[3:]]
    known = known_characters()
    for number, file in enumerate(files):
        chance = random.Random(number)
        compare(orrery, file, [text_of(chance, known) for _ in range(count)])
    print(f"{len(files)} tokenizers, {count} texts each, with the ids and texts of tokenizers {tokenizers.__version__}")


if __name__ == "__main__":
    main()
