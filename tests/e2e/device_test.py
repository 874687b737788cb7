# SPDX-License-Identifier: Apache-2.0
"""Programs on a device that is not the host have the bits of the host: a strict one of the tests, whose
kernels are the reference's (tests/run/strict_device).

Argument: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import BUILD, HERE, orrery, sampled

STRICT = {"ORRERY_PLUGIN_PATH": str(BUILD / "tests/run")}
GPT = ["examples/gpt.lua", "data=examples/gpt.lua", "dim=32", "layers=2", "heads=2", "ctx=16", "batch=12",
       "microbatches=12", "steps=6", "dropout=0.1", "clip=1", "eval=3", "sample=20"]
MLP = ["examples/mlp.lua", "steps=40"]

# (ranks, words): the whole output but for times.
SCRIPTS = [(1, MLP), (2, MLP), (3, MLP), (1, GPT), (2, GPT), (3, GPT), (1, ["examples/custom-loop.lua"]),
           (2, ["examples/custom-loop.lua"]), (3, ["examples/contrastive.lua", "steps=10"])]

ZERO3 = "strategy.data{}, strategy.zero{ stage = 3 }"
F16 = 'strategy.precision{ compute = "f16", growth_interval = 3 }'
# (ranks, stack, words of strategies.lua): held against the same stack on the reference.
STACKS = [
    (1, "nil", ("model=mlp", "optimizer=lua")),
    (3, "{ strategy.data{} }", ()),
    (2, "{ own{} }", ("model=mlp",)),
    (1, "{ strategy.recompute{}, strategy.accumulate{} }", ()),
    (2, "{ strategy.data{}, strategy.zero{} }", ()),
    (2, f"{{ {ZERO3} }}", ()),
    (3, f"{{ {ZERO3}, strategy.accumulate{{}} }}", ()),
    (3, "{ strategy.data{}, strategy.zero{ stage = 2, bucket = 5000 } }", ()),
    (2, "{ strategy.data{}, strategy.zero{} }", ("vocab=1000", "tie=false")),
    (2, '{ strategy.pipeline{ schedule = "1f1b" } }', ()),
    (2, '{ strategy.pipeline{ schedule = "zbv" }, strategy.recompute{} }', ()),
    (4, f"{{ strategy.pipeline{{ size = 2 }}, {ZERO3} }}", ()),
    (2, "{ strategy.tensor{ size = 2 } }", ()),
    (4, "{ strategy.data{ size = 2 }, strategy.tensor{ size = 2, sequence = true } }", ()),
    (3, "{ strategy.server{ dedicated = 1 } }", ()),
    (2, '{ strategy.data{}, strategy.accumulate{} }, reduce = "fast"', ()),
    (2, '{ strategy.pipeline{ schedule = "zbv" } }, reduce = "fast"', ()),
    (2, '{ strategy.data{}, strategy.zero{ stage = 3, offload = "host" } }', ()),
    (2, '{ strategy.data{}, strategy.zero{ offload = "disk" } }', ()),
    (1, '{ strategy.recompute{ offload = "host" } }', ()),
    (1, '{ strategy.recompute{ offload = "disk" }, strategy.accumulate{} }', ()),
    # The device has no sums in another dtype: the core gives it inputs that are cast.
    (2, '{ strategy.data{}, strategy.precision{ wire = "f32" } }', ()),
    (1, '{ strategy.accumulate{}, strategy.precision{ compute = "f16", wire = "f32", loss_scale = 64 } }', ()),
]
SCALED = [(1, f"{{ {F16} }}"), (2, f"{{ {ZERO3}, {F16} }}"), (2, f"{{ strategy.pipeline{{}}, {F16} }}")]


def run(kernels, ranks, *words, **variables):
    return orrery("run", "-n", ranks, "--threads", 1, "--kernels", kernels, *words, **STRICT, **variables)


def said(done):
    """What a run prints, without times and what the progress bar writes."""
    if done.code:
        raise AssertionError(f"exit code {done.code}:\n{done.out}{done.err}")
    return [re.sub(r"  [\d.]+ ms$", "", line) for line in done.out.splitlines() if " info step " not in line]


class Device(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def script(self, stack, name="strategies.lua"):
        path = self.folder / name
        path.write_text((HERE / name).read_text().replace("= STACK", "= " + stack))
        return path

    def same(self, ranks, *words, seeds=(1,)):
        expected = said(run("reference", ranks, *words))
        self.assertTrue(any("digest" in line for line in expected), expected)
        for seed in seeds:
            self.assertEqual(said(run("strict", ranks, *words, STRICT_SEED=str(seed))), expected)

    def test_steps_go_on_when_the_arena_has_moved(self):
        self.assertEqual(said(run("strict", 1, HERE / "grow.lua")), said(run("reference", 1, HERE / "grow.lua")))

    def test_scripts(self):
        for ranks, words in sampled(SCRIPTS):
            with self.subTest(ranks=ranks, words=words):
                self.same(ranks, *words)

    def test_a_permission_that_no_kernel_knows_changes_nothing(self):
        script = self.folder / "fast.lua"
        script.write_text((HERE.parents[1] / MLP[0]).read_text().replace("optimizer =", 'numerics = "fast", optimizer =', 1))
        self.assertEqual(said(run("strict", 2, script, "steps=10")), said(run("reference", 2, MLP[0], "steps=10")))

    def test_stacks(self):
        for ranks, stack, words in sampled(STACKS):
            with self.subTest(ranks=ranks, stack=stack, words=words):
                self.same(ranks, self.script(stack), "steps=9", *words, seeds=(1, 2))

    def test_loss_scale(self):
        for ranks, stack in SCALED:
            with self.subTest(ranks=ranks, stack=stack):
                self.same(ranks, self.script(stack, "loss_scale.lua"), "bad=4")

    def test_saved_there_and_continued_here(self):
        whole = said(run("reference", 1, *GPT))[-1]
        for before, after in ((("strict", 2), ("reference", 3)), (("reference", 3), ("strict", 1))):
            with self.subTest(before=before, after=after), tempfile.TemporaryDirectory() as folder:
                saved = pathlib.Path(folder) / "checkpoint"
                said(run(*before, *GPT, "stop=4", f"save={saved}"))
                self.assertEqual(said(run(*after, *GPT, f"load={saved}"))[-1], whole)

    def counts(self, *words):
        done = run("strict", 1, *words, STRICT_COUNTS="1")
        found = re.search(r"^strict device: (.*)$", done.err, re.MULTILINE)
        self.assertTrue(found, done.err)
        numbers = found[1].split()
        return {name: int(n) for name, n in zip(numbers[::2], numbers[1::2])}

    def test_steps_are_recorded(self):
        """From the third step on a step is graphs, a wait, and what cannot be recorded."""
        few, many, more = (self.counts("examples/mlp.lua", f"steps={steps}") for steps in (10, 20, 30))
        for name in ("launches", "recorded", "allocations"):
            self.assertEqual(many[name], few[name], name)
        # None looks at the parameters: the norm of gradients is known.
        self.assertEqual(more["graphs"] - many["graphs"], 10)
        self.assertEqual(more["syncs"] - many["syncs"], 10)
        gpt = [word for word in GPT if not word.startswith(("steps", "sample", "eval"))] + ["sample=0", "eval=0"]
        few, many = (self.counts(*gpt, f"steps={steps}") for steps in (10, 20))
        # scatter_add, which may not be recorded there, for positions and tokens, and the one launch between.
        self.assertEqual(many["launches"] - few["launches"], 3 * 10)
        self.assertEqual(many["graphs"] - few["graphs"], 2 * 10)
        self.assertEqual(many["syncs"] - few["syncs"], 10)
        self.assertEqual(many["allocations"], few["allocations"])
        profiled = self.counts("--profile", "examples/mlp.lua", "steps=10")
        self.assertEqual(profiled["graphs"], 0)

    def test_late_errors_name_their_place(self):
        bad = HERE / "bad/label.lua"
        host, device = (run(kernels, 1, bad) for kernels in ("reference", "strict"))
        self.assertEqual((device.code, host.code), (1, 1), device.err)
        where = re.search(r"label.lua:\d+: .*", host.err)
        self.assertTrue(where, host.err)
        kernel, device_name = " [kernel 'reference', launch]", " [device 'strict', event_sync]"
        self.assertTrue(where[0].endswith(kernel), where[0])
        self.assertIn(where[0].removesuffix(kernel) + device_name, device.err)

    def test_the_way_of_exchanges_is_told(self):
        done = run("strict", 2, "--profile", *MLP)
        self.assertIn("profile: exchanges of comm 'local' are staged: device 'strict' to pinned memory and back", done.out)
        self.assertNotIn("staged", run("reference", 2, "--profile", *MLP).out)

    def test_a_plan_needs_no_device(self):
        away = {**STRICT, "STRICT_ABSENT": "1"}
        plan = orrery("plan", "--details", "-n", 2, "--kernels", "strict", *MLP, **away)
        self.assertEqual(plan.code, 0, plan.err)
        self.assertRegex(plan.out, r"outside +3145728 +3.* +of driver and libraries")
        done = orrery("run", "--kernels", "strict", *MLP, **away)
        self.assertEqual(done.code, 69, done.err)
        self.assertIn("kernels 'strict' cannot run here: no strict device here", done.err)

    def test_what_a_plugin_may_go_without(self):
        """Every function of both tables and every permission of a kernel, one missing at a time: the same bits, or a
        sentence that says which. Eight microbatches on three ranks lie apart in memory."""
        words = [*MLP[:1], "steps=3", "microbatches=8"]
        expected = said(run("reference", 3, *words))
        file = re.escape(str(BUILD / "tests/run/orrery-kernel-strict.so"))
        for name in ("strided_out", "inplace", "capturable", "stream_create_urgent", "release"):
            with self.subTest(without=name):
                self.assertEqual(said(run("strict", 3, *words, STRICT_WITHOUT=name, STRICT_SEED="1")), expected)
        refused = {
            "strided_in": "mlp.lua:\\d+: sequential: pointwise: kernel plugin 'strict' says that it takes no strides here "
                          "\\(strided_in, .*: choose other --kernels",
            "probe": "kernels 'strict' cannot run here: this plugin does not implement 'probe'",
            "supports": "no kernel plugin computes .*\n.*strict: this plugin does not implement 'supports'"}
        for name in ("measure", "prepare", "launch"):
            refused[name] = rf"mlp.lua:\d+: .*this plugin does not implement '{name}' \[kernel 'strict', {name}\]"
        for name in ("facts", "allocate", "free", "copy", "stream_create", "stream_destroy", "event_create",
                     "event_destroy", "event_record", "stream_wait", "event_sync", "open"):
            refused[name] = rf"plugin {file}: interface: its table has no function '{name}', which every plugin of its kind must have"
        for name in ("capture_begin", "capture_end", "graph_launch", "graph_destroy"):
            refused[name] = f"plugin {file}: interface: its table has some of 'capture_begin', .*'graph_destroy': a device"
        for name, why in refused.items():
            with self.subTest(without=name):
                done = run("strict", 1, *words, STRICT_WITHOUT=name)
                self.assertIn(done.code, (1, 69), done.err)
                self.assertRegex(done.err, why)

    def test_refusals(self):
        done = orrery("run", "--kernels", "strict,reference", *MLP, **STRICT)
        self.assertEqual(done.code, 2, done.err)
        self.assertIn("kernels 'strict' work on device 'strict' and 'reference' on 'host': choose plugins of one device",
                      done.err)
        done = run("strict", 2, self.script('{ strategy.server{ mode = "async" } }', "served.lua"))
        self.assertEqual(done.code, 69, done.err)
        self.assertRegex(done.err, r"served.lua:\d+: strategy.server: servers of their own time work on the host")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
