# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism end to end: one process' losses to rounding, alone and in stacks; the stack's other
strategies stay EXACT, so that every stack over the same tensor ranks has the same bits. With fixed chunks
any number of tensor ranks has them.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import unittest

from close import assert_close
from program import HERE, SOURCE, orrery, sampled
from sweep import Sweeping, Training

# What follows `strategy.tensor{ size = N`, and stacks with it on N times as many ranks: (factor, stack).
KINDS = ["", ", sequence = true", ", vocab = false", ", sequence = true, vocab = false",
         ', column = { "blocks.*.mlp.1" }, row = { "blocks.*.mlp.3" }, vocab = false']
STACKS = [
    (2, "{ strategy.data{ size = 2 }, TENSOR }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{}, TENSOR, strategy.accumulate{} }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{ stage = 3 }, TENSOR }"),
    (1, "{ TENSOR, strategy.recompute{} }"),
    (2, "{ strategy.pipeline{ size = 2 }, TENSOR }"),
    (4, '{ strategy.pipeline{ size = 2, schedule = "zb1" }, strategy.data{ size = 2 }, strategy.zero{}, TENSOR, '
        "strategy.recompute{} }"),
]

# What follows `chunks = 8, size = N`, and the words of the script, on which 1, 2 and 4 ranks have equal bits.
CHUNKED = [("", ()), ("", ("tie=false", "optimizer=lua")), ("", ("vocab=99",)), (", vocab = false", ()),
           (", sequence = true", ()), (", sequence = true", ("vocab=101", "tie=false", "optimizer=sgd")),
           ("", ("model=mlp", "optimizer=lars"))]
CHUNKED_STACKS = [
    (2, "{ strategy.data{ size = 2 }, TENSOR }"),
    (2, "{ strategy.pipeline{ size = 2 }, TENSOR }"),
    (4, '{ strategy.pipeline{ size = 2, schedule = "zb1" }, strategy.data{ size = 2 }, TENSOR, strategy.recompute{} }'),
    (2, '{ strategy.data{ size = 2 }, strategy.zero{ cut = "tensor" }, TENSOR, strategy.accumulate{} }'),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{}, TENSOR }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{ stage = 3 }, TENSOR }"),
]


