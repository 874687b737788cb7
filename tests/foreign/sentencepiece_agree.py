# SPDX-License-Identifier: Apache-2.0
# Takes: sentencepiece tokenizers
"""Random texts, encoded and decoded by Orrery and by SentencePiece's package from the same models: the same ids and texts.
Where the versions of the library differ, a unigram model may cut repeated characters at other places of equal score.

Arguments: the build tree, how many texts of each model (3000), more models.
"""
import pathlib
import random
import subprocess
import sys
import tempfile

import sentencepiece
from tokenizer_json_agree import known_characters, packed, text_of, unpacked

FILES = pathlib.Path(__file__).resolve().parents[1] / "data" / "files" / "sentencepiece"
SCRIPT = """
local orrery = require "orrery"
local args = orrery.args { file = "", texts = "", out = "" }
local plain = orrery.data.sentencepiece(args.file)
local ended = orrery.data.sentencepiece(args.file, { eos = true })
local file = assert(io.open(args.texts, "rb"))
local bytes = file:read "a"
file:close()
local out = assert(io.open(args.out, "wb"))
local at = 1
while at <= #bytes do
  local text
  text, at = string.unpack("<s4", bytes, at)
  local ids = plain:encode(text):tolist()
  out:write(string.pack("<s4", table.concat(ids, " ")), string.pack("<s4", #ids > 0 and plain:decode(ids) or ""))
  out:write(string.pack("<s4", table.concat(ended:encode(text):tolist(), " ")))
end
out:close()
"""


def score(model, ids):
    return sum(model.get_score(int(each)) for each in ids.split())


def as_likely(model, ours, wanted):
    """Texts are the same, and so are the scores and numbers of their tokens."""
    return ours[1] == wanted[1] and len(ours[0]) == len(wanted[0]) and all(
        abs(score(model, a) - score(model, b)) < 1e-3 for a, b in ((ours[0], wanted[0]), (ours[2], wanted[2])))


def compare(orrery, file, texts):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "texts").write_bytes(packed([text.encode() for text in texts]))
        (folder / "script.lua").write_text(SCRIPT)
        subprocess.run([orrery, "run", "--no-dir", folder / "script.lua", f"file={file}", f"texts={folder}/texts",
                        f"out={folder}/out"], check=True, stdout=subprocess.DEVNULL)
        found = list(unpacked((folder / "out").read_bytes()))
    model = sentencepiece.SentencePieceProcessor(model_file=str(file))
    same = 0
    for i, text in enumerate(texts):
        ids = model.encode(text)
        wanted = [" ".join(map(str, ids)), model.decode(ids) if ids else "", " ".join(map(str, [*ids, model.eos_id()]))]
        ours = found[3 * i:3 * i + 3]
        same += ours == wanted
        assert ours == wanted or as_likely(model, ours, wanted), f"{file.name}: {text!r}:\n{ours}\nof sentencepiece:\n{wanted}"
    return len(texts) - same


orrery = pathlib.Path(sys.argv[1]) / "orrery"
count = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
files = sorted(FILES.glob("*.model")) + [pathlib.Path(path) for path in sys.argv[3:]]
known = known_characters()
other = 0
for number, file in enumerate(files):
    chance = random.Random(number)
    other += compare(orrery, file, [text_of(chance, known) for _ in range(count)])
print(f"{len(files)} models, {count} texts each, with the ids and texts of sentencepiece {sentencepiece.__version__}; "
      f"{other} cut elsewhere at equal scores")
