# SPDX-License-Identifier: Apache-2.0
"""The projects of examples/plugin-*/ build against an installed prefix and pass the judge.

Arguments: the build tree.
"""
import json
import pathlib
import re
import shutil
import sys
import unittest

from installed import Installed, words_of

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


class Examples(Installed):
    # Each is built once.
    def build(self, name):
        project = pathlib.Path(self.place) / "examples" / name
        if not project.exists():
            shutil.copytree(EXAMPLES / name, project)
            self.call(["meson", "setup", "build", "-Dwerror=true"], project)
            self.call(["meson", "compile", "-C", "build"], project)
        return project

    def test_each_builds_and_passes(self):
        names = sorted(p.name for p in EXAMPLES.glob("plugin-*"))
        self.assertGreater(len(names), 3)
        for name in names:
            with self.subTest(example=name):
                self.assertLess((EXAMPLES / name / "README.md").read_text().count("\n"), 60)
                project = self.build(name)
                [plugin] = (project / "build").glob("orrery-*.so")
                report = json.loads(self.call(["orrery", "check", str(plugin), "--json"], project))
                self.assertEqual(report["failed"], 0)
                self.assertGreater(report["passed"], 8)

    def test_the_strategy_is_the_same_in_lua(self):
        project = self.build("plugin-strategy")

        def run(command, by):
            return self.call(["orrery", command, "train.lua", f"by={by}"], project,
                             ORRERY_PLUGIN_PATH=str(project / "build"))

        digests = {by: run("run", by) for by in ("nothing", "frugal", "frugal_lua")}
        self.assertIn("digest ", digests["nothing"])
        self.assertEqual(len(set(digests.values())), 1, digests)
        plans = {by: run("plan", by) for by in digests}
        self.assertEqual(plans["frugal"], plans["frugal_lua"])
        self.assertNotEqual(plans["frugal"], plans["nothing"])

    def trains_alike(self, project):
        """What train.lua prints, one text on 1, 2 and 3 ranks."""
        printed = {self.call(["orrery", "run", "-n", str(ranks), "train.lua"], project,
                             ORRERY_PLUGIN_PATH=str(project / "build")) for ranks in (1, 2, 3)}
        self.assertEqual(len(printed), 1, printed)
        return printed.pop()

    def test_the_op_with_a_kernel_trains_alike_on_any_number_of_ranks(self):
        lines = self.trains_alike(self.build("plugin-ema")).splitlines()
        self.assertEqual(lines[0], "ema 2 1 4.5")
        self.assertIn("digest ", lines[-1])

    def test_a_group_of_ops_by_one_kernel_has_the_bits_of_each_alone(self):
        project = self.build("plugin-group")
        expected = self.call(["orrery", "run", "train.lua"], project)
        self.assertIn("digest ", expected)
        for ranks, stack in ((1, "data"), (3, "data"), (2, "zero"), (2, "accumulate"), (2, "pipeline")):
            with self.subTest(ranks=ranks, stack=stack):
                words = ["--kernels", "cpu,group", "-n", str(ranks), "train.lua", f"stack={stack}"]
                where = {"ORRERY_PLUGIN_PATH": str(project / "build")}
                self.assertEqual(self.call(["orrery", "run", *words], project, **where), expected)
                plan = self.call(["orrery", "plan", "--details", *words], project, **where)
                self.assertIn("rmsnorm + matmul", plan)

    def test_a_strategy_uses_ops_of_plugins_as_a_script_does(self):
        paths = ":".join(str(self.build(f"plugin-{name}") / "build") for name in ("squash", "moments"))
        script = pathlib.Path(__file__).with_name("plugin_ops.lua")

        def run(*words):
            return words_of(["orrery", "run", *map(str, words)], cwd=self.place,
                            env=self.environment | {"ORRERY_PLUGIN_PATH": paths})

        digests = {run("-n", n, script, f"by={by}").stdout for n in "12" for by in ("script", "strategy")}
        self.assertEqual(len(digests), 1, digests)
        self.assertRegex(min(digests), r"^digest \w{32}\n$")
        self.assertNotIn(run(script, "by=nothing").stdout, digests)
        for word, says in (("eps=epps", "ops.squash: unknown option 'epps' (did you mean 'eps'?)"),
                           ("op=sqash", "there is no op 'sqash'")):
            done = run(script, "by=strategy", word)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)

    def test_the_op_of_two_results_trains_alike_by_its_kernel_and_by_known_ops(self):
        project = self.build("plugin-moments")
        lines = self.trains_alike(project).splitlines()
        self.assertEqual(lines[0], "moments 3 3.5")
        self.assertIn("digest ", lines[-1])
        wide = {self.call(["orrery", "run", "-n", str(ranks), "train.lua", "width=5000"], project,
                          ORRERY_PLUGIN_PATH=str(project / "build")) for ranks in (1, 3)}
        self.assertEqual(len(wide), 1, wide)

        def launches(width):
            plan = self.call(["orrery", "plan", "--details", "train.lua", f"width={width}"], project,
                             ORRERY_PLUGIN_PATH=str(project / "build"))
            return re.findall(r"^ .* moments +moments \(1\)$", plan, re.MULTILINE)

        self.assertEqual((len(launches(8)), launches(5000)), (1, []))

    def test_the_op_that_sums_over_the_batch_trains_as_known_ops_do(self):
        project = self.build("plugin-sums")
        where = {"ORRERY_PLUGIN_PATH": str(project / "build")}

        def run(ranks, *words):
            return self.call(["orrery", "run", "-n", str(ranks), "train.lua", *words], project, **where)

        one = run(1)
        self.assertIn("digest ", one)
        for ranks, stack in ((2, "data"), (3, "data"), (2, "one_by_one"), (3, "zero"), (2, "recompute")):
            with self.subTest(ranks=ranks, stack=stack):
                self.assertEqual(run(ranks, f"stack={stack}"), one)
        self.assertEqual(run(3, "microbatches=5"), run(1, "microbatches=5"))  # the last one is padded
        losses = [re.findall(r"loss (\S+)", run(2, "wide=true", *more)) for more in ((), ("known=true",))]
        self.assertEqual(len(losses[0]), 5)
        self.assertEqual(*losses)
        plan = self.call(["orrery", "plan", "--details", "train.lua"], project, **where)
        self.assertRegex(plan, r"scale_shift_sums +sums")

    def test_the_op_on_parts_exchanges_two_numbers_of_each_row(self):
        project = self.build("plugin-parts")
        where = {"ORRERY_PLUGIN_PATH": str(project / "build")}

        def losses(ranks, *words):
            text = self.call(["orrery", "run", "-n", str(ranks), "train.lua", *words], project, **where)
            return [float(loss) for loss in re.findall(r"loss (\S+)", text)]

        known = losses(1, "known=true")
        self.assertEqual(len(known), 5)
        self.assertGreater(known[0] - known[-1], 0.1)
        for ranks, words in ((1, ()), (2, ()), (3, ("classes=12",)), (3, ("stack=data",))):
            with self.subTest(ranks=ranks, words=words):
                want = losses(1, "known=true", *words) if "classes=12" in words else known
                for got, loss in zip(losses(ranks, *words), want, strict=True):
                    self.assertAlmostEqual(got, loss, delta=1e-9)
        # With chunks the bits are those of any number of ranks.
        self.assertEqual(*(self.call(["orrery", "run", "-n", ranks, "train.lua", "stack=chunks", "classes=12"], project, **where)
                           for ranks in ("1", "2")))
        plan = self.call(["orrery", "plan", "-n", "2", "--layouts", "train.lua"], project, **where)
        self.assertNotIn("cannot work on parts", plan)
        self.assertNotRegex(plan, r"all_gather +f64\[12,")

    def test_the_op_trains_alike_on_any_number_of_ranks(self):
        project = self.build("plugin-squash")
        self.assertIn("digest ", self.trains_alike(project))
        refused = project / "refused.lua"
        refused.write_text('local orrery = require "orrery"\nlocal f = orrery.func(function(x)\n'
                           '  local y = orrery.ops.squash(x)\n  return y\nend)\nf { 1.0 }\n')
        done = words_of(["orrery", "run", str(refused)], cwd=project,
                        env=self.environment | {"ORRERY_PLUGIN_PATH": str(project / "build")})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("refused.lua:3: ops.squash: squash needs rows", done.stderr)

    def test_the_observer_writes_its_table(self):
        project = self.build("plugin-observer")
        script = EXAMPLES / "plugin-strategy/train.lua"
        self.call(["orrery", "run", "--dir", "here", str(script), "by=nothing"], project,
                  ORRERY_PLUGIN_PATH=str(project / "build"))
        [table] = project.rglob("steps.csv")
        lines = [line.split(",") for line in table.read_text().splitlines()]
        self.assertEqual(lines[0], ["step", "what", "value"])
        self.assertEqual([int(step) for step, what, _ in lines if what == "seconds"], [1, 2, 3, 4, 5])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
