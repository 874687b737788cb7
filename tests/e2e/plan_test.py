# SPDX-License-Identifier: Apache-2.0
"""What `orrery plan` says of time, of what strategies change and of what fits.

Times are never compared with a clock here: only with what must follow when one figure of the machine is
another.

Arguments: the build tree.
"""
import json
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery

MACHINE = {
    "matrix_flops": {"f32": 1e9}, "vector_flops": 1e9, "memory_bandwidth": 1e9, "cache_bandwidth": 1e9,
    "cache_bytes": 1e6, "launch_seconds": 1e-9, "ranks_per_host": 2,
    "inside": {"latency": 1e-6, "bandwidth": 1e8}, "between": {"latency": 1e-5, "bandwidth": 1e7},
}
PIPELINE = ("-n", 4, "examples/pipeline.lua", "data=README.md")


class Plan(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name) / "machine.json"

    def plan(self, *words, **options):
        details = ["--details"] * (not {"--diff", "--fit", "--json", "--digest", "--layouts", "--search"} & {*words})
        done = orrery("plan", *details, *words, **options)
        self.assertEqual((done.code, done.err), (0, ""))
        return done.out

    def json_of(self, *words):
        done = orrery("plan", "--json", "--machine", self.file, *words)
        self.assertEqual(done.code, 0, done.err)
        return json.loads(done.out)

    def refusal(self, *words):
        done = orrery("plan", *words)
        self.assertNotEqual(done.code, 0)
        return done.err

    def times(self, *words, **changes):
        """(seconds of the step, [(compute, exposed, idle) in seconds of each kind of rank])."""
        self.file.write_text(json.dumps(MACHINE | changes))
        text = self.plan("--machine", self.file, *words)
        number, unit = re.search(r"^  step    ([\d.e+-]+) (ms|s): ", text, re.MULTILINE).groups()
        step = float(number) * (1e-3 if unit == "ms" else 1)
        shares = re.findall(r"^  time    ([\d.]+) % compute, ([\d.]+) % exposed communication, ([\d.]+) % idle$",
                            text, re.MULTILINE)
        return step, [tuple(float(x) / 100 * step for x in each) for each in shares]

    def test_one_rank_computes_all_the_time(self):
        step, ranks = self.times("examples/gpt.lua", "data=README.md")
        self.assertEqual(ranks, [(step, 0, 0)])
        twice, _ = self.times("examples/gpt.lua", "data=README.md", matrix_flops={"f32": 2e9}, vector_flops=2e9,
                              memory_bandwidth=2e9, cache_bandwidth=2e9, launch_seconds=0.5e-9)
        self.assertAlmostEqual(twice, step / 2, delta=step * 1e-3)

    def test_rates_by_size_and_of_attention(self):
        words = ("examples/gpt.lua", "data=README.md")
        same, _ = self.times(*words)
        flat, _ = self.times(*words, matrix_flops={"f32": [[1, 1e9], [1e6, 1e9], [1e15, 1e9]]},
                             attention_flops={"f32": 1e9})
        self.assertEqual(same, flat)
        attention, _ = self.times(*words, attention_flops={"f32": 1e8})
        large, _ = self.times(*words, matrix_flops={"f32": [[1e6, 1e9], [1e9, 2e9]]})
        self.assertLess(large, same)
        self.assertGreater(attention, same)

    def test_rates_by_shape(self):
        words = ("examples/gpt.lua", "data=README.md")
        same, _ = self.times(*words)
        flat, _ = self.times(*words, matrix_bandwidth=1e9)
        tiles, _ = self.times(*words, matrix_tiles={"processors": 3, "rows": 100, "columns": 60,
                                                                    "half_speed": 0.5})
        self.assertGreater(flat, same)
        self.assertGreater(tiles, same)

    def test_ranks_share_a_network_card(self):
        """A rank that sends alone has twice the bandwidth of each of two, both together have no more than before."""
        own, shared = ([self.times("-n", 4, *words, "data=README.md", **card)[0]
                        for words in (("examples/pipeline.lua",), ("examples/gpt.lua",))]
                       for card in ({}, {"cards_per_host": 1}))
        self.assertLess(shared[0], own[0])
        self.assertAlmostEqual(shared[1], own[1], delta=0.02 * own[1])

    def test_all_wait_for_the_slowest(self):
        """The mean largest of two normal deviations is 0.59 by Blom's formula: a tenth of it, of the most computed."""
        words = ("-n", 2, "examples/gpt.lua", "data=README.md")
        even, ranks = self.times(*words)
        uneven, _ = self.times(*words, jitter=0.1)
        self.assertAlmostEqual(uneven, even + 0.0589 * max(parts[0] for parts in ranks), delta=2e-3 * even)
        alone = [self.times("examples/gpt.lua", "data=README.md", **more)[0] for more in ({}, {"jitter": 0.1})]
        self.assertEqual(*alone)

    def test_compute_is_slower_while_bytes_travel(self):
        free, ranks = self.times(*PIPELINE)
        taken, slower = self.times(*PIPELINE, inside=MACHINE["inside"] | {"compute": 1})
        self.assertGreater(taken, free)
        for before, after in zip(ranks, slower):
            self.assertAlmostEqual(before[0], after[0], delta=2e-3 * taken)

    def test_time_adds_up_and_follows_the_links(self):
        for words in (("-n", 2, "examples/gpt.lua", "data=README.md"), PIPELINE,
                      ("-n", 8, "examples/gpt-3d.lua", "data=README.md")):
            with self.subTest(words=words):
                steps = []
                for faster in (0.1, 1, 1e9):
                    links = {name: {"latency": MACHINE[name]["latency"] / faster,
                                    "bandwidth": MACHINE[name]["bandwidth"] * faster} for name in ("inside", "between")}
                    step, ranks = self.times(*words, **links)
                    for parts in ranks:
                        self.assertAlmostEqual(sum(parts), step, delta=step * 2e-3)
                        self.assertTrue(faster < 1e9 or parts[1] == 0)
                    steps.append(step)
                self.assertGreater(steps[0], steps[1])
                self.assertGreater(steps[1], steps[2])

    def test_hosts_apart_take_longer(self):
        words = ("-n", 2, "examples/gpt.lua", "data=README.md")
        self.assertLess(self.times(*words)[0], self.times(*words, ranks_per_host=1)[0])

    def test_ranks_of_a_host_share_what_leaves_it(self):
        words = ("-n", 4, "examples/gpt.lua", "data=README.md")
        slow = dict(inside={"latency": 1e-9, "bandwidth": 1e12}, between={"latency": 1e-9, "bandwidth": 1e3})
        alone, together = (self.times(*words, ranks_per_host=n, **slow)[0] for n in (1, 2))
        self.assertAlmostEqual(alone / together, 2, delta=0.05)

    def test_a_schedule_without_bubble_idles_less(self):
        free = {name: {"latency": 1e-12, "bandwidth": 1e18} for name in ("inside", "between")}
        idle = {}
        for schedule in ("gpipe", "zb1"):
            _, ranks = self.times(*PIPELINE, f"schedule={schedule}", **free)
            idle[schedule] = sum(parts[2] for parts in ranks)
        self.assertLess(idle["zb1"], idle["gpipe"])

    def test_states_of_programs_between_steps(self):
        """DiLoCo's anchor and its velocity are as large as the parameters, and are no states of the step."""
        script = pathlib.Path(self.folder.name) / "between.lua"
        script.write_text("""
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local net = nn.linear(256, 256, { bias = false })
orrery.compile(function(b) return nn.mse(net(b.x), b.x) end, {
  params = net, optimizer = optim.sgd { lr = 0.1 }, microbatches = 2, strategy = strategy.diloco { every = 2 },
}):step { x = orrery.tensor({ { 0.5 }, { 0.5 } }, "f32") }
""".replace("{ { 0.5 }, { 0.5 } }", "{" + ", ".join(["{" + ", ".join(["0.5"] * 256) + "}"] * 2) + "}"))
        self.file.write_text(json.dumps(MACHINE))
        [kind] = self.json_of("-n", 2, script)["kinds"]
        self.assertEqual(kind["memory"]["parameter"], 256 * 256 * 4)
        self.assertEqual(kind["memory"]["state"], 2 * 256 * 256 * 4)
        self.assertGreaterEqual(kind["memory_bytes"], 3 * 256 * 256 * 4)

    def test_the_plan_in_json(self):
        self.file.write_text(json.dumps(MACHINE))
        for words in (("-n", 2, "examples/gpt.lua", "data=README.md"), PIPELINE,
                      ("-n", 8, "examples/gpt-3d.lua", "data=README.md")):
            with self.subTest(words=words):
                text = self.plan("--machine", self.file, *words)
                plan = self.json_of(*words)
                number, unit = re.search(r"^  step    ([\d.e+-]+) (ms|s): ", text, re.MULTILINE).groups()
                self.assertAlmostEqual(plan["step_seconds"], float(number) * (1e-3 if unit == "ms" else 1), places=3)
                self.assertEqual([kind["memory_bytes"] for kind in plan["kinds"]],
                                 [int(n) for n in re.findall(r"^  memory +(\d+) bytes", text, re.MULTILINE)])
                ranks = [r for kind in plan["kinds"] for first, last in kind["ranks"] for r in range(first, last + 1)]
                self.assertEqual(sorted(ranks), list(range(plan["ranks"])))
                for kind in plan["kinds"]:
                    parts = sum(kind["memory"].values())
                    padding = kind["memory_bytes"] - parts  # a number fills a line of memory
                    self.assertTrue(0 <= padding < 4096, (kind["memory_bytes"], parts))
                    self.assertAlmostEqual(sum(part["share"] for part in kind["time"]), 1, places=6)
                    launches = sum(one["launches"] for one in kind["launches"])
                    self.assertRegex(text, rf"\n +{launches} .* in all\n")
                sends = [n for kind in plan["kinds"] for n in kind["traffic"].get("sends", [])]
                self.assertEqual([one["bytes"] for one in sends],
                                 [int(n) for n in re.findall(r"^  sends +(\d+) bytes", text, re.MULTILINE)])
                self.assertEqual(len(plan.get("schedule", [])), len(re.findall(r"^  stage ", text, re.MULTILINE)))
                self.assertAlmostEqual(sum(part["share"] for part in plan["time"]), 1, places=6)
                self.assertIn(f"binds   {plan['bottleneck']}\n", text)

    def test_what_the_model_computes_does_not_depend_on_the_stack(self):
        self.file.write_text(json.dumps(MACHINE))
        words = "examples/gpt-3d.lua", "data=README.md"
        flops = {self.json_of("-n", n, *words, f"pipe={pipe}", f"tensor={tensor}")["model_flops"]
                 for n, pipe, tensor in ((1, 1, 1), (4, 2, 1), (8, 2, 2))}
        self.assertEqual(len(flops), 1)
        one = self.json_of("examples/gpt.lua", "data=README.md")
        self.assertAlmostEqual(one["mfu"], one["model_flops"] / one["step_seconds"] / 1e9, places=9)

    def test_an_axis_that_crosses_hosts_for_no_reason(self):
        words = ("-n", 8, "examples/gpt-3d.lua", "data=README.md", "pipe=1")
        self.file.write_text(json.dumps(MACHINE))
        text = self.plan("--machine", self.file, *words)
        said = re.search(r"^  order   axis 'tensor' crosses hosts: .*takes ([\d.e+-]+) s, not ([\d.e+-]+) s$", text,
                         re.MULTILINE)
        self.assertLess(float(said[1]), float(said[2]))
        inner = self.plan("--machine", self.file, "-n", 4, "counters.lua", "stack=tensor", cwd=HERE)
        self.assertNotIn("crosses hosts", inner)

    def test_a_machine_that_is_not_right(self):
        for changes, said in (({"vector_flop": 1}, r"there is no field vector_flop \(did you mean 'vector_flops'\?\)"),
                              ({"launch_seconds": -1}, "launch_seconds is -1, but must be a number above 0"),
                              ({"inside": {"latency": 1}}, r"the field inside\.bandwidth is missing; add it"),
                              ({"inside": MACHINE["inside"] | {"compute": 1.5}},
                               r"inside\.compute is 1\.5, but must be at most 1"),
                              ({"matrix_tiles": {"rows": 1}}, r"the field matrix_tiles\.processors is missing; add it"),
                              ({"inside": MACHINE["inside"] | {"hop": 0}}, r"inside\.hop is 0, but must be a number above 0"),
                              ({"jitter": 2}, "jitter is 2, but must be at most 1"),
                              ({"levels": 4}, "levels is 4, but must be a list of objects"),
                              ({"levels": [{"hosts": 4}, {"hosts": 6}]},
                               r"levels\[1\]\.hosts is 6, but must be a multiple of 4: list levels from the smallest"),
                              ({"levels": [{"hosts": 4, "oversubscription": 0.5}]},
                               r"levels\[0\]\.oversubscription is 0\.5, but must be at least 1"),
                              ({"levels": [{"hosts": 4, "latencies": 1}]}, r"there is no field levels\[0\]\.latencies"),
                              ({"cards_per_host": 3}, "cards_per_host is 3, which must divide ranks_per_host, 2"),
                              ({"matrix_flops": {"f32": [[1e9, 1e9], [1e6, 1e9]]}},
                               r"matrix_flops\.f32 has \[1000000\.0,1000000000\.0\]: write \[FLOPs of a launch, FLOP/s\]"),
                              ({"attention_flops": {"f32": []}}, r"attention_flops\.f32 is empty; write a number or "),
                              ({"matrix_flops": {"f64": 1e9}}, r"gpt.*lua:\d+: .*matmul multiplies matrices of f32, but "
                                                               r"machine '.*' has no matrix_flops\.f32: add it")):
            with self.subTest(changes=changes):
                self.file.write_text(json.dumps(MACHINE | changes))
                self.assertRegex(self.refusal("--machine", self.file, "examples/gpt.lua", "data=README.md"), said)
        self.file.write_text("{")
        self.assertRegex(self.refusal("--machine", self.file, "examples/gpt.lua"), "machine.json: is not JSON")
        self.assertIn("--machine none.json: cannot be read", self.refusal("--machine", "none.json", "examples/gpt.lua"))

    def test_what_does_not_fit_is_said_first(self):
        def text(**memory):
            self.file.write_text(json.dumps(MACHINE | memory))
            return self.plan("--machine", self.file, *PIPELINE, "microbatches=4")
        peak = max(map(int, re.findall(r"^  memory +(\d+) bytes", text(), re.MULTILINE)))
        self.assertIn("\n  fits    yes: ", text(memory_bytes=peak))
        self.assertRegex(text(memory_bytes=peak - 64),
                         r"\Aplan: .*\n  fits    no: .* on rank 0, 64 B too much: activation .*, .*\n(.*\n)*  fit: ")
        self.assertRegex(text(memory_bytes=peak // 4), r"\Aplan: .*\n  fits    (.* on rank.*\n +)+(.*\n)+.*nothing fits; ")

    def test_what_is_measured_can_be_planned_with(self):
        done = orrery("run", "-n", 2, "examples/machine.lua", f"out={self.file}", timeout=300)
        self.assertEqual(done.code, 0, done.err)
        self.assertLessEqual({"host", "disk", "inside", "attention_flops"}, set(json.loads(self.file.read_text())))
        text = self.plan("-n", 2, "--machine", self.file, "examples/gpt.lua", "data=README.md")
        self.assertIn(f"a second on the machine {self.file}", text)

    def test_differences_by_strategy(self):
        text = self.plan("-n", 4, "--diff", "--rank", 3, "counters.lua", "stack=zero", "stage=3", cwd=HERE)
        self.assertIn("diff: rank 3 of 4, one process first\n", text)
        summaries = re.findall(r"^strategy\.(\w+) on (\d) ranks: (\d+) ops? added, (\d+) removed", text, re.MULTILINE)
        self.assertEqual([name for name, *_ in summaries], ["data", "zero"])
        after = text.partition("strategy.data on")[2]
        data, _, zero = after.partition("strategy.zero on")
        self.assertRegex(data, r"\n\+backward tree all_reduce f32 on data: bucket 0, .* by data\n")
        self.assertRegex(zero, r"\n-backward tree all_reduce f32 on data")
        self.assertRegex(zero, r"\n\+.* all_gather f32 on data: .* by zero\n")
        for _, ranks, added, removed in summaries:
            self.assertEqual(ranks, "4")
            self.assertGreater(int(added) + int(removed), 0)

    def test_sent_bytes_of_the_differences_are_the_plans(self):
        words = ("-n", 3, "counters.lua", "stack=data", "dim=64")
        whole = self.plan(*words, cwd=HERE)
        sent = int(re.search(r"^  sends +(\d+) bytes", whole, re.MULTILINE)[1])
        shown = re.search(r"sends ([\d.]+) KiB a step \(before: 0 B\)", self.plan("--diff", *words, cwd=HERE))
        self.assertAlmostEqual(float(shown[1]), sent / 1024, delta=1)

    def test_the_largest_microbatch_that_fits(self):
        words = ("-n", 2, "examples/gpt-3d.lua", "data=README.md", "pipe=2", "tensor=1", "batch=24")
        peak = {n: max(map(int, re.findall(r"^  memory +(\d+) bytes", self.plan(*words, f"microbatches={n}"), re.MULTILINE)))
                for n in (1, 2, 3, 4, 5, 6, 8, 12, 24)}  # the fewest for each number of samples
        for limit in (peak[2], peak[4], peak[8], max(peak.values())):
            fewest = min(n for n in peak if peak[n] <= limit)
            text = self.plan("--fit", limit, *words)
            samples = f"{-(-24 // fewest)} samples a microbatch (microbatches = {fewest})"
            self.assertRegex(text, rf"(?m)^fit: .* hold {re.escape(samples)}")
            self.assertIn(f"\nplan: 2 ranks, {fewest} microbatch", text)
        self.assertRegex(self.refusal("--fit", min(peak.values()) // 2, *words),
                         r"--fit .*: nothing fits; \d+ samples? a microbatch .* take .* too much: add ranks")

    def test_one_microbatch_a_rank_keeps_no_whole_gradients(self):
        """strategy.accumulate then has nothing to add up: what zero sheds is not kept until the end of the step."""
        script = pathlib.Path(self.folder.name) / "deep.lua"
        script.write_text("""
            local orrery = require "orrery"
            local nn, strategy = orrery.nn, orrery.strategy
            local args = orrery.args { microbatches = 4, accumulates = 0 }
            local layers, rows = {}, {}
            for i = 1, 16 do layers[i], rows[i] = nn.linear(256, 256), {} end
            for _, row in ipairs(rows) do for i = 1, 256 do row[i] = 1 end end
            local model, x = nn.sequential(layers), orrery.tensor(rows, "f32")
            local stack = { strategy.data {}, strategy.zero { stage = 3 } }
            if args.accumulates == 1 then stack[3] = strategy.accumulate {} end
            local run = orrery.compile(function(b) return nn.mse(model(b.x), b.x) end, {
              params = model, microbatches = args.microbatches, strategy = stack, optimizer = orrery.optim.sgd { lr = 0.1 },
            })
            run:step { x = x }""")
        def peak(*words):
            return int(re.search(r"^  memory +(\d+) bytes", self.plan("-n", 4, script, *words), re.MULTILINE)[1])
        self.assertEqual(peak("accumulates=1"), peak())
        self.assertGreater(peak("accumulates=1", "microbatches=8"), 1.5 * peak())

    def test_options_that_do_not_belong_together(self):
        self.assertIn("--rank 0: give --diff or --layouts", self.refusal("--rank", 0, "examples/gpt.lua"))
        self.assertIn("--rank 2: there are ranks 0 to 1", self.refusal("-n", 2, "--diff", "--rank", 2, "examples/gpt.lua"))
        self.assertIn("excludes", self.refusal("--diff", "--fit", "1GiB", "examples/gpt.lua"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
