# SPDX-License-Identifier: Apache-2.0
"""Context parallelism end to end: one process' losses to rounding, alone and in stacks, with attention by queries,
by heads and on a ring; with fixed chunks of time the bits of one process. The scripts fail on a rank that sends other
bytes than planned.

Arguments: the build tree.
"""
import json
import pathlib
import re
import sys
import unittest

from close import assert_close
from program import HERE, SOURCE, orrery, sampled
from sweep import Sweeping, Training

WORDS = ("model=gpt", "steps=9", "drop=0")
CHUNKED = ["", "kind = 'ulysses', "]
KINDS = [*CHUNKED, "kind = 'ring', "]

# Stacks on so many times the ranks of CONTEXT that have its bits: what else is in them is EXACT.
STACKS = [
    (2, "{ strategy.data{ size = 2 }, CONTEXT }"),
    (2, "{ CONTEXT, strategy.data{} }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{}, CONTEXT, strategy.accumulate{} }"),
    (2, "{ strategy.data{ size = 2 }, strategy.zero{ stage = 3 }, CONTEXT }"),
    (1, "{ CONTEXT, strategy.accumulate{} }"),
]

# Cuts time over two axes.
TWICE = """strategy.define{ name = "mine", class = "approx", transform = function(draft)
  draft:axis("a", 2) draft:axis("b", 2)
  for _, field in ipairs(draft:values "batch") do
    if #field.dims > 1 then draft:place(field, "a", 2) draft:place(field, "b", 2) end end end }{}"""

# Places what `strategy.context` does, on an axis of another name.
COPY = """strategy.define{ name = "mine", class = "approx", options = { size = 0 }, transform = function(draft, o)
  draft:axis("line", o.size)
  for _, field in ipairs(draft:values "batch") do
    if #field.dims > 1 then draft:place(field, "line", 2) end end end }"""


def own(body):
    return ('strategy.define{ name = "mine", class = "approx", transform = function(draft) local _, x, y = '
            'table.unpack(draft:values "batch") ' + body + " end }{}")


