# SPDX-License-Identifier: Apache-2.0
"""Every EXACT strategy and stack gives the bits of one process: losses, gradient norms, parameters.

A row is a stack and the ranks it runs on; it is held against one process, with every optimizer where the MLP
trains and with one beside adamw where it does not. The GPT has tied embeddings, dropout and clipping; the last batches are ragged. Trainings of one
number of ranks share a job (sweep.py); each strategy has one of its own, too.

Arguments: the build tree; --write-costs writes docs/strategies/costs.md instead of testing, --write-digests digests.json.
"""
import json
import pathlib
import re
import sys
import unittest

import costs
from program import HERE, SCHEDULES, orrery, sampled
from sweep import Sweeping, Training

MODELS = ("gpt", "mlp")
OPTIMIZERS = ("sgd", "adamw", "lua")

GPT_STAGES = 'stages = { { "tok", "pos", "drop", "blocks.1" }, { "blocks.2-4", "norm", "head" } }'
# Forward of all, then backward from the last: what gpipe does, written by the script.
ORDER = """schedule = function(stage, stages, microbatches)
  local cells = {}
  for i = 0, microbatches - 1 do cells[#cells + 1] = "F" .. i end
  for i = 0, microbatches - 1 do cells[#cells + 1] = "B" .. i end
  return cells
end"""

# (stack in Lua, ranks, models)
ROWS = [
    ("{ strategy.data{} }", (2, 3, 4), MODELS),
    ("{ own{} }", (2, 3), MODELS),
    ("{ strategy.accumulate{} }", (1,), MODELS),
    ("{ strategy.data{}, strategy.accumulate{} }", (2, 3), MODELS),
    ("{ strategy.recompute{} }", (1,), ("gpt",)),
    ("{ strategy.data{}, strategy.recompute{} }", (2,), ("gpt",)),
    ("{ strategy.data{}, strategy.recompute{}, strategy.accumulate{} }", (3,), ("gpt",)),
    (f"{{ strategy.pipeline{{ {GPT_STAGES} }} }}", (2,), ("gpt",)),
    (f"{{ strategy.pipeline{{ {ORDER} }} }}", (2, 3), ("gpt",)),
    (f"{{ strategy.place{{ {GPT_STAGES.replace('stages', 'modules')} }} }}", (2,), ("gpt",)),
    ('{ strategy.place{ modules = { "a", "b", "c", "d" }, ranks = "0,1,0,2" } }', (3,), ("mlp",)),
    ('{ strategy.place{ modules = "a,b;c,d" }, strategy.data{} }', (2, 4), ("mlp",)),
]
for zero in ("stage = 1", "stage = 2", "stage = 3", "stage = 3, reshard = false", "stage = 1, cut = \"tensor\""):
    ROWS += [(f"{{ strategy.data{{}}, strategy.zero{{ {zero} }} }}", (2, 3, 4), MODELS)]
for zero in ("stage = 1, bucket = 5000", "stage = 2, bucket = 5000", "stage = 2, bucket = 1, cut = \"tensor\"",
             "stage = 3, bucket = 5000, cut = \"tensor\""):
    ROWS += [(f"{{ strategy.data{{}}, strategy.zero{{ {zero} }} }}", (3,), ("gpt",))]
