# SPDX-License-Identifier: Apache-2.0
"""strategy.precision { compute = "fp8" }: near the losses of bf16 and f32 after hundreds of steps, the same bits on any
ranks and in any EXACT stack for each kind of scale, and no exchange for a scale but one small one.

Arguments: the build tree. tests/golden/eight_bits_test.py has the numbers themselves.
"""
import json
import pathlib
import re
import sys
import unittest

from program import HERE, SOURCE, orrery, sampled
from sweep import Sweeping, Training

SCALES = {scale: f'strategy.precision{{ compute = "fp8", scale = "{scale}" }}' for scale in ("tensor", "row", "delayed")}
DTYPES = {3: "bf16", 9: "f8_e4m3", 10: "f8_e5m2"}
LOW = "EIGHT"
STACKS = [
    (2, f"{{ strategy.data{{}}, {LOW} }}"),
    (3, f"{{ {LOW}, strategy.data{{}} }}"),
    (2, f"{{ strategy.data{{}}, strategy.zero{{}}, {LOW} }}"),
    (3, f"{{ strategy.data{{}}, {LOW}, strategy.zero{{ stage = 3 }} }}"),
    (4, f"{{ strategy.data{{}}, strategy.zero{{ stage = 2, group = 2 }}, {LOW} }}"),
    (4, f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{}}, strategy.zero{{}}, {LOW} }}"),
    (1, f"{{ {LOW}, strategy.accumulate{{}} }}"),
    (1, f"{{ strategy.recompute{{}}, {LOW} }}"),
    (1, f"{{ {LOW}, strategy.recompute{{ mode = \"selective\" }} }}"),
    (4, f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{}}, {LOW}, strategy.recompute{{}} }}"),
]
CUT = [(n, f"{{ strategy.tensor{{ size = {n}, chunks = 2 }}, {LOW} }}") for n in (1, 2)]


