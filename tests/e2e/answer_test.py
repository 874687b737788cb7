# SPDX-License-Identifier: Apache-2.0
"""The first lines of `orrery plan` answer what one asks: does it fit, how long does it take, what binds it and why,
what to try next. What they say is held against the plan in JSON, and against plans of the changed scripts.

Arguments: the build tree.
"""
import json
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, SOURCE, orrery

SCREEN = 24
NAMES = ["fits", "step", "range", "mfu", "nominal", "binds", "why", "next", "takes"]
GPT = ("examples/gpt.lua", "data=README.md", "layers=2", "dim=64")
PLANS = [("-n", 1, *GPT), ("-n", 2, *GPT), ("-n", 4, "examples/pipeline.lua", "data=README.md"),
         ("-n", 8, "examples/gpt-3d.lua", "data=README.md"), ("-n", 4, "examples/zero.lua"),
         ("-n", 512, "examples/gpt2.lua"),
         ("-n", 16, "tests/plan/published/llama.lua", "layers=2", "dim=256", "heads=8", "hidden=512", "ctx=64",
          "vocab=512", "batch=8", "microbatch=1", "tensor=2", "pipeline=2", "data=4")]
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
MODEL = """
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local net = nn.sequential { nn.linear(256, 512), nn.tanh, nn.linear(512, 512), nn.tanh, nn.linear(512, 16) }
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, {
  params = net, optimizer = optim.adam { lr = 1e-3 }, microbatches = COUNT, strategy = { STACK },
})
local function zeros(width) return orrery.tensor({ { 0.0 } }):expand(64, width) end
local rows = orrery.data.arrays { x = zeros(256), y = zeros(16) }
run:step(rows:batch(1, { size = 64 }))
"""


def plan(*words):
    done = orrery("plan", *words)
    if done.code != 0:
        raise AssertionError(f"{words}: exit code {done.code}: {done.err}")
    return done.out[done.out.index("plan: "):] if "--json" not in words else done.out  # the script may have printed


def answer(text):
    """The lines by their names, in their order; a line without a name belongs to the one before."""
    found, name = {}, None
    for line in text.splitlines()[:SCREEN]:
        named = re.match(r"  (?:(\w+) +| {8})(\S.*)$", line)
        if named and line[2:10].strip() == (named[1] or ""):
            name = named[1] or name
            found.setdefault(name, []).append(named[2])
    return found


def seconds(text):
    number, unit = re.match(r"([\d.e+-]+) (ms|s)\b", text).groups()
    return float(number) * (1e-3 if unit == "ms" else 1)


def size(text):
    number, unit = re.match(r"([\d.]+) (\w+)", text).groups()
    return float(number) * UNITS[unit]