ZERO3 = "strategy.zero{ stage = 3 }"
EACH = "strategy.zero{ stage = 3, each = true }"
WHOLE = ('strategy.zero{ cut = "tensor" }', 'strategy.zero{ stage = 3, cut = "tensor" }')
ROWS += [
    ("{ strategy.data{}, strategy.fsdp{ units = \"blocks.*,head\" } }", (3,), ("gpt",)),
    ("{ strategy.data{}, strategy.fsdp{ group = 3, reshard = false } }", (6,), ("gpt",)),
    ("{ strategy.data{}, strategy.zero{ stage = 2, group = 2, cut = \"tensor\" } }", (4,), ("gpt",)),
    ("{ strategy.data{}, strategy.zero{ stage = 2 }, strategy.accumulate{} }", (3,), ("gpt",)),
    ("{ strategy.server{} }", (2, 3), MODELS),
    ("{ strategy.server{ servers = 2, bucket = 5000 } }", (3, 4), ("gpt",)),
    ("{ strategy.pipeline{ size = 2 }, strategy.server{ servers = 2 } }", (4,), ("gpt",)),
    ("{ strategy.pipeline{ size = 2 }, strategy.data{}, strategy.fsdp{ group = 2 } }", (8,), ("gpt",)),
]
ROWS += [
    ("{ strategy.data{}, strategy.zero{ stage = 3, group = 2 } }", (4, 6), MODELS),
    (f"{{ strategy.data{{}}, {ZERO3}, strategy.accumulate{{}} }}", (2, 3), MODELS),
    (f"{{ strategy.data{{}}, {EACH}, strategy.accumulate{{}} }}", (2, 4), MODELS),
    ("{ strategy.data{ shares = { 2, 1 } } }", (2,), MODELS),
    ("{ strategy.data{ shares = { 1, 3, 2 } }, strategy.zero{ stage = 2 }, strategy.accumulate{} }", (3,), ("gpt",)),
    (f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{ shares = {{ 1, 3 }} }}, {ZERO3} }}", (4,), ("gpt",)),
    (f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{}}, {EACH} }}", (4,), ("gpt",)),
    (f"{{ strategy.data{{}}, {ZERO3}, strategy.recompute{{}} }}", (2,), ("gpt",)),
    (f"{{ strategy.pipeline{{ size = 2 }}, own{{}}, {ZERO3} }}", (4,), ("gpt",)),
    (f"{{ strategy.data{{}}, {ZERO3}, strategy.accumulate{{}}, strategy.recompute{{}} }}", (3,), ("gpt",)),
    (f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{}}, {ZERO3} }}", (4, 6), ("gpt",)),
    ("{ strategy.pipeline{ size = 2, schedule = \"zb1\" }, strategy.data{}, strategy.zero{} }", (4,), ("gpt",)),
    (f"{{ strategy.pipeline{{ size = 2, schedule = \"zbv\" }}, strategy.data{{}}, {ZERO3}, strategy.recompute{{}} }}", (4,), ("gpt",)),
]
# State, parameters and activations that wait in another tier.
for zero, worlds in (('offload = "disk"', (2, 1, 4)), ('stage = 2, offload = "host"', (3,)),
                     ('stage = 3, offload = "disk"', (2, 3)), ('stage = 3, offload = "host"', (4,)),
                     ('cut = "tensor", offload = "disk"', (3,))):
    ROWS += [(f"{{ strategy.data{{}}, strategy.zero{{ {zero} }} }}", worlds, MODELS)]
ROWS += [
    ('{ strategy.data{}, strategy.zero{ stage = 3, offload = "disk" }, strategy.accumulate{} }', (2,), ("gpt",)),
    ('{ strategy.pipeline{ size = 2 }, strategy.data{}, strategy.zero{ stage = 2, offload = "disk" } }', (4,), ("gpt",)),
    ('{ strategy.recompute{ offload = "host" } }', (1,), ("gpt",)),
    ('{ strategy.recompute{ offload = "disk", path = "a,b,c" } }', (1,), ("mlp",)),
    ('{ strategy.data{}, strategy.recompute{ offload = "disk" }, strategy.accumulate{} }', (2,), ("gpt",)),
    ('{ strategy.pipeline{ size = 2 }, strategy.data{}, strategy.zero{ stage = 3, offload = "host" }, '
     'strategy.recompute{ offload = "disk" } }', (4,), ("gpt",)),
    ('{ strategy.pipeline{ size = 2, schedule = "zbv" }, strategy.recompute{ offload = "host" } }', (2,), ("gpt",)),
]
for server in ("", "servers = 2"):
    ROWS += [(f"{{ strategy.server{{ {server} }} }}", (2, 3, 4), MODELS)]
for server, worlds in (("dedicated = 1", (2, 3)), ("servers = 2, dedicated = 1", (3, 4))):
    ROWS += [(f"{{ strategy.server{{ {server} }} }}", worlds, MODELS)]
