# SPDX-License-Identifier: Apache-2.0
"""Training with --kernels cuda: without a driver it says so; on the fake one (fake_cuda, found by
LD_LIBRARY_PATH) its losses are those of the reference, and one process has the bits of two, also where
NCCL (the fake one, over the same driver) carries what they exchange on the device's streams.

Arguments as fake_training.py says.
"""
import collections
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

from fake_training import GPT, MLP, SOURCE, lines, near_the_reference, orrery, train

STRIDE = int(os.environ.get("ORRERY_TEST_STRIDE", 1))  # of sweeps; scripts/sanitize sets it

STACKED = SOURCE / "tests/e2e/strategies.lua"
ZERO3 = "strategy.data{}, strategy.zero{ stage = 3 }"
# (ranks, stack, words of strategies.lua): held against the same stack over host memory.
STACKS = [
    (3, "{ strategy.data{} }", ()),
    (2, "{ strategy.data{} }", ("model=mlp", "half=1")),
    (3, "{ strategy.data{}, strategy.accumulate{} }", ()),
    (2, "{ strategy.data{}, strategy.zero{} }", ()),
    (3, f"{{ {ZERO3}, strategy.accumulate{{}} }}", ()),
    (2, '{ strategy.pipeline{ schedule = "1f1b" } }', ()),
    (4, "{ strategy.data{ size = 2 }, strategy.pipeline{} }", ()),
    (2, "{ strategy.tensor{ size = 2 } }", ()),
]


class EightBits(unittest.TestCase):
    def test_layers_train_as_by_the_reference(self):
        """By products of eight bits: of gradients, too, where scales are delayed and a leaf has enough rows."""
        script = pathlib.Path(tempfile.mkdtemp()) / "eight.lua"
        for scale in ("tensor", "row", "delayed"):
            how = f'strategy.precision{{ compute = "fp8", scale = "{scale}" }}'
            script.write_text(STACKED.read_text().replace("STACK", how))
            with self.subTest(scale=scale):
                near_the_reference(self, script, "steps=3", "microbatches=4", "eval=false")


class WithoutDriver(unittest.TestCase):
    def test_a_run_says_what_is_missing(self):
        done = orrery("run", "--kernels", "cuda", *MLP, fake=False)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("no NVIDIA driver here", done.stderr)

    def test_a_plan_needs_no_device(self):
        done = orrery("plan", "--kernels", "cuda", *GPT, fake=False)
        self.assertEqual(done.returncode, 0, done.stderr)


# The gradient of the second attention, which is prepared first, needs more shared memory of one device function.
DEPTHS = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
orrery.seed(1)
local model = { first = nn.linear(16, 60), second = nn.linear(60, 64) }
local function attend(x) return nn.attention(x, x, x, { heads = 1, causal = true }) end
local run = orrery.compile(function(batch)
  return (attend(model.second(attend(model.first(batch.x)))) ^ 2):mean()
end, { params = model, optimizer = optim.sgd { lr = 0.1 } })
local rows = {}
for i = 1, 4 do
  rows[i] = {}
  for j = 1, 16 do rows[i][j] = math.sin(i * 31 + j * 7) end
end
local data = orrery.data.arrays { x = orrery.tensor { rows } }
for _ = 1, 3 do print("loss " .. run:step(data:batch(1, { size = 1 })):mean()) end
"""


# Padding, a window with a trained bias and dropout, in 16 bits: of 130 keys whole tiles of 64 are hidden.
MASKED = """
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
orrery.seed(1)
local samples, time, heads, depth = 2, 130, 2, 64
local width = heads * depth
local model = {
  into = nn.linear(16, 3 * width),
  bias = orrery.parameter({ 1, heads, time, time }, { init = nn.init.normal(0.5) }),
}
local function bf16(x) return x:cast "bf16" end
local run = orrery.compile(function(batch)
  local q, k, v = bf16(model.into(batch.x)):split(-1, 3)
  local mask = batch.seen:ne(0):reshape(-1, 1, 1, time)
  local padded = nn.attention(q, k, v, { heads = heads, mask = mask, dropout = 0.1 })
  local near = nn.attention(padded, k, v, { heads = heads, window = 20, bias = bf16(model.bias) })
  local far = nn.attention(near, k, v, { heads = heads / 2, causal = true, mask = mask })
  return (far:cast "f32" ^ 2):mean() * 100
end, { params = model, optimizer = optim.sgd { lr = 0.02 }, strategy = strategy.data {}, microbatches = 2 })
local x, seen = {}, {}
for b = 1, samples do
  x[b], seen[b] = {}, {}
  for t = 1, time do
    x[b][t], seen[b][t] = {}, t <= 60 * b - 9 and 1 or 0
    for c = 1, 16 do x[b][t][c] = math.sin(b * 17 + t * 31 + c * 7) end
  end
