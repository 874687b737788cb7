# SPDX-License-Identifier: Apache-2.0
# Takes: torch safetensors numpy transformers
"""Hugging Face's transformers load a GPT-2 and a LLaMA that Orrery has trained and saved, config.json with them, and
compute its logits.

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


@unittest.skipIf(MISSING, MISSING)
class WeightsBack(unittest.TestCase):
    def expect_same_logits(self, name, ranks):
        with tempfile.TemporaryDirectory() as folder:
            ids = numpy.random.default_rng(1).integers(0, 61, (3, 24))
            numpy.save(f"{folder}/tokens.npy", ids)
            done = subprocess.run(
                [BUILD / "orrery", "run", "-n", str(ranks), "--no-dir", HERE / "weights_back.lua", f"folder={folder}",
                 f"model={name}"], env=os.environ | {"ORRERY_LUA_PATH": str(HERE.parents[1] / "examples")},
                capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
            for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
                self.assertFalse(info[kind], kind)
            with torch.no_grad():
                theirs = model.eval()(torch.from_numpy(ids)).logits.numpy()
            ours = numpy.load(f"{folder}/logits.npy")
            numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)

    def test_gpt2(self):
        self.expect_same_logits("gpt2", 1)

    def test_llama(self):
        self.expect_same_logits("llama", 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