ROWS += [
    ("{ strategy.pipeline{ size = 2 }, strategy.server{} }", (4,), ("gpt",)),
    ("{ strategy.server{}, strategy.recompute{}, strategy.accumulate{} }", (3,), ("gpt",)),
]
for schedule in SCHEDULES:
    pipeline = f'strategy.pipeline{{ schedule = "{schedule}" }}'
    two = f'strategy.pipeline{{ size = 2, schedule = "{schedule}" }}'
    chunks = 1 if schedule in ("gpipe", "1f1b", "zb1") else 2
    ROWS += [
        (f"{{ {pipeline} }}", (2, 3, 4) if chunks == 1 else (2,), MODELS),
        (f"{{ {pipeline} }}", (3, 4) if chunks == 2 else (), ("gpt",)),
        (f"{{ {two}, strategy.data{{}} }}", (4, 6), ("gpt",)),
        (f"{{ {two}, strategy.recompute{{}} }}", (2,), ("gpt",)),
        (f"{{ {two}, strategy.data{{}}, strategy.recompute{{}} }}", (4,), ("gpt",)),
    ]


# Started as a user starts them, one for each strategy: (stack, ranks, model).
STARTED = [
    ("nil", 1, "gpt"),
    ("{ strategy.data{} }", 3, "gpt"),
    ("{ own{} }", 2, "mlp"),
    ("{ strategy.accumulate{} }", 1, "gpt"),
    ("{ strategy.data{}, strategy.recompute{} }", 2, "gpt"),
    ("{ strategy.pipeline{} }", 2, "gpt"),
    (f"{{ strategy.place{{ {GPT_STAGES.replace('stages', 'modules')} }} }}", 2, "gpt"),
    ("{ strategy.data{}, strategy.zero{} }", 2, "gpt"),
    ("{ strategy.data{}, strategy.zero{ stage = 2 } }", 3, "mlp"),
    ("{ strategy.data{}, strategy.fsdp{} }", 3, "gpt"),
    ('{ strategy.data{}, strategy.zero{ stage = 3, offload = "disk" } }', 2, "mlp"),
    ("{ strategy.server{ dedicated = 1 } }", 3, "gpt"),
    ("{ strategy.pipeline{ size = 2 }, strategy.data{}, strategy.fsdp{ group = 2 } }", 8, "gpt"),
]


# Digests that stay what they are, whatever is built anew: of one process, which every EXACT stack gives, and of
# stacks with an arithmetic of their own. Written by --write-digests.
DIGESTS = HERE / "digests.json"
KEPT = [("nil", 1, (f"model={model}", f"optimizer={optimizer}")) for model in MODELS for optimizer in OPTIMIZERS]
KEPT += [(stack, ranks, ("model=gpt",)) for stack, ranks in (
    ("{ strategy.tensor{} }", 2), ("{ strategy.tensor{ sequence = true } }", 2), ("{ strategy.tensor{ chunks = 4 } }", 2),
    ("{ strategy.tensor{ size = 2 }, strategy.data{} }", 4), ("{ strategy.pipeline{ size = 2 }, strategy.tensor{} }", 4),
    ("{ strategy.precision{} }", 1), ("{ strategy.data{}, strategy.precision{ compute = 'f16', loss_scale = 1024 } }", 2),
    ("{ strategy.data{}, strategy.zero{ stage = 3 }, strategy.precision{} }", 2))]