class Answer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def near(self, got, want, share=2e-3):
        self.assertAlmostEqual(got, want, delta=share * abs(want))

    def script(self, stack, count=4):
        path = pathlib.Path(self.folder.name) / "model.lua"
        path.write_text(MODEL.replace("STACK", stack).replace("COUNT", str(count)))
        return path

    def test_a_screen_answers_four_questions(self):
        facts = json.loads((SOURCE / "scripts/orrery/machines/a100.json").read_text())
        for words in PLANS:
            with self.subTest(words=words):
                words = ("--machine", "a100", *words)
                text = plan(*words)
                said, step = answer(text), json.loads(orrery("plan", "--json", *words).out)
                self.assertEqual([name for name in said if name in NAMES], NAMES, text)
                self.assertTrue(all(len(line) <= 200 for line in text.splitlines()[:SCREEN]), text)
                self.assertTrue(said["fits"][0].startswith("yes: "))
                self.near(size(said["fits"][0].removeprefix("yes: ")), step["peak_bytes"], 0.06)
                self.near(seconds(said["step"][0]), step["step_seconds"])
                low, high = (step["step_seconds"] / (1 + way * facts["time_error"]) for way in (1, -1))
                self.near(seconds(said["range"][0]), low)
                self.near(seconds(said["range"][0].split(" to ")[1]), high)
                self.assertIn(f"{100 * step['time'][0]['share']:.0f} % of the ranks' time", said["binds"][0])
                hours = float(re.search(r"([\d.,]+) rank-hours", said["takes"][0])[1].replace(",", ""))
                self.near(hours, 1000 * step["step_seconds"] * step["ranks"] / 3600, 1e-2)
                self.assertTrue(1 <= len(said["next"]) <= 3)

    def test_details_are_all_or_a_line(self):
        short, long = plan("-n", 2, *GPT), plan("-n", 8, "examples/gpt-3d.lua", "data=README.md")
        self.assertIn("\nranks 0-1\n  memory ", short)
        self.assertLessEqual(len(long.splitlines()), SCREEN)
        hidden = int(re.search(r"^  --details prints (\d+) lines more", long, re.MULTILINE)[1])
        shown = plan("--details", "-n", 8, "examples/gpt-3d.lua", "data=README.md")
        self.assertEqual(len(shown.splitlines()), len(long.splitlines()) - 1 + hidden)
        self.assertTrue(shown.startswith(long[:long.index("  --details")]))

    def test_what_is_to_be_tried_next_is_planned(self):
        """Each change of a small script takes the time and memory that the script has which is written so."""
        stack = "strategy.data {}, strategy.zero { stage = 2 }, strategy.accumulate {}"
        written = {"microbatches = 8": (stack, 8), "microbatches = 2": (stack, 2),
                   "zero { stage = 1 }": (stack.replace("stage = 2", "stage = 1"), 4),
                   "zero { stage = 3 }": (stack.replace("stage = 2", "stage = 3"), 4),
                   "with recompute": (stack + ", strategy.recompute {}", 4),
                   "with selective recompute": (stack + ', strategy.recompute { mode = "selective" }', 4)}
        base = json.loads(plan("--json", "-n", 2, self.script(stack)))
        better = {}
        for say, (changed, count) in written.items():
            step = json.loads(plan("--json", "-n", 2, self.script(changed, count)))
            if step["step_seconds"] < 0.995 * base["step_seconds"]:
                better[say] = step
        best = sorted(better, key=lambda say: better[say]["step_seconds"])[:3]
        self.assertTrue(best)
        lines = answer(plan("-n", 2, self.script(stack)))["next"]
        self.assertEqual([line.partition(":")[0] for line in lines], best)
        for line, say in zip(lines, best):
            self.near(seconds(line.partition(": ")[2]), better[say]["step_seconds"])
            self.near(size(line.rpartition(", ")[2]), better[say]["peak_bytes"], 0.06)

    def test_changes_that_fit_come_first_where_the_plan_does_not(self):
        stack = "strategy.data {}, strategy.accumulate {}"
        step = json.loads(plan("--json", "-n", 2, self.script(stack)))
        text = plan("-n", 2, "--memory", step["peak_bytes"] - 64, self.script(stack))
        said = answer(text)
        self.assertRegex(said["fits"][0], r"^no: .* 64 B too much: ")
        for line in said["next"]:
            self.assertLess(size(line.rpartition(", ")[2]), step["peak_bytes"])
        self.assertRegex(text, r"(?m)^  fit: .* hold \d+ samples? a microbatch")

    def test_must_fit_ends_with_a_code_of_its_own(self):
        peak = json.loads(plan("--json", "-n", 2, *GPT))["peak_bytes"]
        for more in ((), ("--json",)):
            done = orrery("plan", "-n", 2, "--must-fit", "--memory", peak, *more, *GPT)
            self.assertEqual((done.code, "plan does not fit" in done.err), (0, False), done.err)
            done = orrery("plan", "-n", 2, "--must-fit", "--memory", peak - 64, *more, *GPT)
            self.assertEqual(done.code, 78)
            self.assertRegex(done.err, r"(?m)^error: .*the plan does not fit: a rank needs 64 B more than it may take$")
            self.assertIn(str(peak) if more else "no: ", done.out)
        unknown = orrery("plan", "-n", 2, "--must-fit", *GPT)
        self.assertEqual(unknown.code, 2)
        self.assertIn("--must-fit: what a rank has is not known; give --memory 80GiB", unknown.err)

    def test_what_is_kept_back_is_not_to_be_had(self):
        """A machine whose memory the plan fills to the last byte does not hold it beside the driver."""
        facts = json.loads((SOURCE / "scripts/orrery/machines/a100.json").read_text())
        peak = json.loads(plan("--json", "-n", 2, *GPT))["peak_bytes"]
        file = pathlib.Path(self.folder.name) / "machine.json"
        for memory, verdict in ((peak + 2**20, "yes"), (peak + 2**20 - 64, "no")):
            file.write_text(json.dumps(facts | {"memory_bytes": memory, "reserved_bytes": 2**20}))
            said = answer(plan("-n", 2, "--machine", file, *GPT))["fits"]
            self.assertTrue(said[0].startswith(verdict), said)
            self.assertIn("1.0 MiB are kept back for driver", said[-1])

    def test_machines_by_name(self):
        folder = SOURCE / "scripts/orrery/machines"
        names = sorted(path.stem for path in folder.glob("*.json"))
        self.assertLessEqual({"a100", "h100"}, set(names))
        for name in names:
            with self.subTest(machine=name):
                facts = json.loads((folder / f"{name}.json").read_text())
                self.assertTrue(len(facts["about"]) > 20 and 0.01 < facts["time_error"] < 0.5)
                self.assertTrue(0 < facts["reserved_bytes"] < 0.1 * facts["memory_bytes"])
                by_name, by_path = (plan("--machine", machine, "-n", 2, *GPT)
                                    for machine in (name, folder / f"{name}.json"))
                self.assertIn(f"a second on the machine {name}\n", by_name)
                self.assertEqual(by_name, by_path)
        done = orrery("plan", "--machine", "h10", *GPT)
        self.assertEqual(done.code, 2)
        self.assertIn("--machine h10: no machine has this name (did you mean 'h100'?); there are " + ", ".join(names),
                      done.err)

    def test_the_mfu_that_papers_give(self):
        """By convention: 6 FLOPs for each weight of a product and token, and 12 for each key, hidden or not."""
        file = pathlib.Path(self.folder.name) / "machine.json"
        facts = json.loads((SOURCE / "scripts/orrery/machines/a100.json").read_text())
        file.write_text(json.dumps(facts | {"nominal_flops": {"bf16": 1e15}}))
        layers, dim, hidden, ctx, vocab, batch = 2, 256, 512, 64, 512, 8
        sizes = dict(layers=layers, dim=dim, heads=8, hidden=hidden, ctx=ctx, vocab=vocab, batch=batch,
                     microbatch=batch // 2, data=2)
        words = [f"{name}={value}" for name, value in sizes.items()]
        step = json.loads(plan("--json", "-n", 2, "--machine", file, "tests/plan/published/llama.lua", *words))
        weights = layers * (dim * 3 * dim + dim * dim + dim * 2 * hidden + hidden * dim) + dim * vocab
        flops = batch * ctx * (6 * weights + 12 * layers * dim * ctx)
        self.near(step["nominal_mfu"], flops / (step["step_seconds"] * 2 * 1e15), 1e-6)

    def test_steps_and_tokens(self):
        words = ("-n", 2, "--machine", "h100", *GPT)
        step = json.loads(plan("--json", *words))
        [line] = answer(plan("--steps", "1e6", *words))["takes"]
        self.assertRegex(line, r"^1,000,000 steps: ")
        hours = 1e6 * step["step_seconds"] * 2 / 3600
        self.near(float(re.search(r"([\d.,]+) rank-hours", line)[1].replace(",", "")), hours)
        self.near(float(re.search(r"([\d.e+-]+) MWh at most", line)[1]), hours * 700e-6)
        [line] = answer(plan("--tokens", 1000 * step["tokens"], *words))["takes"]
        self.assertRegex(line, r"^[\d.e+]+ tokens, 1000 steps: ")
        done = orrery("plan", "--tokens", "1e9", "-n", 2, self.script("strategy.data {}"))
        self.assertEqual(done.code, 2)
        self.assertIn("--tokens: a batch of this script has no field of integers", done.err)

    def test_kinds_that_hardly_differ_are_one(self):
        """Seven ranks deal what zero cuts unevenly, by some elements."""
        script = self.script("strategy.data {}, strategy.zero {}", 7)
        fits = answer(plan("-n", 7, "--memory", "1GiB", script))["fits"]
        self.assertRegex(fits[0], r"^yes: .* on ranks 0-6$")
        self.assertEqual(len(fits), 2)
        kinds = json.loads(plan("--json", "-n", 7, script))["kinds"]
        self.assertGreater(len(kinds), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