class EightBits(Sweeping):
    def start(self, command, stack, ranks, *words, script="strategies.lua", code=0):
        path = pathlib.Path(self.folder.name) / script
        path.write_text((HERE / "strategies.lua").read_text().replace("STACK", stack))
        done = orrery(command, *["--details"] * (command == "plan"), "-n", ranks, path, *words)
        self.assertEqual(done.code, code, done.err)
        return done

    def run_stack(self, stack, ranks, **words):
        return self.sweep.lines(Training(stack, ranks, **words))

    def test_has_the_same_bits_on_any_ranks(self):
        cases = [(how, ranks, stack.replace(LOW, how)) for how in SCALES.values() for ranks, stack in sampled(STACKS)]
        cut = {how: [(ranks, stack.replace(LOW, how)) for ranks, stack in CUT] for how in SCALES.values()}
        self.sweep.run([Training(stack, ranks) for _, ranks, stack in cases] +
                       [Training(stack, ranks) for both in cut.values() for ranks, stack in both])
        for how, ranks, stack in cases:
            with self.subTest(ranks=ranks, stack=stack):
                self.assertEqual(self.run_stack(stack, ranks), self.run_stack(how, 1))
        for (one, alone), (two, shared) in cut.values():
            with self.subTest(stack=shared):
                self.assertEqual(self.run_stack(shared, two), self.run_stack(alone, one))
        self.assertEqual(len({tuple(self.run_stack(how, 1)) for how in (*SCALES.values(), "strategy.precision{}")}), 4)

    def test_trains_as_well_as_more_bits(self):
        """A character GPT: its loss falls by a fifth in 200 steps, to within 2% of that in f32."""
        source = (SOURCE / "examples" / "gpt.lua").read_text()
        self.assertIn("strategy = strategy.data {},", source)
        script = pathlib.Path(self.folder.name) / "gpt.lua"

        def losses(stack):
            script.write_text(source.replace("strategy = strategy.data {},", f"strategy = {stack},"))
            done = orrery("run", script, f"data={SOURCE / 'examples' / 'gpt.lua'}", "dim=32", "heads=2", "layers=2", "ctx=32",
                          "batch=16", "microbatches=2", "steps=200", "eval=0", "sample=0", "log=20", "dropout=0", "lr=0.003")
            self.assertEqual(done.code, 0, done.err)
            return [float(x) for x in re.findall(r"loss ([\d.]+)", done.out)]
        full = losses("nil")
        self.assertLess(full[-1], full[0] * 0.8)
        for stack in ("strategy.precision{}", *SCALES.values()):
            with self.subTest(stack=stack):
                found = losses(stack)
                self.assertLess(abs(found[-1] - full[-1]), 0.02 * full[-1])
                self.assertNotEqual(found, full)

    def test_continues_from_a_checkpoint(self):
        """With the sizes of the steps before, which are states."""
        how = SCALES["delayed"]
        at = pathlib.Path(self.folder.name) / "at"
        whole = self.start("run", how, 1).out.splitlines()
        self.start("run", how, 1, "stop=5", f"save={at}")
        for ranks, stack in ((1, how), (2, f"{{ strategy.data{{}}, strategy.zero{{}}, {how} }}")):
            with self.subTest(stack=stack):
                rest = self.start("run", stack, ranks, f"load={at}").out.splitlines()
                self.assertEqual(rest[-5:], whole[-5:])

    def exchanges(self, how):
        plan = self.start("plan", f"{{ strategy.data{{}}, {how} }}", 2).out
        return re.findall(r"(\w+) +(\d+) x (\w+) .* sends \d+ bytes", plan)

    def test_scales_need_no_exchange_of_their_own(self):
        """That of delayed ones joins what every step sends: the loss."""
        bf16 = self.exchanges("strategy.precision{}")
        self.assertEqual(self.exchanges(SCALES["tensor"]), bf16)
        self.assertEqual(self.exchanges(SCALES["row"]), bf16)
        delayed = self.exchanges(SCALES["delayed"])
        self.assertEqual(*(sorted((kind, dtype) for kind, _, dtype in sent) for sent in (delayed, bf16)))
        more = sum(int(n) for _, n, _ in delayed) - sum(int(n) for _, n, _ in bf16)
        self.assertEqual(more, 4 * 4 * 2 * 64)  # blocks, layers, samples and slopes, powers of two

    def products(self, options):
        """{(dtype, dtype): modules} of the products of a step; equal ones are listed once."""
        at, found = pathlib.Path(self.folder.name) / "ops.json", {}
        stack = f'strategy.precision{{ compute = "fp8"{options} }}'
        self.start("plan", stack, 1, "--kernels", "reference", "--ops", at)
        for op in json.loads(at.read_text()):
            if op["kind"].startswith("matmul"):
                dtypes = tuple(DTYPES[x["dtype"]] for x in op["in"][:2])
                found.setdefault(dtypes, set()).update(re.findall(r"GPT\.(?:blocks\.\d\.)?(?!blocks)(\w+)", op["where"]))
        return found

    def test_what_is_multiplied_in_eight_bits(self):
        """Forward and backward of the blocks' layers; not the head, and of delayed scales alone the gradients of weights."""
        layers, gradients = {"qkv", "proj", "mlp"}, ("f8_e5m2", "f8_e4m3")
        found = self.products(', scale = "delayed"')
        self.assertEqual(set(found), {("f8_e4m3", "f8_e4m3"), gradients, ("bf16", "bf16")})
        self.assertEqual(found["bf16", "bf16"], {"head"})
        self.assertEqual(found[gradients], layers)
        self.assertGreater(self.products("")["bf16", "bf16"], {"head"})
        left_out = self.products(', scale = "delayed", except = { "blocks.*.mlp" }')
        self.assertEqual(left_out["bf16", "bf16"], {"head", "mlp"})
        self.assertEqual(left_out[gradients], {"qkv", "proj"})

    def test_refusals(self):
        for options, why in (
                ('compute = "fp8", scale = "column"', "there is no scale 'column': give tensor or row or delayed"),
                ('scale = "row"', "scale is for compute = \"fp8\", and not for 'bf16'"),
                ('except = "head"', "except is for compute = \"fp8\", and not for 'bf16'"),
                ('compute = "fp8", except = "nothing"', "except 'nothing' matches no module"),
                ('compute = "fp8", except = "blocks"', "no linear layer of the model has a product in bf16"),
                ('compute = "f8"', "there is no compute 'f8'")):
            with self.subTest(options=options):
                done = self.start("run", f"strategy.precision{{ {options} }}", 1, code=1)
                self.assertRegex(done.err, r"strategies.lua:\d+: .*" + re.escape(why))

    def test_tensors_of_eight_bits(self):
        """What there is to do with them in a script, and what is an error."""
        def ends(body):
            script = pathlib.Path(self.folder.name) / "tensors.lua"
            script.write_text(f"""
                local orrery = require "orrery"
                local f = orrery.func(function(x) {body} end)
                print(table.concat(f(orrery.tensor {{ {{ 0.3, 500 }}, {{ -1, 2 }} }}):flatten():tolist(), " "))
            """)
            done = orrery("run", script)
            return done.out.strip() if done.code == 0 else done.err
        self.assertEqual(ends('return x:cast("f8_e5m2"):transpose(1, 2):cast("f32")'), "0.3125 -1.0 512.0 2.0")
        self.assertRegex(ends('return x:cast("f8_e4m3") + 1'), r"tensors.lua:3: add reads f8_e4m3\[2,2\], and numbers of eight bits "
                         r"are only multiplied by matmul, converted and moved: cast it first")
        self.assertRegex(ends('return x:cast("f8_e4m3"):sum()'), r"sum reads f8_e4m3\[2,2\]")
        self.assertRegex(ends('local y = x:cast("f8_e4m3"); return y:matmul(y)'),
                         r"the product of f8_e4m3 and f8_e4m3 needs a dtype, f32, bf16 or f16")
        self.assertRegex(ends('return orrery.grad(x:cast("f8_e4m3"):cast("f32"):sum(), { x })[1]'),
                         r"f8_e4m3\[2,2\] has no gradient in eight bits")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
