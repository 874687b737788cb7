# SPDX-License-Identifier: Apache-2.0
"""What `orrery plan --mtbf` says of failures: the arithmetic (scripts/orrery/plan/goodput.lua) against formulas,
another simulation and published trainings; the plan's checkpoint against what runs save; the text against the JSON.

Llama 3: Dubey et al., "The Llama 3 Herd of Models", arXiv 2407.21783: section 3.3.4, 466 interruptions of a job on
16,384 GPUs in 54 days and more than 90 % effective training time; section 3.3.1, storage of 2 TB/s. MegaScale: Jiang
et al., "MegaScale: Scaling Large Language Model Training to More Than 10,000 GPUs", NSDI 2024: over 100 restarts in
several weeks, less than 10 minutes to detect and diagnose, at most 15 minutes to catch up with the work before, seconds
to copy a checkpoint from the GPUs, more than 90 % effective training time. Daly: FGCS 22 (2006), figures 3 to 5.

Arguments: the build tree.
"""
import json
import math
import pathlib
import random
import re
import sys
import tempfile
import unittest

from pages import follow
from program import SOURCE, orrery

HOUR, DAY = 3600, 86400
BASE = dict(hosts=1, mtbf=1e4, restart=0, copy=1, write=0, repair=0, spares=0, least=1)
SCRIPT = """
local orrery = require "orrery"
local goodput = require "orrery.plan.goodput"
local function show(...) orrery.log(("%.17g "):rep(select("#", ...)), ...) end
local function linear(hosts) return function(up) return up / hosts end end
"""
MODEL = """
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local net = nn.sequential { nn.linear(256, 512), nn.tanh, nn.linear(512, 512), nn.tanh, nn.linear(512, 16) }
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, {
  params = net, optimizer = optim.adam { lr = 1e-3 }, microbatches = 16, strategy = { STACK },
})
local function zeros(width) return orrery.tensor({ { 0.0 } }):expand(64, width) end
local rows = orrery.data.arrays { x = zeros(256), y = zeros(16) }
run:step(rows:batch(1, { size = 64 }))
run:save("FOLDER/saved", "", false)
run:finish_save()
print(("saved %d"):format(run:counters().checkpoint_bytes))
"""


def numbers_of(job):
    fields = [f"{name} = {value!r}" for name, value in job.items()]
    return "{ " + ", ".join([*fields, f"speed = linear({job['hosts']})"]) + " }"


def formula(job, interval):
    """Of the goodput where lost hosts are back at once: a start keeps the work whose save is written when it fails."""
    rate = job["hosts"] / job["mtbf"]
    first = job["restart"] + interval + job["copy"] + job["write"]
    return rate * interval * math.exp(-rate * first) / -math.expm1(-rate * (job["copy"] + max(interval, job["write"])))


class Start:
    """One start of a job, walked from event to event. Independent of goodput.lua, which counts periods."""

    def __init__(self, job, interval, speed):
        self.job, self.interval, self.speed = job, interval / speed, speed

    def walk(self, fails, told):
        """Seconds until it has ended and the work that is kept; `told`: when a host is back."""
        now, work, kept, flights = self.job["restart"], 0.0, 0.0, []
        told = max(told, now)

        def ended(at):
            safe = [amount for ready, amount in flights if ready <= fails]
            if fails <= at:
                return fails, max([kept, *safe])
            return None

        while True:
            until = min(now + self.interval, told)
            if fails <= until:
                return ended(until)
            work, now = work + until - now, until
            if now < told and flights:  # the next save waits for the last one
                now = min(max(now, flights[-1][0]), told)
            if now < told:
                now = min(now + self.job["copy"], told)
                flights.append((now + self.job["write"] if now < told else math.inf, work))
            if fails <= now:
                return ended(now)
            if now >= told:
                at = told + self.job["copy"] + self.job["write"]
                return ended(at) or (at, work)


def brute(job, interval, failures, seed):
    """The goodput, each host with its own clock."""
    draw = random.Random(seed)
    now = useful = 0.0
    away = []
    while failures:
        away = [back for back in away if back > now]
        up = job["hosts"] + job["spares"] - len(away)
        if up < job["least"]:
            now = min(away)
            continue
        hosts = min(up, job["hosts"])
        speed = hosts / job["hosts"]
        fails = min(draw.expovariate(1 / job["mtbf"]) for _ in range(hosts))
        told = min(away) - now if up < job["hosts"] else math.inf
        took, kept = Start(job, interval, speed).walk(fails, told)
        now, useful = now + took, useful + speed * kept
        if took == fails:
            failures -= 1
            if job["repair"]:
                away.append(now + job["repair"])
    return useful / now


