# SPDX-License-Identifier: Apache-2.0
"""A GGUF file has the tensors of the safetensors file by llama.cpp's names and in its order of rows, and the fields that it
reads. tests/foreign/gguf_agree.py holds such files against llama.cpp itself. Arguments: the build tree.
"""
import json
import pathlib
import struct
import sys
import tempfile
import unittest

from program import HERE, SOURCE, orrery

TOKENIZERS = SOURCE / "tests/data/files/tokenizer_json"
FORMATS = {4: "I", 5: "i", 6: "f", 7: "?"}
SIZES = {0: 4, 1: 2, 30: 2}


class Gguf:
    """`fields` and `tensors`, name -> (type, [outermost dim first], bytes), of a file of version 3."""

    def __init__(self, path):
        self.raw, self.at = path.read_bytes(), 0
        magic, version, tensors, fields = self.take("<4sIQQ")
        assert (magic, version) == (b"GGUF", 3)
        self.fields = {self.text(): self.value(*self.take("<I")) for _ in range(fields)}
        infos = [(self.text(), [self.take("<Q")[0] for _ in range(*self.take("<I"))], *self.take("<IQ"))
                 for _ in range(tensors)]
        begin, self.tensors = self.at + -self.at % 32, {}
        for name, dims, kind, offset in infos:
            assert offset % 32 == 0
            bytes_in_it = SIZES[kind]
            for dim in dims:
                bytes_in_it *= dim
            self.tensors[name] = kind, dims[::-1], self.raw[begin + offset:begin + offset + bytes_in_it]
            self.end = begin + offset + bytes_in_it + -bytes_in_it % 32

    def take(self, form):
        found = struct.unpack_from(form, self.raw, self.at)
        self.at += struct.calcsize(form)
        return found

    def text(self):
        length, = self.take("<Q")
        self.at += length
        return self.raw[self.at - length:self.at].decode()

    def value(self, kind):
        if kind == 9:
            of, count = self.take("<IQ")
            return [self.value(of) for _ in range(count)]
        return self.text() if kind == 8 else self.take("<" + FORMATS[kind])[0]


def tensors(path):
    raw = path.read_bytes()
    begin = 8 + struct.unpack("<Q", raw[:8])[0]
    return {name: (each["shape"], raw[begin + each["data_offsets"][0]:begin + each["data_offsets"][1]])
            for name, each in json.loads(raw[8:begin]).items() if name != "__metadata__"}


def rows_of(shape, data):
    """Of four bytes each."""
    return [data[4 * shape[1] * i:4 * shape[1] * (i + 1)] for i in range(shape[0])]


def turned(shape, data):
    rows, columns = shape
    return b"".join(data[4 * (columns * i + j):][:4] for j in range(columns) for i in range(rows))


