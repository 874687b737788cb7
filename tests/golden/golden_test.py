# SPDX-License-Identifier: Apache-2.0
"""Training follows PyTorch's losses and gradient norms, and a batch cut into microbatches that are
uneven, padded and weighted gives the loss of the whole batch.

Arguments: the build tree. The figures come from make.py.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
FIGURES = json.loads((HERE / "figures.json").read_text())
TRANSFORMERS = json.loads((HERE / "transformers.json").read_text())
KERNELS = ("reference", "cpu")
EVERY = ("bert", "t5", "llama", "lora")
# Masks, biases, grouped heads and rotary positions on parts: by heads, by places, by layers, by pieces.
STACKS = [
    ("strategy.tensor {}", 2, EVERY),
    ("strategy.context {}", 2, ("bert", "llama", "lora")),
    ("strategy.context { kind = 'ulysses' }", 2, ("bert", "llama")),
    ("strategy.context { kind = 'ring' }", 2, ("llama",)),
    ("strategy.context { fields = { 'x' } }", 2, ("t5",)),
    ("strategy.context { fields = { 'y' } }", 2, ("t5",)),
    ("strategy.pipeline {}", 2, EVERY),
    ("{ strategy.data {}, strategy.zero { stage = 3 }, strategy.recompute {}, strategy.accumulate {} }", 2, EVERY),
]


def run(script, kernels, *arguments, ranks=1):
    """What the script prints."""
    done = subprocess.run(
        [BUILD / "orrery", "run", "-n", str(ranks), "--kernels", kernels, HERE / script,
         *arguments], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{script} {arguments} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def lines(script, kernels, *arguments, ranks=1):
    """The script's lines as pairs (loss, gradient norm)."""
    done = run(script, kernels, *arguments, ranks=ranks)
    return [tuple(map(float, line.split())) for line in done.splitlines()]


def rows(script, kernels, *arguments, ranks=1):
    """Those of a script that is told where the golden files are."""
    return lines(script, kernels, f"dir={HERE}", *arguments, ranks=ranks)


def error(x, wanted):
    return abs(x - wanted) / abs(wanted)