class Arithmetic(unittest.TestCase):
    def ask(self, lines):
        """The numbers that lines of Lua show, a list for each line."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ask.lua"
            path.write_text(SCRIPT + "\n".join(lines) + "\n")
            done = orrery("run", path)
        self.assertEqual(done.code, 0, done.err)
        return [[float(word) for word in line.split()] for line in done.out.splitlines()]

    def goodputs(self, cases, failures=60000):
        call = "show((goodput.goodput(%s, %r, %d, 3)))"
        return [each for [each] in self.ask(call % (numbers_of(job), interval, failures) for job, interval in cases)]

    def test_daly_as_published(self):
        """Dumps of 5 minutes: 117, 57 and 9.1 minutes for a failure in 24 hours, 6 hours and 15 minutes."""
        found = self.ask(f"show(goodput.daly(5, {mtbf}), goodput.young(5, {mtbf}))" for mtbf in (1440, 360, 15))
        for (daly, young), want, mtbf in zip(found, (117, 57, 9.1), (1440, 360, 15)):
            self.assertAlmostEqual(daly, want, delta=0.006 * want)
            self.assertAlmostEqual(young, math.sqrt(2 * 5 * mtbf))
        self.assertEqual(self.ask(["show(goodput.daly(60, 30))"]), [[30]])

    def test_the_best_interval_of_simulations_is_dalys_in_its_range(self):
        for mtbf, restart in ((86400, 600), (21600, 600), (3600, 60)):
            job = BASE | dict(mtbf=mtbf, restart=restart, copy=300 if mtbf > 4000 else 30)
            [[steps, daly]] = self.ask([f"local job = {numbers_of(job)}",
                                        f"show(goodput.best(job, 1, 20000, 1), goodput.daly(job.copy, {mtbf}))"])
            self.assertAlmostEqual(steps, daly, delta=0.25 * daly)  # the optimum is flat
            self.assertGreater(formula(job, steps), formula(job, daly) - 1e-3)

    def test_simulation_against_the_formula(self):
        cases = [(BASE | dict(hosts=hosts, mtbf=mtbf * hosts, restart=restart, copy=copy, write=write), interval)
                 for hosts, mtbf, restart, copy, write, interval in
                 ((1, 1e4, 0, 1, 0, 140), (8, 1e4, 600, 5, 60, 300), (1, 1000, 90, 2, 200, 50),
                  (4, 500, 30, 10, 100, 100), (2, 1e4, 100, 50, 0, 5000), (1, 300, 300, 1, 30, 40))]
        for (job, interval), found in zip(cases, self.goodputs(cases)):
            with self.subTest(job=job, interval=interval):
                self.assertAlmostEqual(found, formula(job, interval), delta=0.02 * found)

    def test_simulation_against_another_one(self):
        """With hosts that are away, spare ones, and fewer than all; saves that wait for the one before among them."""
        few = BASE | dict(hosts=4, mtbf=4e4, restart=120, copy=4, write=60, repair=5000)
        cases = [(few | dict(least=4), 300), (few | dict(least=1), 300), (few | dict(least=3), 300),
                 (few | dict(least=4, spares=1), 300), (few | dict(least=2, spares=1), 40),
                 (few | dict(least=1, mtbf=8000), 200), (few | dict(repair=0, least=4), 30)]
        for number, ((job, interval), found) in enumerate(zip(cases, self.goodputs(cases))):
            with self.subTest(job=job, interval=interval):
                self.assertAlmostEqual(found, brute(job, interval, 60000, number), delta=0.015 * found + 1e-3)

    def test_parts_add_up_and_equal_seeds_are_equal(self):
        job = BASE | dict(hosts=4, mtbf=4e4, restart=120, copy=4, write=60, repair=5000, least=2)
        call = f"local s = goodput.simulate({numbers_of(job)}, 300, 5000, SEED) " \
            "show(s.wall, s.useful + s.again + s.saving + s.restarting + s.waiting + s.slower, s.fewest)"
        one, again, other = self.ask(f"do {call.replace('SEED', seed)} end" for seed in "112")
        self.assertAlmostEqual(one[0] / one[1], 1, places=9)
        self.assertTrue(one == again != other and one[2] == 2)

    def test_limits(self):
        rare, restart = BASE | dict(mtbf=1e15, copy=1e-3), BASE | dict(mtbf=10, restart=100)
        found = self.goodputs([(rare, 1e4), (restart, 5)], 2000)
        self.assertAlmostEqual(found[0], 1, places=5)
        self.assertLess(found[1], 1e-3)

    def test_llama_3(self):
        """How long a restart took is not published. With one that takes no time it is 98 %, with the 10 minutes that
        MegaScale's detection and diagnosis take at most 92 %. The checkpoint is 12 bytes for each of 405 billion
        parameters (weights and Adam in f32), and each rank reads its own part; steps wait for all of it."""
        save = 405e9 * 12 / 2e12
        job = BASE | dict(mtbf=54 * DAY / 466, copy=save)
        found = []
        for more in (0, 600):
            each = job | dict(restart=save + more)
            lines = [f"local job = {numbers_of(each)} local n = goodput.best(job, 10, 4000, 1)",
                     "show((goodput.goodput(job, 10 * n, 60000, 1)), 10 * n)"]
            [[goodput, interval]] = self.ask(lines)
            self.assertAlmostEqual(goodput, formula(each, interval), delta=4e-3)
            found.append(goodput)
        self.assertTrue(0.9 < found[1] < 0.93 < 0.97 < found[0] < 0.985, found)
        self.assertLess(self.goodputs([(job | dict(restart=1200), 219)])[0], 0.9)  # the test would see it

    def test_megascale(self):
        """At the bounds that it states, 100 restarts in three weeks, and 15 minutes to catch up at most."""
        job = BASE | dict(mtbf=21 * DAY / 100, restart=600, copy=5)
        [goodput] = self.goodputs([(job, 15 * 60)])
        self.assertTrue(0.92 < goodput < 0.95, goodput)
        self.assertLess(self.goodputs([(job | dict(mtbf=7 * DAY / 100), 15 * 60)])[0], 0.9)


class Plans(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def script(self, stack):
        path = pathlib.Path(self.folder.name) / "model.lua"
        path.write_text(MODEL.replace("STACK", stack).replace("FOLDER", self.folder.name))
        return path

    def machine(self, **more):
        facts = json.loads((SOURCE / "scripts/orrery/machines/a100.json").read_text())
        path = pathlib.Path(self.folder.name) / "machine.json"
        path.write_text(json.dumps(facts | more))
        return path

    def plan(self, *words):
        done = orrery("plan", *words)
        self.assertEqual(done.code, 0, done.err)
        return done.out

    def test_the_checkpoint_is_the_one_that_runs_save(self):
        stacks = {"strategy.data {}": 3, "strategy.data {}, strategy.zero { stage = 3 }": 2,
                  "strategy.pipeline { size = 2 }, strategy.data {}": 4, "strategy.data {}, strategy.topk {}": 2,
                  "strategy.tensor {}, strategy.recompute {}": 2,
                  'strategy.data {}, strategy.precision { compute = "bf16" }': 2}
        for stack, ranks in stacks.items():
            with self.subTest(stack=stack):
                script = self.script(stack)
                planned = json.loads(self.plan("--json", "-n", ranks, script))["checkpoint_bytes"]
                run = orrery("run", "-n", ranks, script)
                self.assertEqual(run.code, 0, run.err)
                saved = list(map(int, re.findall(r"saved (\d+)", run.out)))
                self.assertEqual((len(saved), sum(saved)), (ranks, planned))

    def test_figures_come_from_the_plan_and_the_machines_file(self):
        machine = self.machine(storage_bandwidth=1e6, storage_total=3e6, restart_seconds=40, repair_hours=10,
                               host={"latency": 1e-6, "bandwidth": 1e8})
        words = ("-n", 8, "--machine", machine, self.script("strategy.data {}"))
        step = json.loads(self.plan("--json", "--mtbf", 100, "--nodes", 4, *words))
        found, size = step["goodput"], step["checkpoint_bytes"]
        for name, want in dict(hosts=4, mtbf_seconds=25 * HOUR, copy_seconds=size / 8 / 1e8, write_seconds=size / 3e6,
                               load_seconds=4 * size / 3e6, restart_seconds=40 + 4 * size / 3e6,
                               repair_seconds=10 * HOUR, interval_seconds=found["every"] * step["step_seconds"],
                               young_seconds=math.sqrt(2 * size / 8e8 * 25 * HOUR)).items():
            self.assertAlmostEqual(found[name], want, delta=1e-6 * want, msg=name)
        self.assertEqual(found["assumed"], [])
        job = BASE | dict(mtbf=25 * HOUR, copy=found["copy_seconds"], write=found["write_seconds"],
                          restart=found["restart_seconds"])
        self.assertAlmostEqual(found["goodput"], formula(job, found["interval_seconds"]), delta=2e-3)
        self.assertAlmostEqual(sum(found[part] for part in ("goodput", "saves", "restarts", "again")), 1)
        of_job = json.loads(self.plan("--json", "--job-mtbf", 25, "--nodes", 4, *words))["goodput"]
        self.assertEqual(of_job, found)
        wait, fewer, spares = found["ways"]
        self.assertEqual([way["what"] for way in found["ways"]], ["wait", "fewer", "spares"])
        self.assertTrue(wait["goodput"] < fewer["goodput"] < spares["goodput"] <= found["goodput"] + 5e-3, found)
        self.assertTrue(1 <= spares["spares"] <= 4 and 1 <= fewer["fewest_hosts"] < 4)

    def test_slow_storage_keeps_saves_apart(self):
        """The best interval is then what a save takes to be written, not Daly's."""
        machine = self.machine(storage_bandwidth=1e4, host={"latency": 1e-6, "bandwidth": 1e11})
        found = json.loads(self.plan("--json", "--machine", machine, "-n", 2, "--mtbf", 10,
                                     self.script("strategy.data {}")))["goodput"]
        self.assertLess(found["daly_seconds"], 0.2 * found["write_seconds"])
        self.assertAlmostEqual(found["interval_seconds"] / found["write_seconds"], 1, delta=0.1)

    def test_text_and_days(self):
        words = ("-n", 16, "--machine", "a100", "--mtbf", 50, self.script("strategy.data { }"))
        step = json.loads(self.plan("--json", *words))
        found, text = step["goodput"], self.plan("--steps", "1e8", *words)
        self.assertIn(f"  goodput {100 * found['goodput']:.3g} % of the time, with ", text)
        self.assertIn("2 hosts, each fails every 2.08 days", text)
        self.assertIn(f"save every {found['every']} steps", text)
        self.assertRegex(text, r"assumed, as the machine's file does not say it: storage_bandwidth 1.25e\+08, ")
        units = {"ms": 1e-3, "s": 1, "minutes": 60, "hours": HOUR, "days": DAY}
        said = re.search(r"with failures and saves ([\d.]+) (\w+), ([\d.]+) (\w+) more; some ([\d.]+) fail", text)
        takes, more = (float(said[i]) * units[said[i + 1]] for i in (1, 3))
        wanted = 1e8 * step["step_seconds"] / found["goodput"]
        self.assertAlmostEqual(takes, wanted, delta=5e-3 * wanted)
        self.assertAlmostEqual(more, (1 - found["goodput"]) * wanted, delta=5e-3 * more)
        self.assertAlmostEqual(float(said[5]), wanted / (25 * HOUR), delta=5e-3 * wanted / (25 * HOUR))
        self.assertNotIn("goodput", self.plan(*words[:4], words[6]))
        self.assertNotIn("hardly gets on", text)

    def test_a_job_that_fails_before_it_has_started(self):
        script, machine = self.script("strategy.data {}"), self.machine(restart_seconds=600)
        words = ("-n", 2, "--machine", machine, "--job-mtbf", 0.1, script)
        self.assertIn("is less than a restart takes, 10 minutes: the job hardly gets on", self.plan(*words))

    def test_one_copy_of_the_model_cannot_go_on_with_fewer(self):
        words = ("-n", 2, "--nodes", 2, "--mtbf", 50, self.script("strategy.pipeline { size = 2 }"))
        ways = json.loads(self.plan("--json", *words))["goodput"]["ways"]
        self.assertEqual([way["what"] for way in ways], ["wait", "spares"])

    def test_bad_input(self):
        script, machine = self.script("strategy.data {}"), self.machine(repair_hours=0)
        for words, said in ((("--mtbf", 0), "--mtbf 0: give hours above 0"),
                            (("--mtbf=-3",), "--mtbf -3: give hours above 0"),
                            (("--job-mtbf", "inf"), "--job-mtbf inf: give hours above 0"),
                            (("--mtbf", 5, "--nodes", 3), "--nodes 3: hosts have equally many ranks"),
                            (("--mtbf", 5, "--nodes", 0), "--nodes 0: a job has at least one host"),
                            (("--nodes", 2), "--nodes 2: give --mtbf or --job-mtbf"),
                            (("--mtbf", 5, "--job-mtbf", 5), "excludes"), (("--mtbf", 5, "--digest"), "excludes"),
                            (("--mtbf", 5, "--machine", machine), "repair_hours is 0, but must be")):
            with self.subTest(words=words):
                done = orrery("plan", "-n", 4, *words, script)
                self.assertIn(done.code, (1, 2))
                self.assertIn(said, done.err)

    def test_the_example_of_the_docs(self):
        page = (SOURCE / "docs/plan.md").read_text()
        section = re.search(r"^## Failures\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)[1]
        self.assertEqual(follow(self, section, SOURCE), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