class Context(Sweeping):
    def lines(self, stack, ranks, *words):
        """What it prints, but for what is computed outside of the run."""
        return [line for line in self.sweep.lines(Training(stack, ranks, words or WORDS))
                if not line.startswith("outside ")]

    def assert_close(self, stack, ranks, *words):
        with self.subTest(stack=stack, ranks=ranks, words=words):
            lines, expected = self.lines(stack, ranks, *words), self.lines("nil", 1, *words)
            self.assertGreater(len(lines), 9)
            assert_close(self, lines, expected)

    def assert_alike(self, trainings):
        """Each pair prints the same."""
        self.sweep.run(one for pair in trainings for one in pair)
        for training, other in trainings:
            with self.subTest(training=training):
                self.assertGreater(len(self.sweep.lines(other)), 9)
                self.assertEqual(self.sweep.lines(training), self.sweep.lines(other))

    def test_trains_as_one_process(self):
        for kind in KINDS:
            for ranks in (2, 4):
                self.assert_close(f"strategy.context{{ {kind}size = {ranks} }}", ranks)
        self.assert_close("strategy.context{}", 2, "model=gpt", "steps=9")  # dropout of attention's weights
        self.assert_close("strategy.context{ kind = 'ulysses' }", 2, "model=gpt", "steps=9")

    def test_grouped_heads_and_windows(self):
        def lines(stack, ranks, *words):
            return self.sweep.lines(Training(stack, ranks, words, "grouped.lua"))
        for words in ((), ("causal=false",), ("window=5",), ("window=5", "causal=false"), ("kv_heads=1",)):
            alone = lines("nil", 1, *words)
            for kind in KINDS:
                for ranks in (2, 4):
                    if "ring" in kind and "window=5" in words:
                        continue
                    with self.subTest(words=words, kind=kind, ranks=ranks):
                        assert_close(self, lines(f"strategy.context{{ {kind}size = {ranks} }}", ranks, *words), alone)
        for ranks in (2, 4):
            self.assertEqual(lines(f"strategy.context{{ kind = 'ulysses', chunks = 4, size = {ranks} }}", ranks, "window=5"),
                             lines("strategy.context{ kind = 'ulysses', chunks = 4, size = 1 }", 1, "window=5"))

    def test_grouped_heads_travel_as_they_are(self):
        """What attention sends of two heads of keys and values is a quarter of what it sends of eight. On a ring queries
        and results, which go to the zigzag order and back, stay as they are."""
        text = (HERE / "grouped.lua").read_text()
        line = next(i for i, code in enumerate(text.splitlines(), 1) if "nn.attention(" in code)

        def sent(kv_heads, kind, of):
            script = pathlib.Path(self.folder.name) / "grouped.lua"
            script.write_text(text.replace("STACK", f"strategy.context{{ {kind} }}"))
            done = orrery("plan", "--details", "-n", 4, script, f"kv_heads={kv_heads}")
            self.assertEqual((done.code, done.err), (0, ""))
            return sum(int(n) for n in re.findall(of, done.out))
        for kind, share, of in (("", 4, rf"sends (\d+) bytes .*\(\S*grouped\.lua:{line}\)"),
                                ("kind = 'ring'", 2, r"all_to_all .* sends (\d+) bytes")):
            with self.subTest(kind=kind):
                few = sent(2, kind, of)
                self.assertGreater(few, 0)
                self.assertLessEqual(share * few, sent(8, kind, of))

    def test_beside_tensor_and_pipeline(self):
        for kind in KINDS:
            for stack in ("{ strategy.context{ KIND size = 2 }, strategy.tensor{} }",
                          "{ strategy.tensor{ size = 2 }, strategy.context{ KIND } }",
                          "{ strategy.pipeline{ size = 2 }, strategy.context{ KIND } }"):
                self.assert_close(stack.replace("KIND", kind), 4)
            self.assert_close(
                f"{{ strategy.data{{ size = 2 }}, strategy.context{{ {kind} size = 2 }}, strategy.tensor{{ size = 2 }} }}", 8)
        self.assert_close(TWICE, 4)

    def test_stacks_have_the_bits_of_context_alone(self):
        self.assert_alike([
            (Training(stack.replace("CONTEXT", f"strategy.context{{ {kind}size = 2 }}"), 2 * factor, WORDS),
             Training(f"strategy.context{{ {kind}size = 2 }}", 2, WORDS))
            for kind in KINDS for factor, stack in sampled(STACKS)])
        self.assert_alike([(Training(f"{{ strategy.context{{ {kind} }}, strategy.recompute{{}} }}", 2, WORDS),
                            Training(f"strategy.context{{ {kind} }}", 2, WORDS)) for kind in ("", "kind = 'ring'")])

    def test_chunks_have_the_bits_of_one_process(self):
        def of(ranks, kind):
            return Training(f"strategy.context{{ {kind}size = {ranks}, chunks = 4 }}", ranks, WORDS)
        self.assert_alike([(of(ranks, kind), of(1, kind)) for kind in CHUNKED for ranks in (2, 4)])

    def test_beside_the_sequence_of_tensor_ranks(self):
        """Time is cut over both axes at once: each part of context's over the tensor ranks."""
        for kind in KINDS:
            for stack in ("{ strategy.context{ KIND size = 2 }, strategy.tensor{ sequence = true } }",
                          "{ strategy.tensor{ size = 2, sequence = true }, strategy.context{ KIND } }"):
                self.assert_close(stack.replace("KIND", kind), 4)
        self.assert_close("{ strategy.pipeline{ size = 2 }, strategy.context{ size = 2 }, "
                          "strategy.tensor{ size = 2, sequence = true }, strategy.recompute{} }", 8)

    def test_chunks_of_both_have_the_bits_of_one_process(self):
        def of(context, tensor):
            return Training(f"{{ strategy.context{{ size = {context}, chunks = 4 }}, "
                            f"strategy.tensor{{ size = {tensor}, chunks = 4, sequence = true }} }}", context * tensor, WORDS)
        self.assert_alike([(of(*sizes), of(1, 1)) for sizes in ((2, 2), (1, 4), (4, 1))])

    def sent(self, ranks, axis, *words):
        """What a rank sends over an axis, for each layer: of two numbers of layers the difference."""
        def of(layers):
            done = orrery("plan", "--json", "-n", ranks, HERE / "two_axes.lua", f"layers={layers}", *words)
            self.assertEqual((done.code, done.err), (0, ""))
            step = json.loads(done.out)
            return step["kinds"][0]["sent_bytes"][axis], step["peak_bytes"]
        (some, peak), (more, higher) = of(2), of(3)
        return more - some, higher - peak

    def test_bytes_of_a_layer_are_those_of_the_paper(self):
        """Megatron-LM: with the sequence cut a layer gathers and scatters [batch, its part of time, width] four times
        each, and gathers it twice more in backward; gradients of what lies beside its matrices are summed."""
        context, tensor, batch, time, width = 4, 2, 2, 256, 64
        bytes_of = 4 * (tensor - 1) / tensor
        part = batch * time // context * width * bytes_of
        cut, kept = self.sent(8, "tensor", "sequence=true")
        self.assertEqual(cut, 10 * part + 2 * 2 * width * bytes_of)
        whole, more = self.sent(8, "tensor", "sequence=false")
        self.assertEqual(whole, 8 * part)
        self.assertLess(kept, more)
        self.assertEqual(*(self.sent(8, "context", f"sequence={it}")[0] for it in ("true", "false")))

    def test_any_strategy_may_place(self):
        """The core knows neither the name nor the axis."""
        self.assert_alike([(Training(f"{COPY}{{}}", 2, WORDS), Training("strategy.context{}", 2, WORDS))])

    def weights(self, stack, ranks, *words):
        """By name; the losses too."""
        lines = self.sweep.lines(Training(stack, ranks, words, "ring.lua"))
        found = {line.split()[1]: [float(x) for x in line.split()[2:]] for line in lines if line.startswith("weights ")}
        self.assertEqual(len(found), 32)
        return {**found, "losses": [float(line.split()[3]) for line in lines if line.startswith("step ")]}

    def test_gradients_on_a_ring(self):
        """Of every parameter after one step, which stand in the parameters' places, and weights after some."""
        for ranks in (2, 3, 4):
            for words in (("causal=true",), ("causal=false",), ("causal=false", "cross=true"), ("causal=true", "cross=true"),
                          ("causal=true", "optimizer=sgd", "steps=6"), ("causal=false", "optimizer=sgd", "steps=6")):
                fields = "fields = 'x', " if "cross=true" in words else ""
                with self.subTest(ranks=ranks, words=words):
                    got = self.weights(f"strategy.context{{ {fields}kind = 'ring' }}", ranks, *words)
                    want = self.weights("nil", 1, *words)
                    self.assertEqual(got.keys(), want.keys())
                    for name, values in want.items():
                        allowed = 1e-4 * max(map(abs, values))
                        for x, y in zip(got[name], values, strict=True):
                            self.assertLess(abs(x - y), allowed, name)

    def test_a_ring_of_one_is_the_plain_program(self):
        self.assert_alike([(Training("strategy.context{ kind = 'ring' }", 1, words, "ring.lua"),
                            Training("nil", 1, words, "ring.lua")) for words in (("causal=true",), ("causal=false",))])

    def test_the_norm_of_a_number_that_all_places_read(self):
        alone, shared = (orrery("run", "-n", ranks, HERE / "number.lua").out for ranks in (1, 2))
        self.assertEqual(len(alone.split()), 7)
        self.assertEqual(shared, alone)

    def planned(self, ranks, kind):
        done = orrery("plan", "--details", "-n", ranks, SOURCE / "examples/context.lua", f"kind={kind}")
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertNotIn("cannot work on parts", done.out)
        return done.out

    def test_memory_of_a_long_sequence(self):
        def peak(ranks, kind):
            return max(int(n) for n in re.findall(r"arena peak +(\d+)", self.planned(ranks, kind)))
        for kind in ("gathered", "ulysses", "ring"):
            self.assertLess(peak(4, kind), 0.35 * peak(1, kind))

    def test_zigzag_order_gives_ranks_equal_work(self):
        def work(kind):
            return [float(n) for n in re.findall(r"(?m)^ +\d+ +(\S+) +\S+  in all$", self.planned(4, kind))]
        for kind, spread in (("ring", (1, 1.02)), ("gathered", (3, 10))):
            with self.subTest(kind=kind):
                found = work(kind)
                self.assertLessEqual(len(found), 4)  # kinds of ranks
                self.assertLessEqual(spread[0], max(found) / min(found))
                self.assertLess(max(found) / min(found), spread[1])

    def test_sends_keys_and_values_round(self):
        """Keys and values in forward, and in backward with their gradients: 6 parts to each other rank; queries, keys,
        values and the result, and their gradients: a part at most to and from the zigzag order."""
        layers, part = 6, 8192 * 64 * 4 // 4
        for rank in self.planned(4, "ring").split("\nrank ")[1:]:
            sent = [int(n) for n in re.findall(r"all_to_all .* sends (\d+) bytes", rank)]
            self.assertEqual(sum(n for n in sent if n == part), layers * 6 * 3 * part)
            self.assertLessEqual(sum(n for n in sent if n < part), layers * 8 * part)
            self.assertEqual(len(sent), layers * (6 * 3 + 8 * 2))

    def test_refuses_what_cannot_be(self):
        for stack, ranks, texts in [
            ("strategy.context{}", 3, ["strategy.context (", "dim 2 of 'x' [12,16] does not divide over the 3 ranks "
                                       "of axis 'context'"]),
            ("strategy.context{ kind = 'ulysses' }", 8, ["4 heads do not divide over the 8 ranks"]),
            ("strategy.context{ kind = 'line' }", 2, ["there is no kind 'line': give gathered or ulysses or ring"]),
            ("strategy.context{ kind = 'ring' }", 3, [
                "the sequence of 16 that the attention of 'GPT.blocks.1'", "strategies.lua:19",
                "does not divide into the 6 chunks that kind 'ring' on 3 ranks needs: choose a multiple of 6"]),
            ("strategy.context{ kind = 'ring', chunks = 4 }", 2, ["chunks = 4: a ring merges attention by ranks"]),
            ("strategy.context{ fields = { 'x', 'z' } }", 2, ["there is no batch field 'z'"]),
            ("{ strategy.context{ size = 2 }, strategy.context{} }", 4, ["cannot join a stack"]),
            (own('draft:axis("data") draft:place(x, "data", 1) draft:place(y, "data", 2)'), 2,
             ["axis 'data' deals the batch: only the first dim of batch fields can be cut"]),
            (own('draft:axis("line") draft:place(x, "line", 2) draft:place(y, "line", 1)'), 2,
             ["the ranks of axis 'line' share the work on every sample, as strategy.mine asked", "batch field 'y'"]),
            (own('draft:axis("line") draft:place(x, "line", 3)'), 2, ["'x' is i32[12,16] and has no dim 3"]),
            ('{ strategy.tensor{ size = 2 }, strategy.define{ name = "mine", class = "approx", transform = '
             'function(draft) for _, p in ipairs(draft:values "param") do '
             'if p.name:find "qkv.weight" then draft:place(p, "tensor", 2) end end end }{} }', 2,
             ["qkv.weight' is cut along dim 1 over axis 'tensor' by strategy.tensor (", "along dim 2 as well"]),
        ]:
            with self.subTest(stack=stack, ranks=ranks):
                script = pathlib.Path(self.folder.name) / "strategies.lua"
                script.write_text((HERE / "strategies.lua").read_text().replace("strategy = STACK", f"strategy = {stack}"))
                self.assert_refused(script, ranks, WORDS, texts)
        script.write_text((HERE / "grouped.lua").read_text().replace("STACK", "strategy.context{ kind = 'ring' }"))
        self.assert_refused(script, 2, ("window=5",), ["kind 'ring' has no place for a mask, bias, window or offset"])
        script.write_text((HERE / "strategies.lua").read_text().replace("STACK", "strategy.context{ kind = 'ring' }"))
        self.assert_refused(script, 2, ("model=gpt",), ["kind 'ring' cannot drop out weights of attention, as that of "
                                                        "'GPT.blocks.1'", "dropout = 0.1: set it to 0"])

    def assert_refused(self, script, ranks, words, texts):
        done = orrery("run", "-n", ranks, script, *words)
        self.assertEqual(done.code, 1, done.out)
        for text in texts:
            self.assertIn(text, done.err)
        self.assertRegex(done.err, r"strategies\.lua:\d+:")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
