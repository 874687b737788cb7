# SPDX-License-Identifier: Apache-2.0
# Takes: accelerate xllamacpp gguf numpy tokenizers torch transformers
"""llama.cpp and Hugging Face's transformers load a GPT-2 and a LLaMA that Orrery has trained and saved as GGUF, and
compute its logits; llama.cpp has the ids of the tokenizer.json that was saved into the file.

Arguments: the build tree.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import gguf
import numpy
import tokenizers
import torch
import transformers
import xllamacpp

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
TOKENIZERS = HERE.parent / "data/files/tokenizer_json"
WORDS = ["the", "then", "hello", "world", "It's", "12345", "x=1;", "\n\n", "naïve", "日本", "🙂", "  ", "\t", "we'll"]


class Server:
    """llama.cpp's own, over its port."""

    def __init__(self, path):
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 64, 1, False, -1
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        self.server = xllamacpp.Server(params)

    def ask(self, page, **question):
        request = urllib.request.Request(f"{self.server.listening_address}/{page}", json.dumps(question).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def logits_after(self, ids, count, drawn):
        """Of the token that follows, but for a constant; drawn is one that is whole characters, or there are none."""
        found = self.ask("completion", prompt=ids, n_predict=1, n_probs=count, cache_prompt=False,
                         logit_bias=[[drawn, 1000]])
        logits = numpy.full(count, numpy.nan)
        for each in found["completion_probabilities"][0]["top_logprobs"]:
            logits[each["id"]] = each["logprob"]
        return logits


def without_constant(logits):
    return logits - logits.mean(-1, keepdims=True)


class Gguf(unittest.TestCase):
    def made(self, name, tokenizer, folder):
        known = tokenizers.Tokenizer.from_file(str(TOKENIZERS / tokenizer))
        self.ids = numpy.random.default_rng(1).integers(3, known.get_vocab_size(), (3, 24))
        numpy.save(f"{folder}/tokens.npy", self.ids)
        done = subprocess.run(
            [BUILD / "orrery", "run", "-n", "2", "--no-dir", HERE / "gguf_agree.lua", f"folder={folder}", f"model={name}",
             f"tokenizer={TOKENIZERS / tokenizer}", f"vocab={known.get_vocab_size()}"],
            env=os.environ | {"ORRERY_LUA_PATH": str(HERE.parents[1] / "examples")},
            capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return known, numpy.load(f"{folder}/logits.npy")

    def expect_agreement(self, name, tokenizer, bound=1e-4):
        with tempfile.TemporaryDirectory() as folder:
            known, ours = self.made(name, tokenizer, folder)
            reader = gguf.GGUFReader(f"{folder}/model.gguf")
            self.assertEqual(reader.fields["general.architecture"].contents(), name)
            self.agree_in_transformers(folder, ours)
            server = Server(f"{folder}/model.gguf")
            worst = 0
            for row, ids in enumerate(self.ids.tolist()):
                for length in (1, 2, 7, 23):
                    theirs = server.logits_after(ids[:length], ours.shape[-1], known.token_to_id("a"))
                    error = without_constant(ours[row, length - 1]) - without_constant(theirs)
                    worst = max(worst, abs(error).max())
            print(f"{name}: logits of llama.cpp up to {worst:.1e} apart, the largest {abs(ours).max():.1f}")
            self.assertLess(worst, bound)
            self.agree_in_ids(server, known)

    def agree_in_transformers(self, folder, ours):
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file="model.gguf", dtype=torch.float32)
        with torch.no_grad():
            theirs = model.eval()(torch.from_numpy(self.ids)).logits.numpy()
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)

    def agree_in_ids(self, server, known):
        draw = random.Random(1)
        for _ in range(300):
            text = "".join(draw.choice(WORDS) + draw.choice(["", " "]) for _ in range(draw.randint(1, 8)))
            theirs = server.ask("tokenize", content=text, add_special=True)["tokens"]
            self.assertEqual(theirs, known.encode(text).ids, repr(text))

    def test_gpt2(self):
        self.expect_agreement("gpt2", "gpt2.json", 1e-3)  # its GELU is a table of 16 bits

    def test_llama_with_sentencepiece(self):
        self.expect_agreement("llama", "llama2.json")

    def test_llama_with_bytes(self):
        self.expect_agreement("llama", "llama3.json")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