class Tensor(Sweeping):
    def start(self, command, stack, ranks, *words, name="strategies.lua"):
        script = pathlib.Path(self.folder.name) / name
        script.write_text((HERE / name).read_text().replace("STACK", stack))
        return orrery(command, *["--details"] * (command == "plan"), "-n", ranks, script, *words)

    def run_stack(self, stack, ranks, *words, name="strategies.lua"):
        """What it prints, but for what is computed outside of the run."""
        lines = self.sweep.lines(Training(stack, ranks, words, name))
        return [line for line in lines if not line.startswith("outside ")]

    def one_process(self, *words):
        return self.run_stack("nil", 1, *words)

    def assert_as(self, trainings, alone):
        """Each training prints what its like in `alone` does."""
        self.sweep.run([*alone, *trainings])
        for training, other in zip(trainings, alone, strict=True):
            with self.subTest(training=training):
                self.assertGreater(len(self.sweep.lines(other)), 3)
                self.assertEqual(self.sweep.lines(training), self.sweep.lines(other))

    def test_fewer_columns_than_chunks(self):
        alone = orrery("run", HERE / "few_heads.lua")
        cut = orrery("run", "-n", 2, HERE / "few_heads.lua", "tensor=2", "chunks=4")
        self.assertEqual(len(alone.out.splitlines()), 3)
        self.assertEqual((cut.code, cut.out), (0, alone.out), cut.err)

    def test_grouped_heads(self):
        """Two heads of keys and values: they divide over two ranks, and each of four has one of them."""
        for words in ((), ("window=5",), ("window=5", "causal=false"), ("kv_heads=1",), ("drop=0.2",)):
            alone = self.run_stack("nil", 1, *words, name="grouped.lua")
            self.assertEqual(len(alone), 5)
            for size, kind in ((2, ""), (4, ", sequence = true")):
                with self.subTest(words=words, size=size):
                    assert_close(self, self.run_stack(f"strategy.tensor{{ size = {size}{kind} }}", size, *words,
                                                      name="grouped.lua"), alone)
        for size in (2, 4):
            self.assertEqual(self.run_stack(f"strategy.tensor{{ size = {size}, chunks = 4 }}", size, "window=5", name="grouped.lua"),
                             self.run_stack("strategy.tensor{ size = 1, chunks = 4 }", 1, "window=5", name="grouped.lua"))
            plan = self.start("plan", f"strategy.tensor{{ size = {size} }}", size, name="grouped.lua")
            self.assertEqual((plan.code, plan.err), (0, ""))
            self.assertNotIn("cannot work on parts", plan.out)

    def test_what_several_stages_read(self):
        """A sum over ranks that a later stage reads first, then an earlier one or a result of the step."""
        for early in ("early=true", "early=false"):
            with self.subTest(early=early):
                alone = orrery("run", "-n", 2, HERE / "branches.lua", "tensor=2", early)
                stages = orrery("run", "-n", 4, HERE / "branches.lua", "tensor=2", "pipe=2", early)
                self.assertEqual(len(alone.out.splitlines()), 9)
                self.assertEqual((stages.code, stages.out), (0, alone.out), stages.err)

    def test_trains_as_one_process(self):
        words = ("model=gpt", "optimizer=adamw")
        cases = sampled([(2, kind) for kind in KINDS] + [(4, kind) for kind in KINDS[:2]])
        self.sweep.run(Training(f"strategy.tensor{{ size = {size}{kind} }}", size, words) for size, kind in cases)
        for size, kind in cases:
            with self.subTest(kind=kind, size=size):
                assert_close(self, self.run_stack(f"strategy.tensor{{ size = {size}{kind} }}", size, *words),
                                  self.one_process(*words))

    def test_other_models_and_optimizers(self):
        for words in (("model=mlp", "optimizer=sgd"), ("model=gpt", "optimizer=lua")):
            with self.subTest(words=words):
                assert_close(self, self.run_stack("strategy.tensor{}", 2, *words), self.one_process(*words))

    def test_gates_and_rotations(self):
        alone = self.run_stack("nil", 1, name="gated.lua")
        self.assertEqual(len(alone), 6)
        for kind, size in (("", 2), (", sequence = true", 4)):
            tensor = f"strategy.tensor{{ size = {size}{kind} }}"
            with self.subTest(tensor=tensor):
                assert_close(self, self.run_stack(tensor, size, name="gated.lua"), alone)
                for stack in (tensor, f"{{ {tensor}, strategy.precision{{}}, strategy.recompute{{}} }}"):
                    plan = self.start("plan", stack, size, name="gated.lua")
                    self.assertEqual((plan.code, plan.err), (0, ""))
                    self.assertNotIn("cannot work on parts", plan.out)
                    self.assertRegex(plan.out, r"all_reduce +128 x f32 ")  # the loss' parts

    def test_stacks_have_the_bits_of_tensor_alone(self):
        tensors = [f"strategy.tensor{{ size = 2{kind} }}" for kind in KINDS[:2]]
        cases = [(tensor, factor, stack) for tensor in tensors for factor, stack in sampled(STACKS)]
        self.assert_as([Training(stack.replace("TENSOR", tensor), 2 * factor) for tensor, factor, stack in cases],
                       [Training(tensor, 2) for tensor, _, _ in cases])

    def test_chunks_have_the_bits_of_one_process(self):
        def of(size, kind, words):
            return Training(f"strategy.tensor{{ chunks = 8, size = {size}{kind} }}", size, (*words, "steps=5"))
        cases = [(size, *case) for case in sampled(CHUNKED) for size in (2, 4)]
        self.assert_as([of(*case) for case in cases], [of(1, *case[1:]) for case in cases])

    def test_stacks_of_chunks_have_the_bits_of_one_process(self):
        cases = [(f"strategy.tensor{{ chunks = 4, size = SIZE{kind} }}", factor, stack)
                 for kind in ("", ", sequence = true") for factor, stack in sampled(CHUNKED_STACKS)]
        self.assert_as([Training(stack.replace("TENSOR", tensor).replace("SIZE", "2"), 2 * factor)
                        for tensor, factor, stack in cases],
                       [Training(tensor.replace("SIZE", "1"), 1) for tensor, _, _ in cases])

    def test_saved_under_one_continued_under_another(self):
        saved = pathlib.Path(self.folder.name) / "checkpoint"
        whole = self.run_stack("strategy.tensor{}", 2)
        self.run_stack("strategy.tensor{}", 2, "stop=4", f"save={saved}")
        self.assertEqual(self.run_stack("strategy.tensor{}", 2, f"load={saved}"), whole[4:])
        for stack, ranks in (("strategy.tensor{ sequence = true }", 4), ("strategy.data{}", 2)):
            with self.subTest(stack=stack):
                assert_close(self, self.run_stack(stack, ranks, f"load={saved}"), whole[4:])

    def test_a_layer_keeps_the_bytes_of_the_paper(self):
        """Korthikanti et al. 2022, table 2: with the sequence cut and attention computed again a layer keeps 34 sbh/t
        bytes of activations for backward, masks of dropout among them. Casts of its 12 h^2 / t weights wait beside them.
        """
        ranks, dim, ctx, batch = 8, 4096, 2048, 4

        def arena(layers):
            words = {"layers": layers, "dim": dim, "heads": 32, "ctx": ctx, "vocab": 512, "tensor": ranks, "batch": batch,
                     "microbatch": batch, "sequence": "true"}
            done = orrery("plan", "--details", "-n", ranks, SOURCE / "tests/plan/published/layout.lua",
                          *(f"{name}={value}" for name, value in words.items()))
            self.assertEqual(done.code, 0, done.err)
            return int(re.search(r"arena peak +(\d+)", done.out)[1])
        layer = (arena(6) - arena(4)) / 2 - 2 * 12 * dim * dim / ranks
        self.assertAlmostEqual(layer / (batch * ctx * dim / ranks), 34, delta=0.5)

    def test_a_residual_without_biases_is_complete(self):
        """The embedding that is cut by the vocabulary is a sum over the ranks, and so is what a row layer makes. The
        first norm has the embedding added up; from then on the sum of both is read whole, or in its part of the
        sequence, by all blocks and stages: summands are not kept beside it and do not travel."""
        for sequence, cut in (("false", "batch split dim 1"), ("true", "batch split dim 1, tensor split dim 2")):
            words = ("layers=2", "dim=256", "heads=8", "hidden=512", "ctx=32", "vocab=512", "batch=8", "microbatch=4",
                     "tensor=2", "data=1", f"sequence={sequence}")
            script = SOURCE / "tests/plan/published/llama.lua"
            for pipeline, ranks in ((1, 2), (2, 4)):
                with self.subTest(sequence=sequence, pipeline=pipeline):
                    done = orrery("plan", "--layouts", "-n", ranks, script, *words, f"pipeline={pipeline}")
                    self.assertEqual(done.code, 0, done.err)
                    forward = done.out.split("\nforward\n")[1].split("\nbackward\n")[0]
                    rows = [re.split(r"  +", line.strip()) for line in forward.splitlines()]
                    adds = [row for row in rows if row[:1] == ["pointwise"] and row[1].endswith("[8,32,256]")
                            and re.fullmatch(r"Llama\.blocks\.\d", row[-1])]
                    self.assertGreaterEqual(len(adds), 2, forward)
                    for row in adds:
                        self.assertTrue(row[2].startswith(cut) and "partial" not in row[2], row)
                    if pipeline > 1:  # the stage of the embedding completes it before it sends
                        kinds = [row[0] for row in rows]
                        sent = " ".join(kinds[kinds.index("gather"):kinds.index("send over pipe")])
                        self.assertRegex(sent, "(reduce_scatter|all_reduce) over tensor")

    def test_refuses_what_cannot_be_cut(self):
        for stack, ranks, texts, *words in [
            ("strategy.tensor{}", 3, ["which size 3 does not divide: the nearest that do are 2 and 4"]),
            ("strategy.tensor{}", 8, ["4 heads do not divide over the 8 ranks", "choose a size of 1, 2, 4"]),
            ('strategy.tensor{ column = "blocks.*.mpl" }', 2, ["column 'blocks.*.mpl' matches no linear layer",
                                                              "blocks.1.qkv"]),
            ('strategy.tensor{ row = "blocks.*.mpl" }', 1, ["row 'blocks.*.mpl' matches no linear layer", "blocks.1.qkv"]),
            ("strategy.tensor{ chunks = 6 }", 2, ["6 chunks are no power of two times the 2 ranks", "are 4 and 8"]),
            ("strategy.tensor{ chunks = 64 }", 2, ["has 96 outputs, which chunks 64 does not divide: the nearest that does is 32"]),
            ('strategy.tensor{ chunks = 8, column = "head", row = "blocks.*.proj" }', 2, ["has 100 outputs, which chunks 8",
                                                                                          "does is 4"], "vocab=100"),
            ("strategy.tensor{ chunks = 8 }", 2, ["head has 6 outputs, fewer than the 8 chunks"], "vocab=6"),
            ("strategy.tensor{ chunks = 32, sequence = true }", 2, ["a sequence of 16 does not divide over the 32 chunks"]),
            ("{ strategy.tensor{ size = 2 }, strategy.tensor{ size = 2 } }", 4, ["cannot join a stack"]),
        ]:
            with self.subTest(stack=stack, ranks=ranks):
                done = self.start("run", stack, ranks, *words)
                self.assertEqual(done.code, 1)
                for text in texts:
                    self.assertIn(text, done.err)
                self.assertRegex(done.err, r"strategies\.lua:\d+:")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
