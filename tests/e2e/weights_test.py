# SPDX-License-Identifier: Apache-2.0
"""GPT-2 with the weights of Hugging Face's transformers computes their logits, and what it saves is read by their
library. Figures by tests/data/make_gpt2.py. Arguments: the build tree.
"""
import json
import pathlib
import struct
import sys
import tempfile
import unittest

from program import HERE, SOURCE, orrery

GPT2 = SOURCE / "tests/data/files/gpt2"


def floats(path):
    """The numbers of a .npy file of f4."""
    raw = path.read_bytes()
    data = raw[10 + struct.unpack("<H", raw[8:10])[0]:]
    return struct.unpack(f"<{len(data) // 4}f", data)


def header(path):
    raw = path.read_bytes()
    return json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])


def tensors(path):
    """name -> (dtype, shape, bytes)."""
    raw = path.read_bytes()
    begin = 8 + struct.unpack("<Q", raw[:8])[0]
    return {name: (each["dtype"], each["shape"], raw[begin + each["data_offsets"][0]:begin + each["data_offsets"][1]])
            for name, each in header(path).items() if name != "__metadata__"}


class Weights(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_on(self, weights, ranks=1, zero=0):
        return orrery("run", "-n", ranks, HERE / "gpt2_logits.lua", f"weights={weights}", f"tokens={GPT2}/tokens.npy",
                      f"logits={self.folder}/logits.npy", f"save={self.folder}/saved.safetensors", f"zero={zero}",
                      ORRERY_LUA_PATH=str(SOURCE / "examples"))

    def test_logits_are_those_of_transformers(self):
        expected = floats(GPT2 / "logits.npy")
        self.assertEqual(len(expected), 3 * 24 * 61)
        for weights, ranks in (("model.safetensors", 1), ("sharded/model.safetensors.index.json", 2)):
            with self.subTest(weights=weights):
                done = self.run_on(GPT2 / weights, ranks)
                self.assertEqual(done.code, 0, done.err)
                worst = max(abs(a - b) for a, b in zip(floats(self.folder / "logits.npy"), expected, strict=True))
                self.assertLess(worst, 1e-4)
        names = header(self.folder / "saved.safetensors")
        self.assertEqual(names["blocks.2.qkv.weight"]["shape"], [48, 16])

    def test_saved_by_its_map_is_what_transformers_saved(self):
        script = self.folder / "back.lua"
        script.write_text("""local orrery = require "orrery"
local gpt2 = require "models.gpt2"
local args = orrery.args { weights = "", save = "" }
local c = { vocab = 61, positions = 24, dim = 16, heads = 2, layers = 2 }
local model = gpt2.model(c)
model:load_weights(args.weights, { map = gpt2.from_transformers })
model:save_weights(args.save, { map = gpt2.from_transformers, config = gpt2.config(c) })
local function refusal(map) return select(2, pcall(model.save_weights, model, args.save, { map = map })) end
orrery.log("%s", refusal(function(name) return name end))
orrery.log("%s", refusal(orrery.weight_map { { "h.*", "blocks.*" } }))
orrery.log("%s", refusal(orrery.weight_map { { "x", "tok" }, { "x", "pos" }, { "n", "norm" }, { "h.*", "blocks.*" } }))
""")
        theirs = GPT2 / "model.safetensors"
        done = orrery("run", "-n", 2, script, f"weights={theirs}", f"save={self.folder}/saved.safetensors",
                      ORRERY_LUA_PATH=str(SOURCE / "examples"))
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(tensors(self.folder / "saved.safetensors"), tensors(theirs))
        config = json.loads((self.folder / "config.json").read_text())
        self.assertEqual((config["model_type"], config["n_head"], config["vocab_size"]), ("gpt2", 2, 61))
        lines = done.out.splitlines()
        self.assertIn("map is a function from names to paths, which does not tell the way back", lines[0])
        self.assertIn("map has no name for 'head.weight', 'norm.bias', 'norm.weight', ... (4 in all)", lines[1])
        self.assertIn("map has 'x.weight' for 'head.weight' and for 'pos.weight'", lines[2])

    def test_ranks_that_hold_pieces_save_what_one_rank_saves(self):
        saved = []
        for ranks in (1, 2):
            done = self.run_on(GPT2 / "model.safetensors", ranks, zero=3)
            self.assertEqual(done.code, 0, done.err)
            saved.append((self.folder / "saved.safetensors").read_bytes())
        self.assertEqual(saved[0], saved[1])

    def test_several_files_have_what_one_file_has(self):
        script = self.folder / "shards.lua"
        script.write_text("""local orrery = require "orrery"
local nn = orrery.nn
local function made() return nn.sequential { nn.linear(8, 16), nn.relu, nn.linear(16, 4), nn.linear(4, 100) } end
local model, other = made(), made()
local folder = orrery.args { folder = "" }.folder
model:save_weights(folder .. "/one.safetensors")
model:save_weights(folder .. "/model.safetensors", { max_shard_size = "0.8KB" })
other:load_weights(folder .. "/model.safetensors.index.json")
orrery.log("%s", tostring(orrery.digest(model) == orrery.digest(other)))
for _, refused in ipairs { { "model.safetensors", "5 GB" }, { "model", 100 } } do
  orrery.log("%s", select(2, pcall(model.save_weights, model, folder .. "/" .. refused[1], { max_shard_size = refused[2] })))
end
""")
        done = orrery("run", "-n", 2, script, f"folder={self.folder}")
        self.assertEqual(done.code, 0, done.err)
        lines = done.out.splitlines()
        self.assertEqual(lines[0], "true")
        self.assertIn('max_shard_size is 5 GB: bytes, or a size such as "5GB"', lines[1])
        self.assertIn("several files are NAME-00001-of-00006.safetensors: give NAME.safetensors", lines[2])
        index = json.loads((self.folder / "model.safetensors.index.json").read_text())
        whole = header(self.folder / "one.safetensors")
        del whole["__metadata__"]
        self.assertEqual(set(index["weight_map"]), set(whole))
        self.assertEqual(index["metadata"]["total_size"], sum(b - a for a, b in (e["data_offsets"] for e in whole.values())))
        for name, file in index["weight_map"].items():
            self.assertEqual(header(self.folder / file)[name]["shape"], whole[name]["shape"])
        sizes = {file: sum(b - a for name, (a, b) in ((n, e["data_offsets"]) for n, e in header(self.folder / file).items()
                                                      if n != "__metadata__")) for file in index["weight_map"].values()}
        self.assertEqual(sorted(sizes), [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)])
        self.assertLessEqual(sorted(sizes.values())[-2], 800)  # one tensor is larger, and alone

    def test_a_tied_tensor_is_saved_once_and_may_come_twice(self):
        script = self.folder / "tied.lua"
        script.write_text("""local orrery = require "orrery"
local nn, folder = orrery.nn, orrery.args { folder = "" }.folder
local function made(tied)
  return nn.module("Net", function(m)
    m.tok = nn.embedding(8, 4)
    m.head = nn.linear(4, 8, { bias = false, tie = tied and m.tok.weight or nil })
    return function(x) return m.head(m.tok(x)) end
  end)()
end
local tied, apart = made(true), made(false)
tied:save_weights(folder .. "/once.safetensors")
apart:save_weights(folder .. "/twice.safetensors")
orrery.log("%s", select(2, pcall(tied.load_weights, tied, folder .. "/twice.safetensors")))
apart.head.weight:write(apart.tok.weight:read())
apart:save_weights(folder .. "/twice.safetensors")
tied:load_weights(folder .. "/twice.safetensors")
orrery.log("%s", tostring(orrery.digest(tied.tok) == orrery.digest(apart.tok)))
made(true):load_weights(folder .. "/once.safetensors")
""")
        done = orrery("run", "-n", 2, script, f"folder={self.folder}")
        self.assertEqual(done.code, 0, done.err)
        lines = done.out.splitlines()
        self.assertIn("'head.weight' and 'tok.weight' are both for 'tok.weight', with other values", lines[0])
        self.assertEqual(lines[1], "true")
        self.assertEqual(len([name for name in header(self.folder / "once.safetensors") if name != "__metadata__"]), 1)

    def test_a_save_takes_the_place_of_the_one_before(self):
        script = self.folder / "again.lua"
        script.write_text("""local orrery = require "orrery"
local nn = orrery.nn
local function made() return nn.sequential { nn.linear(8, 16), nn.linear(16, 4), nn.linear(4, 100) } end
local model, other = made(), made()
local args = orrery.args { path = "", sizes = "" }
local last = 0
for size in args.sizes:gmatch "%d+" do
  last = last + 1
  model[1].bias:write { last, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 }
  model:save_weights(args.path, { max_shard_size = tonumber(size) })
end
local function loads(path)
  local there, why = pcall(other.load_weights, other, path)
  return there and tostring(orrery.digest(model) == orrery.digest(other)) or ((why:find "is missing" or why:find "No such file") and "missing" or why)
end
orrery.log("%s %s", loads(args.path), loads(args.path .. ".index.json"))
""")
        place = self.folder / "we\"ights"
        place.mkdir()
        (place / "model-notes.safetensors").write_text("mine")
        for sizes, loaded, files in (("100000", "true missing", 1), ("100000 800", "missing true", 4),
                                     ("800 100000", "true missing", 1), ("700 2000", "missing true", 3)):
            for ranks in (1, 2):
                with self.subTest(sizes=sizes, ranks=ranks):
                    done = orrery("run", "-n", ranks, script, f"path={place}/model\".safetensors", f"sizes={sizes}")
                    self.assertEqual(done.code, 0, done.err)
                    self.assertEqual(done.out.strip(), loaded)
                    self.assertEqual(len(list(place.iterdir())), files + 1, list(place.iterdir()))
        json.loads((place / 'model".safetensors.index.json').read_text())
        self.assertEqual((place / "model-notes.safetensors").read_text(), "mine")

    def test_an_index_of_another_program_is_not_removed(self):
        for path in (GPT2 / "sharded").iterdir():
            (self.folder / path.name).write_bytes(path.read_bytes())
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        script = self.folder / "over.lua"
        script.write_text("""local orrery = require "orrery"
orrery.nn.linear(2, 2):save_weights(orrery.args { path = "" }.path)
""")
        done = orrery("run", script, f"path={self.folder}/model.safetensors")
        self.assertEqual(done.code, 1, done.err)
        self.assertIn("model.safetensors.index.json, which another program has written", done.err)
        script.unlink()
        self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, before)

    def test_a_place_that_cannot_be_written_is_named_by_all_ranks(self):
        done = orrery("run", "-n", 2, HERE / "gpt2_logits.lua", f"weights={GPT2}/model.safetensors",
                      f"tokens={GPT2}/tokens.npy", "logits=/dev/null", "save=/nowhere/saved.safetensors",
                      ORRERY_LUA_PATH=str(SOURCE / "examples"))
        self.assertEqual(done.code, 1, done.err)
        for fragment in ("gpt2_logits.lua:", "/nowhere/saved.safetensors cannot be created"):
            self.assertIn(fragment, done.err)

    def test_what_does_not_fit_is_named(self):
        file = self.folder / "other.safetensors"
        whole = (GPT2 / "model.safetensors").read_bytes()
        for old, new, fragments in (
                (b'"transformer.h.0.ln_1.bias"', b'"transformer.h.9.ln_1.bias"', ["has no 'blocks.1.ln1.bias'"]),
                (b"[61,16]", b"[16,61]", ["'transformer.wte.weight' is [16,61]", "[61,16]"]),
                (b'"F32"', b'"F3X"', ["'F3X' is not one of"])):
            with self.subTest(new=new):
                self.assertIn(old, whole)
                file.write_bytes(whole.replace(old, new, 1))
                done = self.run_on(file)
                self.assertEqual(done.code, 1, done.err)
                for fragment in ("gpt2_logits.lua:10:", str(file), *fragments):
                    self.assertIn(fragment, done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
