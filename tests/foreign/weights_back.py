# SPDX-License-Identifier: Apache-2.0
# Takes: torch safetensors numpy transformers
"""Hugging Face's transformers load a GPT-2, LLaMA, BERT, T5, ViT, Mixtral and Qwen3-MoE that Orrery has trained and saved, config.json with
them, and compute its logits.

Arguments: the build tree. It needs the packages torch and transformers, and is skipped without them.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
    import torch
    import transformers
    MISSING = ""
except ImportError as missing:
    MISSING = f"{missing}; pip install torch transformers"

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@unittest.skipIf(MISSING, MISSING)
class WeightsBack(unittest.TestCase):
    def run_script(self, script, *words):
        done = subprocess.run([BUILD / "orrery", "run", "--no-dir", script, *words], check=False, capture_output=True,
                              text=True, timeout=300, env=os.environ | {"ORRERY_LUA_PATH": str(ROOT / "examples")})
        self.assertEqual(done.returncode, 0, done.stderr)

    def expect_same_logits(self, folder, kind, **inputs):
        model, info = kind.from_pretrained(folder, output_loading_info=True)
        for trouble in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            self.assertFalse(info[trouble], trouble)
        with torch.no_grad():
            theirs = model.eval()(**{name: torch.from_numpy(value) for name, value in inputs.items()}).logits.numpy()
        ours = numpy.load(f"{folder}/logits.npy")
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)

    def test_language_models(self):
        for name in ("gpt2", "llama"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                ids = numpy.random.default_rng(1).integers(0, 61, (3, 24))
                numpy.save(f"{folder}/tokens.npy", ids)
                self.run_script(HERE / "weights_back.lua", f"folder={folder}", f"model={name}")
                self.expect_same_logits(folder, transformers.AutoModelForCausalLM, input_ids=ids)

    def expect_of_files(self, name, kind, x, y=None):
        files = ROOT / "tests/data/files" / name
        with tempfile.TemporaryDirectory() as folder:
            self.run_script(ROOT / "tests/e2e/transformers.lua", f"model={name}", f"files={files}", f"save={folder}", "steps=20")
            inputs = {x: numpy.load(files / "x.npy")}
            if y:
                inputs |= {y: numpy.load(files / "y.npy"), "attention_mask": (inputs[x] != 0).astype(int)}
            self.expect_same_logits(folder, kind, **inputs)

    def test_bert(self):
        self.expect_of_files("bert", transformers.AutoModelForMaskedLM, "input_ids", "token_type_ids")

    def test_t5(self):
        self.expect_of_files("t5", transformers.AutoModelForSeq2SeqLM, "input_ids", "decoder_input_ids")

    def test_mixtures(self):
        for name in ("mixtral", "qwen3_moe"):
            with self.subTest(name):
                self.expect_of_files(name, transformers.AutoModelForCausalLM, "input_ids")

    def test_vit(self):
        self.expect_of_files("vit", transformers.AutoModelForImageClassification, "pixel_values")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
