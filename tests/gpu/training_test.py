# SPDX-License-Identifier: Apache-2.0
"""Training with --kernels cuda: without a driver it says so; on the fake one (fake_cuda, found by
LD_LIBRARY_PATH) its losses are those of the reference, and one process has the bits of two, also where
NCCL (the fake one, over the same driver) carries what they exchange on the device's streams.

Arguments: the build tree, the folder of the fake libraries. Every figure is a fake GPU's.
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

BUILD, FAKE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
STRIDE = int(os.environ.get("ORRERY_TEST_STRIDE", 1))  # of sweeps; scripts/sanitize sets it
TOLERANCE = 3e-4  # of a loss that is printed with four digits

MLP = ["examples/mlp.lua", "steps=200"]
GPT = ["examples/gpt.lua", "data=examples/gpt.lua", "dim=32", "layers=2", "heads=2", "ctx=16", "batch=12",
       "microbatches=4", "steps=4", "dropout=0.1", "clip=1", "eval=2", "sample=8"]

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


def orrery(*words, fake=True, **variables):
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    if fake:
        kept = str(BUILD / "tests/gpu/compiled")
        # Its GPU is a core of this machine, which others may use: no work of it takes so long that it hangs.
        env |= {"LD_LIBRARY_PATH": str(FAKE), "FAKE_NVRTC_FOLDER": kept, "XDG_CACHE_HOME": kept, "ORRERY_DEADLINE": "600"}
    env |= {k: str(v) for k, v in variables.items()}
    return subprocess.run([BUILD / "orrery", *map(str, words)], cwd=SOURCE, env=env, text=True,
                          capture_output=True, timeout=1800)


def lines(done):
    """What a run prints, without times and what the progress bar writes."""
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    timed = re.compile(" info step | info cuda: ")
    return [re.sub(r"  [\d.]+ ms$", "", x) for x in done.stdout.splitlines() if not timed.search(x)]


def losses(done):
    found = [float(x) for line in lines(done) for x in re.findall(r"loss (-?[\d.]+)", line)]
    if len(found) < 2:
        raise AssertionError(done.stdout)
    return found


def train(kernels, *words, ranks=1, comm="local"):
    return orrery("run", "-n", ranks, "--threads", 1, "--kernels", kernels, "--comm", comm, *words)


def near_the_reference(test, *words, ranks=1, comm="local"):
    mine, reference = train("cuda", *words, ranks=ranks, comm=comm), train("reference", *words, ranks=ranks)
    for found, wanted in zip(losses(mine), losses(reference), strict=True):
        test.assertAlmostEqual(found, wanted, delta=TOLERANCE * max(1, abs(wanted)))


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


HELD_BY_ALL = """
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
orrery.seed(3)
local Net = nn.module("Net", function(m)
  m.up, m.down = nn.linear(8, 8, { bias = false }), nn.linear(8, 8, { bias = false })
  m.norm, m.out = nn.rmsnorm(8), nn.linear(8, 5)
  return function(batch) return (m.out(m.norm(m.down(m.up(batch.x):silu()))):tanh() ^ 2):mean() end
end)
local model = Net()
local run = orrery.compile(model, { params = model, microbatches = 1, strategy = { strategy.tensor {} },
  numerics = "fast", optimizer = optim.adam { lr = 0.01 } })
local rows = {}
for i = 1, 24 do
  rows[i] = {}
  for j = 1, 8 do rows[i][j] = math.sin(i * 3.1 + j * 1.7) end
end
for _ = 1, 2 do
  orrery.log("loss %.7f", run:step({ x = orrery.tensor(rows) }):mean())
  rows[24] = nil
