# SPDX-License-Identifier: Apache-2.0
"""What --kernels cuda compiles and measures, and keeps for the next run; on the fake GPU (fake_training.py)."""
import collections
import os
import pathlib
import re
import sys
import tempfile
import unittest

from fake_training import GPT, MLP, SOURCE, lines, losses, orrery

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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