end
local data = orrery.data.arrays { x = orrery.tensor(x), seen = orrery.tensor(seen, "i32") }
for _ = 1, 3 do orrery.log("loss %.7f", run:step(data:batch(1, { size = samples })):mean()) end
orrery.log("digest %s", orrery.digest(model))
"""


class OnAFakeGpu(unittest.TestCase):
    def test_heads_of_two_depths(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "depths.lua"
            script.write_text(DEPTHS)
            near_the_reference(self, script)

    def test_masks_and_biases(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "masked.lua"
            script.write_text(MASKED)
            near_the_reference(self, script)
            once = lines(train("cuda", script))
            self.assertEqual(lines(train("cuda", script, ranks=2)), once)

    def test_mlp(self):
        near_the_reference(self, *MLP)

    def test_gpt(self):
        near_the_reference(self, *GPT)

    def test_the_same_bits_again_and_on_two_ranks(self):
        once = lines(train("cuda", *GPT))
        self.assertTrue(any("digest" in line for line in once), once)
        self.assertEqual(lines(train("cuda", *GPT)), once)
        self.assertEqual(lines(train("cuda", *GPT, ranks=2)), once)


CLASSIFIER = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { rows = 1, bias = 0, numerics = "exact", compute = "f32" }
local model = nn.linear(8, 301, { bias = args.bias == 1 })
local function classify(x, y)
  local logits = model(x)
  return nn.cross_entropy(logits, y), logits
end
local run = orrery.compile(function(b)
  local loss, logits = classify(b.x, b.y)
  return loss, { right = logits:argmax():eq(b.y):cast "f32":sum() }
end, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, numerics = args.numerics,
  strategy = args.compute ~= "f32" and orrery.strategy.precision { compute = args.compute } or nil,
})
local x, y = {}, {}
for i = 1, args.rows do x[i], y[i] = { 1, 2, 3, 4, 5, 6, 7, 8 + i }, i end
x, y = orrery.tensor(x, "f32"), orrery.tensor(y, "i32")
run:step { x = x, y = y }
local loss, logits = orrery.func(classify)(x, y)
local last = logits:tolist()[args.rows]
orrery.log("loss %.3f, of the last row %.3f to %.3f", loss:item(), last[1], last[301])
"""