end
"""


class Races(unittest.TestCase):
    """The algorithm of a product is the fastest of those that are allowed, and is kept on disk for the next run."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_mlp(self, numerics, cache, **variables):
        script = self.folder / f"{numerics}.lua"
        text = (SOURCE / MLP[0]).read_text()
        script.write_text(re.sub(r"(optimizer *=)", f'numerics = "{numerics}", \\1', text, count=1))
        return orrery("run", "-n", 1, "--threads", 1, "--kernels", "cuda", script, "steps=100",
                      XDG_CACHE_HOME=self.folder / cache, **variables)

    def kept(self, cache):
        return sorted((self.folder / cache / "orrery/cuda").glob("*"))

    def test_exact_bits_do_not_depend_on_what_was_fast(self):
        runs = [lines(self.run_mlp("exact", fastest, FAKE_LT_FASTEST=fastest)) for fastest in ("0 1", "1 1", "2 1")]
        self.assertEqual(runs, runs[:1] * 3)

    def test_fast_is_what_was_measured_and_kept(self):
        exact = self.run_mlp("exact", "exact")
        once, again, other = (self.run_mlp("fast", cache, FAKE_LT_FASTEST=fastest)
                              for cache, fastest in (("fast", "0 1"), ("fast", "1 0"), ("other", "1 0")))
        self.assertEqual(lines(again), lines(once))
        self.assertEqual(len({lines(done)[-1] for done in (exact, once, other)}), 3)  # digests
        for mine, reference in zip(losses(once), losses(exact), strict=True):
            self.assertAlmostEqual(mine, reference, delta=0.01 * max(1, abs(reference)))

    def test_damaged_files_are_ignored_and_replaced(self):
        first = self.run_mlp("exact", "cache")
        whole = {path: path.read_bytes() for path in self.kept("cache")}
        for i, (path, data) in enumerate(whole.items()):
            path.write_bytes((b"", data[:-1], bytes([data[0] ^ 1]) + data[1:], data[:-1] + bytes([data[-1] ^ 1]))[i % 4])
        second, third = (self.run_mlp("exact", "cache") for _ in range(2))
        self.assertEqual(lines(second), lines(first))
        self.assertEqual(lines(third), lines(first))
        self.assertEqual([done.stderr.count(" is damaged: it is ignored, and replaced") for done in (first, second, third)],
                         [0, len(whole), 0])
        self.assertEqual(self.kept("cache"), list(whole))

    def test_a_second_run_compiles_nothing(self):
        first = self.run_mlp("exact", "cache")
        self.assertEqual(lines(self.run_mlp("exact", "cache", FAKE_NVRTC_REFUSES=1)), lines(first))
        self.assertIn("NVRTC refused", self.run_mlp("exact", "empty", FAKE_NVRTC_REFUSES=1).stderr)

    def test_tensor_ranks_compute_alike_what_all_of_them_hold(self):
        """The norm and the last layer, whose product is each rank's own: all take what one has measured, or what is first.
        Batches of another size let ranks compare what they hold."""
        script = self.folder / "tensor.lua"
        script.write_text(HELD_BY_ALL)
        (self.folder / "file").write_text("no folder")
        for cache in ("cache", "file"):
            done = orrery("run", "-n", 4, "--threads", 1, "--kernels", "cuda", script, XDG_CACHE_HOME=self.folder / cache)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("loss", done.stdout)

    def test_a_folder_that_cannot_be_written_is_named(self):
        (self.folder / "cache").write_text("no folder")
        done = self.run_mlp("exact", "cache")
        self.assertEqual(lines(done), lines(self.run_mlp("exact", "another")))
        self.assertEqual(done.stderr.count("name a folder that can be written with XDG_CACHE_HOME"), 1, done.stderr)


class Start(unittest.TestCase):
    """What a program's first step compiles and measures: beside each other, and each once for all ranks of a host."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, ranks, threads):
        """Compilations by source, [(begin, end)], and what the run printed."""
        log = self.folder / "log"
        log.write_text("")
        done = orrery("run", "-n", ranks, "--threads", threads, "--kernels", "cuda", *GPT, FAKE_NVRTC_LOG=log, FAKE_NCCL_GPUS=1,
                      FAKE_NVRTC_FOLDER=self.folder / f"compiled{ranks}", XDG_CACHE_HOME=self.folder / f"cache{ranks}")
        found = collections.defaultdict(list)
        for source, *times in (line.split() for line in log.read_text().splitlines()):
            found[source].append(tuple(map(int, times)))
        return found, lines(done), done.stdout + done.stderr

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one CPU compiles one source after another")
    def test_compilations_overlap(self):
        found, _, said = self.start(1, 2)
        spans = sorted(span for times in found.values() for span in times)
        self.assertGreater(len(spans), 4)
        # Of two threads: the next one begins before the last one has ended, but the one before that has.
        overlapping = sum(later[0] < earlier[1] for earlier, later in zip(spans, spans[1:]))
        self.assertGreater(overlapping, len(spans) // 2)
        self.assertTrue(all(third[0] >= min(first[1], second[1]) for first, second, third in zip(spans, spans[1:], spans[2:])))
        told = re.findall(r"cuda: (\d+) expressions compiled in [\d.]+ s, (\d+) products measured in", said)
        self.assertEqual(sum(int(compiled) for compiled, _ in told), len(spans), said)
        self.assertGreater(sum(int(measured) for _, measured in told), 0)

    def test_ranks_of_a_host_make_each_thing_once(self):
        found, _, said = self.start(3, 1)
        self.assertEqual({len(times) for times in found.values()}, {1})
        made = sum(int(n) for told in re.findall(r"cuda: (\d+) expressions compiled in [\d.]+ s, (\d+) products", said) for n in told)
        self.assertEqual(made, len(list((self.folder / "cache3/orrery/cuda").iterdir())), said)  # products, too


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
