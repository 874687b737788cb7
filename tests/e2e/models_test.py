# SPDX-License-Identifier: Apache-2.0
"""The examples of today's models learn what their small data holds, with the same bits on one rank and on two.

Arguments: the build tree.
"""
import json
import pathlib
import re
import sys
import tempfile
import unittest

from program import orrery

SENTENCE = "the quick brown fox jumps over the lazy dog. "
LLAMA = ("examples/llama.lua", "steps=60", "dim=32", "layers=2", "ctx=32", "lr=2e-2", "sample=20", "prompt=the qui",
         "temperature=0")
LORA = ("examples/lora.lua", "steps=30", "tune=30", "dim=32", "layers=2", "ctx=16")


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.data = f"data={cls.place}/text"
        pathlib.Path(cls.place, "text").write_text(SENTENCE * 50)

    def run_example(self, *words, ranks=1):
        done = orrery("run", "-n", ranks, *words, "microbatches=2")
        self.assertEqual(done.code, 0, done.err)
        return done.out

    def found(self, pattern, text):
        self.assertRegex(text, pattern)
        return re.search(pattern, text).groups()

    def on_two_ranks(self, text, *words):
        self.assertEqual(self.found("digest (.*)", text),
                         self.found("digest (.*)", self.run_example(*words, ranks=2)))

    def test_llama_samples_from_its_cache_what_it_samples_without(self):
        cached = self.run_example(*LLAMA, self.data)
        self.assertIn(f"\n{SENTENCE[:27]}\n", cached)
        self.assertIn(f"\n{SENTENCE[:27]}\n", self.run_example(*LLAMA, self.data, "cache=false"))
        self.on_two_ranks(cached, *LLAMA, self.data)

    def test_bert_fills_gaps(self):
        words = ("examples/bert.lua", "steps=400", "ctx=8", "numbers=7", "dim=32", "layers=1", "samples=512")
        text = self.run_example(*words)
        filled, gaps = map(int, self.found(r"(\d+) of (\d+) gaps filled", text))
        self.assertGreater(filled, 0.9 * gaps)
        self.on_two_ranks(text, *words)

    def test_t5_turns_sequences_round(self):
        words = ("examples/t5.lua", "steps=400", "ctx=4", "letters=4", "dim=32", "samples=512")
        text = self.run_example(*words)
        [turned] = map(int, self.found(r"(\d+) of 20 sequences", text))
        self.assertGreater(turned, 17)
        self.on_two_ranks(text, *words)

    def test_adapters_are_saved_alone_and_merged(self):
        text = self.run_example(*LORA, self.data, f"save={self.place}")
        raw = (pathlib.Path(self.place) / "adapter_model.safetensors").read_bytes()
        names = set(json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])) - {"__metadata__"}
        self.assertEqual(names, {f"base_model.model.model.layers.{i}.self_attn.{name}_proj.lora_{pair}.weight"
                                 for i in (0, 1) for name in "qv" for pair in "AB"})
        config = json.loads((pathlib.Path(self.place) / "adapter_config.json").read_text())
        self.assertEqual((config["peft_type"], config["r"], config["target_modules"]), ("LORA", 8, ["q_proj", "v_proj"]))
        before, after = map(float, self.found(r"the adapters, .*: loss ([\d.]+) before, ([\d.]+) after", text))
        self.assertLess(after, before - 0.1)
        largest, apart = map(float, self.found(r"logits up to ([\d.]+), no more than ([\d.e-]+) apart", text))
        self.assertLess(apart, 1e-5 * largest)
        loaded = self.run_example(*LORA, self.data, f"load={self.place}")
        self.assertEqual(self.found("digest (.*)", loaded), self.found("digest (.*)", text))
        self.on_two_ranks(text, *LORA, self.data)
        self.on_two_ranks(text, *LORA, self.data, "strategy=pipeline")

    def test_an_autoencoder_makes_up_bars(self):
        words = ("examples/vae.lua", "steps=3000", "show=1")
        text = self.run_example(*words)
        [bars] = map(int, self.found(r"(\d+) of 200 are bars", text))
        self.assertGreater(bars, 100)
        self.on_two_ranks(text, *words)

    def test_a_generator_learns_a_ring(self):
        words = ("examples/gan.lua", "steps=1500")
        text = self.run_example(*words)
        near, modes = map(int, self.found(r"(\d+) of 500 points near (\d) of 8 centres", text))
        self.assertGreater(near, 250)
        self.assertGreater(modes, 5)
        self.on_two_ranks(text, *words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
