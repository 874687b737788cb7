# SPDX-License-Identifier: Apache-2.0
"""Plugins of third parties, made against an installed prefix: every template in both languages, and the
commands of docs/plugins.md and docs/extend word by word.

Arguments: the build tree.
"""
import json
import os
import pathlib
import re
import shutil
import sys
import unittest

from installed import Installed, words_of

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Judged by the commands of the pages.
OF_PAGES = [("kernel", []), ("device", []), ("strategy", []), ("op", []), ("observer", ["--c"]), ("data", [])]
# Its README says where things are, and has nothing to be typed.
PAGES = [SOURCE / "docs/plugins.md", *sorted(p for p in (SOURCE / "docs/extend").glob("*.md") if p.stem != "README")]


class Kit(Installed):
    def test_every_template_builds_and_passes(self):
        for kind in ("kernel", "device", "comm", "strategy", "observer", "op", "data"):
            for flags in ([], ["--c"]):
                with self.subTest(kind=kind, flags=flags), self.folder() as folder:
                    self.call(["orrery", "new", "plugin", kind, "mine", *flags], folder)
                    project = pathlib.Path(folder) / "mine"
                    source = "mine.c" if flags else "mine.cpp"
                    self.assertEqual(sorted(os.listdir(project)), ["README.md", "meson.build", source])
                    self.call(["meson", "setup", "build", "-Dwerror=true"], project)
                    self.call(["meson", "compile", "-C", "build"], project)
                    if (kind, flags) in OF_PAGES:
                        continue
                    plugin = f"build/orrery-{kind}-mine.so"
                    report = json.loads(self.call(["orrery", "check", plugin, "--json"], project))
                    provides = "kernel+device" if kind == "device" else kind
                    self.assertEqual((report["failed"], report["kind"]), (0, provides))
                    self.assertGreater(report["passed"], 11)

    def test_a_kernel_of_the_kit_computes_in_a_run(self):
        script = "\n".join([
            'local orrery = require "orrery"',
            "local model = orrery.nn.linear(2, 2)",
            "local run = orrery.compile(function(b) return model(b.x):softmax():mean() end,",
            "  { params = model, optimizer = orrery.optim.sgd { lr = 0.1 } })",
            "run:step { x = orrery.tensor { { 1.0, 2.0 } } }"])
        with self.folder() as folder:
            (pathlib.Path(folder) / "train.lua").write_text(script)
            for flags in ([], ["--c"]):
                name = "plain" if flags else "thin"
                self.call(["orrery", "new", "plugin", "kernel", name, *flags], folder)
                self.call(["meson", "setup", "build", name], folder)
                self.call(["meson", "compile", "-C", "build"], folder)
                plan = self.call(["orrery", "plan", "train.lua"], folder, ORRERY_PLUGIN_PATH=f"{folder}/build")
                self.assertRegex(plan, rf"softmax +{name} \(110\)")
                shutil.rmtree(pathlib.Path(folder) / "build")

    def test_a_backend_of_the_kit_trains(self):
        """Sends and receives alone, under what leaves ranks with empty parts."""
        script = "\n".join([
            'local orrery = require "orrery"',
            "local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy",
            'local by = orrery.args { by = "alone" }.by',
            'local Model = nn.module("Model", function(m)',
            "  m.tok, m.a, m.b = nn.embedding(10, 8), nn.linear(8, 8), nn.linear(8, 10)",
            "  return function(ids) return m.b(nn.relu(m.a(m.tok(ids)))) end",
            "end)",
            "orrery.seed(1)",
            "local model = Model()",
            "local stacks = { alone = {}, data = { strategy.data {} }, pipeline = { strategy.pipeline { size = 2 } },",
            "  zero = { strategy.data {}, strategy.zero { stage = 3 } },",
            '  place = { strategy.place { modules = { { "tok", "a" }, "b" } } } }',
            "local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {",
            "  params = model, optimizer = optim.adamw { lr = 0.1 }, microbatches = 4, strategy = stacks[by] })",
            "local x, y = {}, {}",
            "for i = 1, 8 do x[i], y[i] = i % 10, i * 3 % 10 end",
            'for _ = 1, 3 do run:step { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") } end',
            "local digest = orrery.digest(model)",
            'if orrery.world.rank == 0 then print("digest " .. digest) end'])
        horovod = [str(SOURCE / "examples/horovod.lua"), "steps=3"]
        with self.folder() as folder:
            (pathlib.Path(folder) / "train.lua").write_text(script)
            alone = self.call(["orrery", "run", "train.lua"], folder)
            self.assertIn("digest ", alone)
            by_local = self.call(["orrery", "run", "-n", "2", *horovod], folder)
            for flags in ([], ["--c"]):
                name = "plain" if flags else "thin"
                self.call(["orrery", "new", "plugin", "comm", name, *flags], folder)
                self.call(["meson", "setup", "build", name], folder)
                self.call(["meson", "compile", "-C", "build"], folder)
                start = ["orrery", "run", "-n", "2", "--comm", name]
                place = {"ORRERY_PLUGIN_PATH": f"{folder}/build"}
                for by in ("data", "pipeline", "zero", "place"):
                    with self.subTest(backend=name, by=by):
                        self.assertEqual(self.call([*start, "train.lua", f"by={by}"], folder, **place), alone)
                self.assertEqual(self.call([*start, *horovod], folder, **place), by_local)
                shutil.rmtree(pathlib.Path(folder) / "build")

    def test_the_guides_word_by_word(self):
        shown = {"plugins": "kernel    swift", "op": "swish(1) = 0.8808\n", "layer": "plan: 2 ranks",
                 "strategy": "plan: 2 ranks", "backend": "rank 2: the sum is 6\n", "observer": "steps: 5 steps in ",
                 "boot": "boot plugin 'directory', as rank 2 of 3", "checkpoint": ".metadata\n2\n",
                 "device": "kernel+device 'slate' 0.1.0", "data": "30 samples, two of them: HostTensor f32[2,4] "}
        self.assertEqual(sorted(shown), sorted(page.stem for page in PAGES))
        for page in PAGES:
            blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
            with self.subTest(page=page.name), self.folder() as folder:
                done = words_of(["bash", "-e", "-c", "".join(blocks)], cwd=folder, env=self.environment)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(shown[page.stem], done.stdout + done.stderr)
                self.assertEqual("orrery check " in "".join(blocks), page.stem != "layer")
                self.assertLessEqual(len(set(re.findall(r"^digest (\w+)", done.stdout + done.stderr, re.MULTILINE))), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