class OddVocabulary(unittest.TestCase):
    """Logits of 16 bits in rows that are no multiple of 16 bytes: these are padded."""
    BF16 = 3  # orrery/types.h

    def planned(self, vocab, *words):
        """The tensors that have classes as their last dim, by the kind of op: [dtype, dims, strides]."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "ops.json")
            lines(orrery("plan", "--kernels", "cuda", "--ops", file, *words, fake=False, ORRERY_LUA_PATH=SOURCE / "tests"))
            ops = json.loads(file.read_text())
        touched = [op for op in ops if any(vocab in t["dims"] for t in op["in"] + op["out"])]
        self.assertTrue(all("padded" in op["attrs"] for op in touched if op["kind"] == "matmul"))
        return [(op["kind"], t["dtype"], t["dims"], t["strides"]) for op in touched for t in op["in"] + op["out"]]

    def test_products_of_gpt2_load_whole_packets(self):
        found = self.planned(50257, "tests/gpu/gpt2.lua", "vocab=50257", "batch=4", "ctx=32", "layers=1")
        products = [strides for kind, dtype, dims, strides in found if kind == "matmul"]
        self.assertEqual(len(products), 9)
        for strides in products:
            self.assertEqual(max(strides[1:]) * 2 % 16, 0, strides)
        logits = [(kind, dtype, strides) for kind, dtype, dims, strides in found if dims[-2:] == [128, 50257]]
        self.assertEqual({dtype for _, dtype, _ in logits}, {self.BF16})
        self.assertEqual({strides[-2] for _, _, strides in logits}, {50304})
        self.assertEqual({kind for kind, _, _ in logits}, {"matmul", "cross_entropy"})

    def test_one_row_lies_as_many_do(self):
        """So that the library is asked about the same strides."""
        for rows in (1, 5):
            with self.subTest(rows=rows), tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder, "classifier.lua")
                script.write_text(CLASSIFIER)
                found = self.planned(301, script, f"rows={rows}")
                logits = [strides for kind, _, dims, strides in found if kind == "matmul" and sorted(dims) == [1, rows, 301]]
                self.assertEqual([max(strides[1:]) for strides in logits], [320, 320])

    def test_logits_stay_apart_where_a_bias_is_added_and_the_best_is_asked_for(self):
        for numerics in ("exact", "fast"):
            for compute in ("f32", "bf16"):
                with self.subTest(numerics=numerics, compute=compute), tempfile.TemporaryDirectory() as folder:
                    script = pathlib.Path(folder, "classifier.lua")
                    script.write_text(CLASSIFIER)
                    found = self.planned(301, script, "rows=5", "bias=1", f"numerics={numerics}", f"compute={compute}")
                    logits = [(kind, strides) for kind, dtype, dims, strides in found if dims[-2:] == [5, 301]
                              and (dtype == self.BF16) == (compute == "bf16") and strides[-2] > 0]
                    self.assertEqual({strides[-2] for _, strides in logits}, {320}, logits)
                    readers = {"cross_entropy", "reduce"} | ({"argmax"} if compute == "f32" else set())
                    self.assertLessEqual(readers, {kind for kind, _ in logits})

    def test_results_have_no_padding(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "classifier.lua")
            script.write_text(CLASSIFIER)
            for bias in (0, 1):
                words = (script, "rows=5", f"bias={bias}")
                self.assertEqual(*(lines(train(kernels, *words)) for kernels in ("cuda", "reference")))

    def lines(self, kernels, stack, ranks):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "strategies.lua"
            script.write_text(STACKED.read_text().replace("= STACK", "= " + stack))
            return lines(train(kernels, script, "steps=2", "vocab=301", ranks=ranks))

    def test_losses_of_the_reference_and_bits_of_one_process(self):
        once, reference = (self.lines(kernels, "{ strategy.precision{} }", 1) for kernels in ("cuda", "reference"))
        for mine, wanted in zip(once[:2], reference[:2], strict=True):
            found, near = (float(re.search(r"loss (\S+)", line)[1]) for line in (mine, wanted))
            self.assertAlmostEqual(found, near, delta=2e-3 * near)
        for ranks, stack in ((2, "strategy.pipeline{}, strategy.recompute{}"), (3, "strategy.data{}, strategy.zero{ stage = 3 }")):
            with self.subTest(stack=stack):
                self.assertEqual(self.lines("cuda", f"{{ {stack}, strategy.precision{{}} }}", ranks), once)

    def test_nobody_reads_the_padding(self):
        once = self.lines("cuda", "{ strategy.precision{} }", 1)
        with unittest.mock.patch.dict(os.environ, FAKE_GAPS="1"):
            self.assertEqual(self.lines("cuda", "{ strategy.precision{} }", 1), once)


class Convolutions(unittest.TestCase):
    """Products read windows where they lie; what statistics of images sum is not stored."""

    def lines(self, kernels, stack, ranks=1):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "convolution.lua"
            script.write_text((SOURCE / "tests/e2e/convolution.lua").read_text().replace("= STACK", "= " + stack))
            return lines(train(kernels, script, ranks=ranks))

    def test_losses_of_the_reference_and_bits_of_one_process(self):
        for stack, tolerance in (("{}", 1e-5), ("{ strategy.precision{} }", 1e-2)):
            with self.subTest(stack=stack):
                once, reference = (self.lines(kernels, stack) for kernels in ("cuda", "reference"))
                self.assertEqual(self.lines("cuda", stack.replace("{", "{ strategy.data{},", 1), ranks=2), once)
                for mine, wanted in zip(once[:5], reference[:5], strict=True):
                    found, near = (float(re.search(r"(?:loss|eval) (\S+)", line)[1]) for line in (mine, wanted))
                    self.assertAlmostEqual(found, near, delta=tolerance * near)

    def test_a_step_of_resnet_copies_no_windows(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "ops.json")
            lines(orrery("plan", "--kernels", "cuda", "--ops", file, "tests/gpu/resnet.lua", "batch=8", fake=False,
                         ORRERY_LUA_PATH=SOURCE / "tests"))
            ops = json.loads(file.read_text())
        self.assertTrue(any(op["kind"] == "matmul" and len(op["in"][0]["dims"]) > 3 for op in ops))
        self.assertTrue(any(op["kind"] == "matmul" and len(op["in"][1]["dims"]) > 3 for op in ops))
        copies = [op for op in ops if op["kind"] == "pointwise" and any(len(t["dims"]) > 4 for t in op["in"])]
        self.assertEqual([op["in"][0]["dims"] for op in copies], [[8, 32, 32, 3, 9]])  # of the images, which are f32

    def test_small_ops_of_a_step_of_resnet_are_few_launches(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "graphs")
            lines(orrery("run", "--kernels", "cuda", "tests/gpu/resnet.lua", "batch=2", "width=8", "blocks=1",
                         "steps=2", ORRERY_LUA_PATH=SOURCE / "tests", FAKE_CUDA_GRAPHS=file, ORRERY_NO_DIR=1))
            step = max((line.split() for line in file.read_text().splitlines()), key=len)
        self.assertLess(len(step), 320)


class BesideNccl(unittest.TestCase):
    """On streams of one driver: the losses of the reference, the bits of one process."""

    def test_bits_of_one_process(self):
        once = lines(train("cuda", *GPT))
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                self.assertEqual(lines(train("cuda", *GPT, ranks=ranks, comm="nccl")), once)

    def test_losses_of_the_reference(self):
        near_the_reference(self, *MLP, ranks=2, comm="nccl")

    def test_stacks(self):
        for ranks, stack, words in STACKS[::STRIDE]:
            with self.subTest(stack=stack), tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder) / "strategies.lua"
                script.write_text(STACKED.read_text().replace("= STACK", "= " + stack))
                there, here = (lines(train("cuda", script, "steps=2", *words, ranks=ranks, comm=comm)) for comm in ("nccl", "local"))
                self.assertEqual(there, here)

    def calls(self, reduce, steps):
        """How often all ranks together called each function of NCCL, and what a run printed."""
        with tempfile.TemporaryDirectory() as folder:
            script, counts = (pathlib.Path(folder) / name for name in ("mlp.lua", "calls"))
            text = (SOURCE / MLP[0]).read_text()
            script.write_text(re.sub(r"(optimizer *=)", f'reduce = "{reduce}", \\1', text, count=1))
            words = ["run", "-n", 2, "--threads", 1, "--kernels", "cuda", script, f"steps={steps}"]
            there = lines(orrery(*words, "--comm", "nccl", FAKE_CALLS=counts))
            self.assertEqual(there, lines(orrery(*words)))  # bits of comm local
            total = collections.Counter()
            for name, n in (line.split("\t") for line in counts.read_text().splitlines()):
                total[name] += int(n)
            return total

    # The streams of exchanges on the device are urgent; the plugin's own, for buffers of the host, is not.
    def test_fast_sums_are_one_call_for_each_bucket(self):
        few, many = (self.calls("fast", steps) for steps in (20, 40))
        self.assertEqual(many["ncclAllReduce urgent"] - few["ncclAllReduce urgent"], 2 * 20)
        self.assertEqual(many["ncclAllReduce in place"], many["ncclAllReduce"])
        self.assertEqual(many["ncclSend"], few["ncclSend"])

    def test_canonical_sums_are_messages(self):
        few, many = (self.calls("canonical", steps) for steps in (20, 40))
        self.assertEqual(many["ncclAllReduce urgent"], 0)
        self.assertGreaterEqual(many["ncclSend urgent"] - few["ncclSend urgent"], 2 * 20)

    def test_sums_stay_on_the_device(self):
        done = train("cuda", "--profile", *MLP, ranks=2, comm="nccl")
        lines(done)
        self.assertIn("profile: sums over leaves are messages of comm 'nccl' and launches of device 'cuda'", done.stdout)
        self.assertNotIn("staged", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