class Golden(unittest.TestCase):
    def follow(self, model, kernels, microbatches=1, figures="", script="train.lua"):
        self.agree(rows(script, kernels, f"model={model}", f"microbatches={microbatches}"), FIGURES[figures or model])

    def agree(self, found, figures):
        wanted = list(zip(figures["loss"], figures["grad_norm"]))
        self.assertGreaterEqual(len(found), len(wanted))
        for step, (ours, theirs) in enumerate(zip(found, wanted), 1):
            for what, x, y in zip(("loss", "gradient norm"), ours, theirs):
                self.assertLess(error(x, y), 1e-5, f"{what} of step {step} is {x}, wanted {y}")

    def test_mlp(self):
        for kernels in KERNELS:
            with self.subTest(kernels):
                self.follow("mlp", kernels)

    def test_gpt(self):
        for kernels in KERNELS:
            with self.subTest(kernels):
                self.follow("gpt", kernels)

    def test_adversarial(self):
        """By PyTorch's figures, and with the same bits on more ranks and from checkpoints."""
        wanted = json.loads((HERE / "adversarial.json").read_text())
        for kernels in KERNELS:
            for ours, theirs in zip(lines("adversarial.lua", kernels), wanted, strict=True):
                self.assertLess(max(map(error, ours, theirs)), 1e-5, (kernels, ours, theirs))
        alone = lines("adversarial.lua", "cpu", "microbatches=4")
        for ranks, stack in ((2, "strategy.data {}"), (3, "strategy.data {}, strategy.zero { stage = 3 }")):
            with self.subTest(stack=stack), tempfile.TemporaryDirectory() as directory:
                found = lines("adversarial.lua", "cpu", "microbatches=4", f"stack={stack}", f"again={directory}", ranks=ranks)
                self.assertEqual(found, alone)

    def test_optimizers(self):
        """By PyTorch's figures, and with the same bits on more ranks, in pieces and from a checkpoint."""
        for kind, wanted in json.loads((HERE / "optimizers.json").read_text()).items():
            with self.subTest(kind), tempfile.TemporaryDirectory() as directory:
                steps = f"steps={len(wanted) - 1}"
                for kernels in KERNELS:
                    found = lines("optimizers.lua", kernels, f"kind={kind}", steps)
                    for [ours], theirs in zip(found, wanted, strict=True):
                        self.assertLess(error(ours, theirs), 1e-5, (kernels, ours, theirs))
                alone, shared = (lines("optimizers.lua", "cpu", f"kind={kind}", steps, "microbatches=4", *more, ranks=ranks)
                                 for ranks, more in ((1, ()), (3, (f"again={directory}", "stack=strategy.data {}, strategy.zero { stage = 3 }"))))
                self.assertEqual(shared, alone)

    def test_lbfgs(self):
        """By PyTorch's figures in f64, with as many evaluations; the same bits on ranks that go on from a file."""
        for kind, wanted in json.loads((HERE / "lbfgs.json").read_text()).items():
            with self.subTest(kind), tempfile.TemporaryDirectory() as directory:
                for kernels in KERNELS:
                    found = [x for [x] in lines("lbfgs.lua", kernels, f"kind={kind}")]
                    self.assertEqual(found[-2], wanted[-2])
                    for ours, theirs in zip(found, wanted, strict=True):
                        self.assertLess(error(ours, theirs), 1e-7, (kernels, ours, theirs))
                alone, shared = (run("lbfgs.lua", "cpu", f"kind={kind}", "microbatches=4", *more, ranks=ranks)
                                 for ranks, more in ((1, ()), (3, (f"again={directory}",))))
                self.assertEqual(shared, alone)

    def test_averages(self):
        """By PyTorch's AveragedModel in f64; the same bits on ranks that go on from a file."""
        for kind, wanted in json.loads((HERE / "averages.json").read_text()).items():
            with self.subTest(kind), tempfile.TemporaryDirectory() as directory:
                for kernels in KERNELS:
                    found = lines("averages.lua", kernels, f"kind={kind}")
                    for ours, theirs in zip(found, wanted, strict=True):
                        for x, y in zip(ours, theirs, strict=True):
                            self.assertLess(error(x, y), 1e-5, (kernels, ours, theirs))
                alone, shared = (run("averages.lua", "cpu", f"kind={kind}", "microbatches=4", *more, ranks=ranks)
                                 for ranks, more in ((1, ()), (3, (f"again={directory}", "stack=strategy.data {}, strategy.zero { stage = 3 }"))))
                self.assertEqual(shared, alone)

    def test_schedules(self):
        """By PyTorch's rates over 100 steps."""
        wanted = json.loads((HERE / "schedules.json").read_text())
        found = {name: rates for name, *rates in map(str.split, run("schedules.lua", "cpu").splitlines())}
        self.assertEqual(sorted(found), sorted(wanted))
        for name, rates in wanted.items():
            for step, (ours, theirs) in enumerate(zip(map(float, found[name]), rates, strict=True), 1):
                self.assertLess(abs(ours - theirs), 1e-9 * theirs + 1e-15, f"{name}, step {step}: {ours}, wanted {theirs}")

    def test_recurrent(self):
        for model in ("lstm", "gru"):
            for kernels in KERNELS:
                with self.subTest(model=model, kernels=kernels):
                    self.follow(model, kernels, script="recurrent.lua")
            self.follow(model, "cpu", microbatches=3, script="recurrent.lua")

    def test_recurrent_on_ranks(self):
        for model in ("lstm", "gru"):
            one, two = (rows("recurrent.lua", "cpu", f"model={model}", "microbatches=3", ranks=ranks)
                        for ranks in (1, 2))
            self.assertEqual(one, two, model)

    def test_convolutions(self):
        for kernels in KERNELS:
            for model in ("cnn", "depthwise"):
                with self.subTest(kernels=kernels, model=model):
                    self.follow(model, kernels)

    def test_each_microbatch_has_its_statistics(self):
        for model in ("cnn", "depthwise"):
            self.follow(model, "cpu", 3, f"{model} in parts")

    def test_convolutions_on_ranks(self):
        for model in ("cnn", "depthwise"):
            one, two, three = (rows("train.lua", "cpu", f"model={model}", "microbatches=3", ranks=ranks)
                               for ranks in (1, 2, 3))
            self.assertEqual(one, two, model)
            self.assertEqual(one, three, model)

    def test_gpt_in_microbatches(self):
        self.follow("gpt", "cpu", microbatches=4)

    def test_gpt_on_ranks(self):
        # Three microbatches on two ranks: one rank completes a node of the tree, the other a leaf.
        for kernels in KERNELS:
            one, two = (rows("train.lua", kernels, "model=gpt", "microbatches=3", ranks=ranks)
                        for ranks in (1, 2))
            self.assertEqual(one, two, kernels)

    def test_transformers(self):
        for model in EVERY:
            for kernels in KERNELS:
                with self.subTest(model, kernels=kernels):
                    self.agree(rows("transformers.lua", kernels, f"model={model}"), TRANSFORMERS[model])

    def test_transformers_on_ranks(self):
        for model in EVERY:
            with self.subTest(model):
                found = [rows("transformers.lua", "cpu", f"model={model}", "microbatches=3", ranks=ranks)
                         for ranks in (1, 2, 3)]
                self.agree(found[0], TRANSFORMERS[model])
                self.assertEqual(found, found[:1] * 3)

    def test_transformers_in_stacks(self):
        for stack, ranks, models in STACKS:
            for model in models:
                with self.subTest(model, stack=stack):
                    self.agree(rows("transformers.lua", "cpu", f"model={model}", f"stack={stack}", "microbatches=2",
                                    ranks=ranks), TRANSFORMERS[model])


