# SPDX-License-Identifier: Apache-2.0
"""Nothing knows a strategy by name: each of the repository's, copied under a name and over axes that nobody has
heard of, has the digest and the plan of the original. Those in Lua stand in the user's own script, plugins are
built from a copy of their source (invent.py).

Arguments: the build tree, the copied plugins.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from invent import invent, names
from program import HERE, SOURCE, orrery
from sweep import Sweep, Training

LUA = {path.stem: path.read_text() for path in (SOURCE / "scripts/orrery/strategy").glob("*.lua")}
PLUGINS = {path.stem: "".join(p.read_text() for p in ([path] if path.is_file() else path.glob("*.cpp")))
           for path in (SOURCE / "plugins/strategy").iterdir()}
COPIES = [pathlib.Path(word).resolve() for word in sys.argv[2:]]
PARTS = 'modules = { { "tok", "blocks.1" }, { "blocks.2-4", "head" } }'

# Stacks of calls NAME{...}, and the model.
STACKS = [
    *((call, "pairs.lua") for call in (
        "data{}, accumulate{}", "adasum{}", "average{ every = 2, states = true }", "diloco{ every = 2 }", "easgd{ every = 2 }",
        "gossip{}", f"place{{ {PARTS} }}", "powersgd{ rank = 2 }", "quantized{}", "topk{ fraction = 4 }",
        "data{}", "data{}, zero{}", "data{}, zero{ stage = 3 }", "data{}, zero{ stage = 2, group = 1 }", "pipeline{}",
        "data{}, precision{}", "data{}, recompute{}", "tensor{}", "tensor{ chunks = 4 }", "server{}", "server{ mode = 'stale' }",
        "diloco{ size = 1, every = 2 }, data{}, zero{}")),
    *((call, "switch.lua") for call in ("context{ kind = 'ulysses' }", "context{ kind = 'ring' }", "expert{}")),
]
CALL = re.compile(r"\b([a-z]+)\{")


def known(stack):
    return "{ " + CALL.sub(r"strategy.\1{", stack) + " }"


def copied(stack):
    def call(match):
        name = match[1]
        if name in LUA:
            return f"(function()\n{invent(name, LUA[name])}\nend)(){{"
        return f"strategy.{name[::-1]}{{"
    return "{ " + CALL.sub(call, stack) + " }"


class Invented(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.variables = {"ORRERY_PLUGIN_PATH": ":".join(map(str, COPIES))}

    def plan(self, stack, model):
        script = pathlib.Path(self.folder.name) / model
        script.write_text((HERE / model).read_text().replace("strategy = STACK", f"strategy = {stack}"))
        done = orrery("plan", "--details", "-n", 2, script, **self.variables)
        self.assertEqual(done.code, 0, done.err)
        # What to try next is said by the strategies' names.
        told = re.sub(r"^  next .*\n(?: {10}.*\n)*", "", done.out, flags=re.MULTILINE)
        return re.sub(rf"{re.escape(model)}:\d+", model, told)

    def test_every_strategy_is_here(self):
        called = {name for stack, _ in STACKS for name in CALL.findall(stack)}
        self.assertEqual(called, {*LUA, *PLUGINS})
        self.assertEqual(len(COPIES), len(PLUGINS))

    def test_copies_train_with_the_same_bits(self):
        sweep = Sweep(pathlib.Path(self.folder.name), **self.variables)
        pairs = [[Training(how(stack), 2, script=model) for how in (known, copied)] for stack, model in STACKS]
        sweep.run(one for pair in pairs for one in pair)
        for (stack, _), (original, copy) in zip(STACKS, pairs):
            with self.subTest(stack=stack):
                lines = sweep.lines(original)
                self.assertRegex(lines[-1], r"^digest \w{32}$")
                self.assertEqual(sweep.lines(copy), lines)

    def test_copies_have_the_same_plan(self):
        for stack, model in STACKS:
            with self.subTest(stack=stack):
                plan = self.plan(copied(stack), model)
                for name in CALL.findall(stack):
                    invented = names(name, LUA.get(name) or PLUGINS[name])
                    # The longest first: the name of an axis may hold that of its strategy.
                    for original, copy in sorted(invented.items(), key=lambda pair: -len(pair[0])):
                        plan = re.sub(rf"\b{re.escape(copy)}\b", original, plan)
                self.assertEqual(plan, self.plan(known(stack), model))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