def neighbours(shape, data, heads):
    """Row 2 i + j of a head is row half j + i of it."""
    rows, depth = rows_of(shape, data), shape[0] // heads
    return b"".join(rows[head * depth + depth // 2 * j + i] for head in range(heads) for i in range(depth // 2)
                    for j in range(2))


class Saved(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_script(self, *words, ranks=1):
        done = orrery("run", "-n", ranks, HERE / "gguf.lua", f"folder={self.folder}", *words,
                      ORRERY_LUA_PATH=str(SOURCE / "examples"))
        self.assertEqual(done.code, 0, done.err)
        return done

    def saved(self, *words, ranks=1):
        self.run_script(*words, ranks=ranks)
        found = Gguf(self.folder / "model.gguf")
        self.assertEqual(found.end, len(found.raw))
        return found, tensors(self.folder / "model.safetensors")

    def test_tensors_of_gpt2(self):
        for ranks in (1, 2):
            found, theirs = self.saved("model=gpt2", ranks=ranks)
            names = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
                     "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
            self.assertEqual(len(found.tensors), len(theirs))
            for name, (shape, data) in theirs.items():
                stem, kind = name.removeprefix("transformer.").rsplit(".", 1)
                layer = stem.split(".")[1] if stem.startswith("h.") else None
                part = stem.split(".", 2)[2] if layer else stem
                if ".c_" in stem and kind == "weight":
                    shape, data = shape[::-1], turned(shape, data)
                where = f"blk.{layer}." if layer else ""
                self.assertEqual(found.tensors[f"{where}{names[part]}.{kind}"], (0, shape, data), name)
            self.assertEqual({name: value for name, value in found.fields.items() if not name.endswith("epsilon")}, {
                "general.architecture": "gpt2", "general.alignment": 32, "general.file_type": 0, "gpt2.context_length": 6,
                "gpt2.embedding_length": 4, "gpt2.block_count": 2, "gpt2.feed_forward_length": 16, "gpt2.vocab_size": 8,
                "gpt2.attention.head_count": 2, "tokenizer.ggml.model": "none"})
            self.assertAlmostEqual(found.fields["gpt2.attention.layer_norm_epsilon"], 1e-5, 12)

    def test_rows_of_llama(self):
        found, theirs = self.saved("model=llama")
        for name, heads, other in (("q_proj", 4, "attn_q"), ("k_proj", 2, "attn_k")):
            shape, data = theirs[f"model.layers.0.self_attn.{name}.weight"]
            self.assertEqual(found.tensors[f"blk.0.{other}.weight"], (0, shape, neighbours(shape, data, heads)))
        self.assertEqual(found.tensors["blk.0.attn_v.weight"][1:], theirs["model.layers.0.self_attn.v_proj.weight"])
        self.assertEqual(found.tensors["output.weight"][1:], theirs["lm_head.weight"])
        self.assertEqual(found.fields["llama.attention.head_count_kv"], 2)
        self.assertEqual(found.fields["llama.rope.dimension_count"], 8)

    def test_sixteen_bits_but_for_vectors(self):
        for dtype, kind, file_type in (("f16", 1, 1), ("bf16", 30, 32)):
            found, theirs = self.saved("model=gpt2", f"dtype={dtype}")
            self.assertEqual(found.tensors["token_embd.weight"], (kind, *theirs["transformer.wte.weight"]))
            form = "<5e" if kind == 1 else "<5H"
            values = struct.unpack(form, theirs["transformer.ln_f.weight"][1])
            if kind == 30:
                values = struct.unpack("<5f", struct.pack("<5I", *(v << 16 for v in values)))
            self.assertEqual(found.tensors["output_norm.weight"], (0, [5], struct.pack("<5f", *values)))
            self.assertEqual(found.fields["general.file_type"], file_type)

    def test_tokens_of_byte_level(self):
        for place, pre, count in (("llama3.json", "llama-bpe", 335), ("gpt2.json", "gpt-2", 331)):
            model = json.loads((TOKENIZERS / place).read_text())
            found = self.saved("model=gpt2", f"vocab={count}", f"tokenizer={TOKENIZERS / place}")[0].fields
            self.assertEqual((found["tokenizer.ggml.model"], found["tokenizer.ggml.pre"]), ("gpt2", pre))
            tokens = {i: token for token, i in model["model"]["vocab"].items()}
            tokens |= {each["id"]: each["content"] for each in model["added_tokens"]}
            self.assertEqual(found["tokenizer.ggml.tokens"], [tokens.get(i, f"[PAD{i}]") for i in range(count)])
            kinds = {each["id"]: 3 if each["special"] else 4 for each in model["added_tokens"]}
            self.assertEqual(found["tokenizer.ggml.token_type"],
                             [kinds.get(i, 1 if i in tokens else 5) for i in range(count)])
            self.assertEqual(found["tokenizer.ggml.merges"], [" ".join(each) for each in model["model"]["merges"]])
        folder = SOURCE / "tests/data/files/bpe"
        found = self.saved("model=gpt2", "vocab=1000", f"tokenizer={folder}")[0].fields
        merges = (folder / "merges.txt").read_text().splitlines()
        self.assertEqual(found["tokenizer.ggml.merges"], [each for each in merges if not each.startswith("#version")])

    def test_a_token_that_json_writes_as_two(self):
        model = json.loads((TOKENIZERS / "gpt2.json").read_text())
        model["added_tokens"].append(dict(model["added_tokens"][0], id=330, content="<\U0001F642>"))
        place = self.folder / "escaped.json"
        place.write_text(json.dumps(model))
        self.assertIn("\\ud83d\\ude42", place.read_text())
        found = self.saved("model=gpt2", "vocab=331", f"tokenizer={place}")[0].fields
        self.assertEqual(found["tokenizer.ggml.tokens"][330], "<\U0001F642>")

    def test_tokens_of_sentencepiece(self):
        model = json.loads((TOKENIZERS / "llama2.json").read_text())
        found = self.saved("model=llama", "vocab=383", f"tokenizer={TOKENIZERS / 'llama2.json'}")[0].fields
        self.assertEqual(found["tokenizer.ggml.model"], "llama")
        tokens, scores = found["tokenizer.ggml.tokens"], found["tokenizer.ggml.scores"]
        made = [a + b for a, b in model["model"]["merges"]]
        self.assertEqual(sorted(made, key=lambda token: -scores[tokens.index(token)]), made)
        kinds = found["tokenizer.ggml.token_type"]
        self.assertEqual({kinds[i] for i, token in enumerate(tokens) if token.startswith("<0x")}, {6})
        self.assertEqual([kinds[tokens.index(token)] for token in ("<unk>", "<s>", "</s>")], [2, 3, 3])
        self.assertEqual((found["tokenizer.ggml.bos_token_id"], found["tokenizer.ggml.add_bos_token"],
                          found["tokenizer.ggml.add_eos_token"], found["tokenizer.ggml.add_space_prefix"]), (1, True, False, True))

    def test_what_has_no_place_is_refused(self):
        lines = self.run_script("model=gpt2", f"refuse={TOKENIZERS / 't5.json'}").out.splitlines()
        for line, wanted in zip(lines, (
                "takes map and config", "takes map and config", "max_shard_size is for safetensors", "model_type is 'rwkv'",
                "has no number for GGUF's 'block_count'", "rope_scaling", "activation_function is 'relu'",
                "t5.json: GGUF has no name for Unigram", "/nowhere is no tokenizer.json", "GGUF has no name for 'other.weight'",
                "tokenizer is for a file that ends in .gguf"), strict=True):
            self.assertIn(wanted, line)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