class Layers(unittest.TestCase):
    def test_results_and_gradients(self):
        for kernels in KERNELS:
            with self.subTest(kernels):
                done = run("layers.lua", kernels)
                found = {name.strip(): list(map(float, figures.split())) for name, figures in
                         re.findall(r"^([a-z_0-9 ]*?) (-?[0-9.].*)$", done, re.MULTILINE)}
                self.assertEqual(sorted(found), sorted(FIGURES["layers"]))
                for name, wanted in FIGURES["layers"].items():
                    self.assertEqual(len(found[name]), len(wanted), name)
                    for x, y in zip(found[name], wanted):
                        self.assertLess(abs(x - y), 1e-5 * max(1, abs(y)), f"{name}: {found[name]}, wanted {wanted}")


class Apart(unittest.TestCase):
    @staticmethod
    def found(microbatches, stack="", ranks=1, only="*"):
        done = run("apart.lua", "cpu", f"microbatches={microbatches}", f"stack={stack}", f"only={only}", ranks=ranks)
        return {name: figures for name, *figures in map(str.split, done.splitlines())}

    def near(self, found, wanted):
        self.assertEqual(sorted(found), sorted(wanted))
        for name, figures in wanted.items():
            for x, y in zip(found[name][:2], figures[:2]):
                self.assertLess(error(float(x), float(y)), 2e-6, (name, found[name], figures))

    def test_ragged_batches(self):
        """Losses and layers train to the same bits on several ranks, and to the numbers of the whole batch."""
        parts = self.found(4)
        self.near(parts, self.found(1))
        for ranks, stack in ((3, "strategy.data {}"), (3, "strategy.data {}, strategy.zero { stage = 3 }")):
            self.assertEqual(parts, self.found(4, stack, ranks), stack)

    def test_cut_layers(self):
        for stack in ("strategy.tensor {}", "strategy.pipeline {}"):
            self.near(self.found(2, stack, 2, "*coder_layer"), self.found(2, only="*coder_layer"))


class Batches(unittest.TestCase):
    def agree(self, case):
        wanted = FIGURES["batches"][case]
        for kernels in KERNELS:
            [whole] = rows("batches.lua", kernels, f"case={case}")
            self.assertLess(error(whole[0], wanted["loss"]), 1e-5)
            self.assertLess(error(whole[1], wanted["grad_norm"]), 1e-5)
            for microbatches, ranks in ((2, 1), (3, 1), (5, 1), (7, 1), (9, 1), (9, 3)):
                with self.subTest(kernels=kernels, microbatches=microbatches, ranks=ranks):
                    [cut] = rows("batches.lua", kernels, f"case={case}",
                                 f"microbatches={microbatches}", ranks=ranks)
                    self.assertLess(error(cut[0], whole[0]), 1e-6)
                    self.assertLess(error(cut[1], whole[1]), 1e-5)

    def test_uneven(self):
        self.agree("even")

    def test_weighted_and_padded(self):
        self.agree("weighted")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