class Equality(Sweeping):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.template = (HERE / "strategies.lua").read_text()

    def orrery(self, command, stack, ranks, *words):
        script = pathlib.Path(self.folder.name) / "strategies.lua"
        script.write_text(self.template.replace("strategy = STACK", f"strategy = {stack}"))
        return orrery(command, *["--details"] * (command == "plan"), "-n", ranks, script, *words)

    def plan(self, stack, ranks, *words):
        done = self.orrery("plan", stack, ranks, *words)
        self.assertEqual(done.code, 0, done.err)
        return done.out

    def costs(self):
        return costs.page(ROWS, lambda stack, ranks, model: self.plan(stack, ranks, f"model={model}"))

    def test_a_rank_with_one_row_of_a_table(self):
        alone = orrery("run", HERE / "one_row.lua")
        self.assertEqual(len(alone.out.splitlines()), 4)
        for ranks in (2, 3, 4):
            shared = orrery("run", "-n", ranks, HERE / "one_row.lua")
            self.assertEqual((shared.code, shared.out), (0, alone.out), shared.err)

    def test_page_of_costs(self):
        page = self.costs()
        print(page[page.index("| Stack"):])
        self.assertEqual(page, costs.PAGE.read_text(), "run this test with --write-costs")

    def one_process(self, *words):
        return self.sweep.lines(Training("nil", 1, words))

    def assert_as_one_process(self, trainings):
        self.sweep.run([*(Training("nil", 1, t.words) for t in trainings), *trainings])
        for training in trainings:
            with self.subTest(training=training):
                expected = self.one_process(*training.words)
                self.assertEqual(len(expected), 13)
                self.assertEqual(self.sweep.lines(training), expected)

    def kept_digests(self):
        trainings = {f"{ranks} {stack} {' '.join(words)}": Training(stack, ranks, words) for stack, ranks, words in KEPT}
        self.sweep.run(trainings.values())
        return {name: self.sweep.lines(training)[-1] for name, training in trainings.items()}

    def test_digests_that_stay(self):
        self.assertEqual(self.kept_digests(), json.loads(DIGESTS.read_text()))

    def test_every_row(self):
        def optimizers(row, model):
            return OPTIMIZERS if model == "mlp" else ("adamw",) if "mlp" in ROWS[row][2] else (OPTIMIZERS[row % 2 * 2], "adamw")
        self.assert_as_one_process(sampled(
            Training(stack, ranks, (f"model={model}", f"optimizer={optimizer}"))
            for row, (stack, worlds, models) in enumerate(ROWS) for ranks in worlds for model in models
            for optimizer in (optimizers(row, model) if ranks == worlds[0] else ("adamw",))))

    def test_as_a_user_starts_them(self):
        for stack, ranks, model in sampled(STARTED):
            with self.subTest(stack=stack, ranks=ranks):
                done = self.orrery("run", stack, ranks, f"model={model}")
                self.assertEqual(done.code, 0, done.err)
                self.assertEqual(done.out.splitlines(), self.one_process(f"model={model}", "optimizer=adamw"))

    def test_weights_that_are_gathered(self):
        self.assert_as_one_process([
            Training(f"{{ strategy.data{{}}, strategy.zero{{ stage = 3{zero} }} }}", ranks,
                     ("model=gpt", "optimizer=adamw"))
            for ranks, zero in ((2, ""), (3, ", reshard = false"), (3, ", prefetch = 0"), (2, ", prefetch = 2"),
                                (4, ", group = 2, prefetch = 9"), (3, ', cut = "tensor"'))])

    def test_prefetch_holds_as_many_units(self):
        def peak(prefetch):
            stack = f"{{ strategy.data{{}}, strategy.zero{{ stage = 3, prefetch = {prefetch} }} }}"
            return int(re.search(r"arena peak +(\d+)", self.plan(stack, 4, "model=gpt"))[1])
        self.assertLess(peak(0), peak(1))
        self.assertLess(peak(1), peak(2))

    def test_shares_are_what_ranks_get(self):
        plan = self.plan("{ strategy.data{ shares = { 3, 1 } } }", 2, "model=mlp")
        inputs = {rank: int(n) for rank, n in re.findall(r"^rank (\d).*?\n      input +(\d+)", plan, re.DOTALL | re.MULTILINE)}
        self.assertGreater(inputs["0"], 2 * inputs["1"])
        for shares, why in (("{ 2 }", "1 shares for the 2 ranks of axis 'data': give one for each"),
                            ("{ 2, 0 }", "'0' is no share"),
                            ("{ 7, 2 }", "too few to deal to 2 ranks in these shares: give at least 9")):
            done = self.orrery("run", f"{{ strategy.data{{ shares = {shares} }} }}", 2, "model=mlp")
            self.assertNotEqual(done.code, 0)
            self.assertIn(why, done.err)

    def test_rows_of_large_embeddings(self):
        """Few tokens beside the table: rows are gathered, or added onto the other gradient; not in slices."""
        stacks = (("{ strategy.data{} }", 2), ("{ strategy.data{} }", 3), ("{ strategy.accumulate{} }", 1),
                  ("{ strategy.data{}, strategy.accumulate{} }", 2), ("{ strategy.data{}, strategy.zero{} }", 2),
                  ("{ strategy.server{ dedicated = 1 } }", 3),
                  (f"{{ strategy.data{{}}, {ZERO3} }}", 3), ("{ strategy.pipeline{ size = 2 }, strategy.data{} }", 4))
        self.assert_as_one_process([
            Training(stack, ranks, ("model=gpt", "optimizer=adamw", "vocab=1000", f"tie={tie}"))
            for tie in ("true", "false") for stack, ranks in sampled(stacks)])

    def test_optimizers_that_are_not_elementwise(self):
        self.assert_as_one_process([
            Training(f"{{ strategy.data{{}}, {stack} }}", 3, ("model=mlp", f"optimizer={optimizer}"))
            for optimizer in ("rows", "lars") for stack in (*WHOLE, "strategy.zero{}", ZERO3)])

    def test_penalties_on_what_is_made_of_several_parameters(self):
        self.assert_as_one_process([
            Training(f"{{ strategy.data{{}}, {stack} }}", ranks, ("model=mlp", "optimizer=adamw", "penalty=true"))
            for stack, ranks in ((WHOLE[0], 3), (WHOLE[1], 2), ("strategy.zero{}", 3), (ZERO3, 2), (ZERO3, 4),
                                 ("strategy.zero{ stage = 2, group = 2 }", 4), (f"{EACH}, strategy.accumulate{{}}", 2))])
        self.assert_as_one_process([
            Training(f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{}}, {stack} }}", 4,
                     ("model=mlp", "optimizer=adamw", "penalty=true"))
            for stack in ("strategy.zero{}", ZERO3)])

    def test_whole_tensors_at_one_owner_stay_there(self):
        """What cannot work on pieces gathers nothing where one rank has all."""
        def gathers(zero, *words):
            return self.plan(f"{{ strategy.data{{}}, {zero} }}", 2, "model=mlp", *words).count("all_gather")
        self.assertEqual(gathers(WHOLE[0], "optimizer=rows"), gathers(WHOLE[0], "optimizer=sgd"))
        self.assertGreater(gathers("strategy.zero{}", "optimizer=rows"), gathers("strategy.zero{}", "optimizer=sgd"))

    def test_saved_under_one_continued_under_another(self):
        stacks = [(2, "{ strategy.data{} }"), (3, "{ strategy.data{}, strategy.zero{} }"),
                  (2, "{ strategy.data{}, strategy.fsdp{} }"), (4, "{ strategy.server{ servers = 3 } }"),
                  (4, "{ strategy.pipeline{ size = 2 }, strategy.data{}, strategy.fsdp{} }"),
                  (3, '{ strategy.pipeline{ schedule = "zb1" } }'),
                  (2, '{ strategy.data{}, strategy.zero{ stage = 3, offload = "disk" } }'),
                  (1, "{ strategy.accumulate{} }"), (3, '{ strategy.data{}, strategy.zero{ offload = "disk" } }'), (4, "{ strategy.pipeline{ size = 2 }, strategy.data{} }")]
        saved = [f"{self.folder.name}/checkpoint-{i}" for i in range(len(stacks))]
        self.sweep.run(Training(stack, ranks, ("stop=4", f"save={path}"))
                       for path, (ranks, stack) in zip(saved, stacks))
        loads = [Training(stack, ranks, (f"load={path}",))
                 for path, (ranks, stack) in zip(saved, stacks[1:] + stacks[:1])]
        self.sweep.run(loads)
        whole = self.one_process("model=gpt", "optimizer=adamw")
        for before, load in zip(stacks, loads):
            with self.subTest(before=before, after=load):
                self.assertEqual(self.sweep.lines(load), whole[4:])


if __name__ == "__main__":
    if "--write-digests" in sys.argv:
        Equality.setUpClass()
        DIGESTS.write_text(json.dumps(Equality().kept_digests(), indent=1) + "\n")
        Equality.tearDownClass()
        sys.exit(0)
    if "--write-costs" in sys.argv:
        Equality.setUpClass()
        costs.PAGE.write_text(Equality().costs())
        Equality.tearDownClass()
        sys.exit(0)
    unittest.main(argv=sys.argv[:1])
