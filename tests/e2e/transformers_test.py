# SPDX-License-Identifier: Apache-2.0
"""BERT, T5, ViT, Mixtral and Qwen3-MoE with the weights of Hugging Face's transformers compute their logits, and save what they have loaded.
Figures by tests/data/make_transformers.py; tests/foreign/weights_back.py loads what was trained here there. Arguments:
the build tree.
"""
import json
import pathlib
import sys
import tempfile
import unittest

from program import HERE, SOURCE, orrery
from weights_test import floats, tensors

FILES = SOURCE / "tests/data/files"
KINDS = {"bert": "BertForMaskedLM", "t5": "T5ForConditionalGeneration", "vit": "ViTForImageClassification",
         "mixtral": "MixtralForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM"}


class Transformers(unittest.TestCase):
    def test_logits_and_what_is_saved(self):
        for name, architecture in KINDS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                done = orrery("run", HERE / "transformers.lua", f"model={name}", f"files={FILES / name}", f"save={folder}",
                              ORRERY_LUA_PATH=str(SOURCE / "examples"))
                self.assertEqual(done.code, 0, done.err)
                saved = pathlib.Path(folder)
                expected = floats(FILES / name / "logits.npy")
                worst = max(abs(a - b) for a, b in zip(floats(saved / "logits.npy"), expected, strict=True))
                self.assertLess(worst, 1e-5)
                self.assertEqual(tensors(saved / "model.safetensors"), tensors(FILES / name / "model.safetensors"))
                config = json.loads((saved / "config.json").read_text())
                self.assertEqual((config["architectures"], config["model_type"]), ([architecture], name))

    def test_old_names_of_norms(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "old.lua"
            script.write_text("""local bert = require "models.bert"
assert(bert.from_old "bert.encoder.layer.3.output.LayerNorm.gamma" == "blocks.4.ln2.weight")
assert(bert.from_old "embeddings.LayerNorm.beta" == "norm.bias")
assert(bert.from_old "cls.seq_relationship.weight" == nil)
""")
            done = orrery("run", script, ORRERY_LUA_PATH=str(SOURCE / "examples"))
            self.assertEqual(done.code, 0, done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
