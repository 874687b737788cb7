# SPDX-License-Identifier: Apache-2.0
"""Strategies that are tensor code: each against the recursion of its paper, written again here in plain loops;
what they send is what their plans say; they are saved and continued, and join other strategies.

Arguments: the build tree.
"""
import re
import sys
import unittest

from linear import INPUTS, LIBRARY, LR, OUTPUTS, ROWS, LinearCase, gradient, mean, plus
from program import orrery

OPEN = {"average": "every = 2", "diloco": "every = 2", "easgd": "every = 2", "gossip": "every = 2",
        "topk": "fraction = 4", "powersgd": "rank = 2", "quantized": "bits = 8", "adasum": ""}

# A table and logits of eleven classes, which two ranks hold in shares of six and five.
ELEVEN = """local orrery = require "orrery"
local nn, strategy = orrery.nn, orrery.strategy
local Net = nn.module("net", function(m)
  m.table, m.head = nn.embedding(11, 4), nn.linear(4, 11)
  return function(batch) return nn.cross_entropy(m.head(m.table(batch.x)), batch.x) end
end)
local net = Net()
local run = orrery.compile(net, { params = net, microbatches = 2, optimizer = orrery.optim.sgd { lr = 1 }, strategy = STACK })
for _ = 1, 3 do orrery.log("loss %.9g", run:step({ x = orrery.tensor({ { 1, 2 }, { 3, 10 } }, "i32") }):mean()) end
"""

# Copies that meet every third step; `between`: what a script does around the load.
APART = """local orrery = require "orrery"
local nn, strategy = orrery.nn, orrery.strategy
local args = orrery.args { folder = "", from = 1, to = 5, between = "nothing" }
local layer = nn.linear(1, 1, { bias = false, init = nn.init.constant(1) })
local function rows(i) return orrery.tensor({ { i }, { 2 * i } }, "f32") end
local run = orrery.compile(function(batch) return layer(batch.x):mean() end,
  { params = layer, microbatches = 2, optimizer = orrery.optim.sgd { lr = 0.1 }, strategy = { strategy.average { every = 3 } } })
if args.between == "write" then layer.weight:write(orrery.tensor({ { 3 } }, "f32")) end
if args.from > 1 then run:load(args.folder) end
local between = {
  read = function() layer.weight:read() end,
  eval = function() run:eval { x = rows(1) } end,
  func = function() orrery.func(function(x) return layer(x) end)(rows(1)) end,
  save = function() run:save(args.folder .. "-again") run:load(args.folder .. "-again") end,
}
if between[args.between] then between[args.between]() end
for i = args.from, args.to do orrery.log("loss %.9g", run:step({ x = rows(i) }):mean()) end
if args.to < 5 then run:save(args.folder) end
"""


class Open(LinearCase):
    # Replicas that are alone for H steps, then an outer Nesterov step on the mean of what they changed.
    def test_diloco_is_its_recursion(self):
        for ranks, every in ((2, 2), (4, 3)):
            anchor = self.begin()
            velocity, replicas = [0.0] * len(anchor), [anchor] * ranks
            for step in range(1, 8):
                replicas = [plus(w, self.of_rank(step, r, ranks, rows=ROWS // ranks), -LR) for r, w in enumerate(replicas)]
                if step % every == 0:
                    change = mean([plus(anchor, w, -1) for w in replicas])
                    velocity = plus([v * 0.9 for v in velocity], change)
                    anchor = plus(anchor, plus(change, velocity, 0.9), -0.7)
                    replicas = [anchor] * ranks
            got = self.trained(f"{{ strategy.diloco{{ every = {every} }} }}", ranks, "steps=7")
            self.assert_near(got["diloco.fc.weight.anchor"], anchor)
            self.assert_near(got["diloco.fc.weight.velocity"], velocity)
            for r in range(ranks):
                self.assert_near(got[f"fc.weight@{r}"], replicas[r])

    # The sign oracle: one inner step of SGD and an outer one of rate 1 are data parallelism.
    def test_diloco_of_one_step_is_data_parallelism(self):
        data = self.trained("{ strategy.data{} }", 4)["fc.weight"]
        outer = self.trained("{ strategy.diloco{ every = 1, lr = 1, momentum = 0 } }", 4)["fc.weight"]
        self.assert_near(outer, data, 6)

    def test_easgd_is_its_recursion(self):
        ranks, alpha, every = 4, 0.125, 2
        centre = self.begin()
        replicas = [centre] * ranks
        for step in range(1, 8):
            replicas = [plus(w, self.of_rank(step, r, ranks, rows=ROWS // ranks), -LR) for r, w in enumerate(replicas)]
            if step % every == 0:
                pulls = [[alpha * x for x in plus(w, centre, -1)] for w in replicas]
                replicas = [plus(w, d, -1) for w, d in zip(replicas, pulls)]
                for d in pulls:
                    centre = plus(centre, d)
        got = self.trained(f"{{ strategy.easgd{{ every = {every}, alpha = {alpha} }} }}", ranks, "steps=7")
        # One tensor: saving compares what the ranks hold, bit for bit.
        self.assert_near(got["easgd.fc.weight.center"], centre)
        for r in range(ranks):
            self.assert_near(got[f"fc.weight@{r}"], replicas[r])

    def test_gossip_keeps_the_mean(self):
        ranks = 4
        whole = self.trained("{ strategy.data{} }", ranks, "steps=6")["fc.weight"]
        got = self.trained("{ strategy.gossip{} }", ranks, "steps=6")
        self.assert_near(mean([got[f"fc.weight@{r}"] for r in range(ranks)]), whole)
        self.assertNotEqual(got["fc.weight@0"], got["fc.weight@1"])
        begin, replicas = self.begin(), None
        replicas = [begin] * ranks
        for step in range(1, 7):
            replicas = [plus(w, self.of_rank(step, r, ranks, rows=ROWS // ranks), -LR) for r, w in enumerate(replicas)]
            hop = 1 + (step - 1) % (ranks - 1)
            replicas = [mean([replicas[r], replicas[(r - hop) % ranks]]) for r in range(ranks)]
        for r in range(ranks):
            self.assert_near(got[f"fc.weight@{r}"], replicas[r])

    # What is sent and what is kept are what there was, bit for bit: the numbers are exact.
    def test_topk_sends_the_largest_and_keeps_the_rest(self):
        ranks, k = 2, OUTPUTS * INPUTS // 4
        weight, residual = self.begin(), [[0.0] * (OUTPUTS * INPUTS) for _ in range(ranks)]
        for step in range(1, 5):
            for r in range(ranks):
                flat = plus(self.of_rank(step, r, ranks), residual[r])
                largest = sorted(range(len(flat)), key=lambda i: (-abs(flat[i]), i))[:k]
                residual[r] = [0.0 if i in largest else x for i, x in enumerate(flat)]
                for i in largest:
                    weight[i] -= LR * flat[i]
        got = self.trained("{ strategy.topk{ fraction = 4 } }", ranks)
        self.assert_near(got["fc.weight"], weight)
        for r in range(ranks):
            self.assertEqual(list(got[f"topk.fc.weight.residual@{r}"]), residual[r])

    # What stands for a gradient is summed over the batch in its place, whoever asks for the sum and when.
    def test_a_gradient_may_be_replaced(self):
        half = ('strategy.define{ name = "half", class = "approx", transform = function(draft) '
                'for _, g in ipairs(draft:values "grad") do draft:replace(g, draft:tensor(g) * 0.5) end end }{}')
        weight = self.begin()
        for step in range(1, 5):
            weight = plus(weight, gradient(step, 0, ROWS), -LR / 2)
        for ranks, stack in ((1, f"{{ {half} }}"), (2, f"{{ strategy.data{{}}, {half} }}"), (2, f"{{ {half}, strategy.data{{}} }}"),
                             (4, f"{{ strategy.data{{}}, strategy.zero{{ stage = 2 }}, {half} }}")):
            with self.subTest(ranks=ranks, stack=stack):
                self.assertEqual(list(self.trained(stack, ranks)["fc.weight"]), weight)

    def test_topk_of_everything_is_the_dense_sum(self):
        dense = self.trained("{ strategy.data{} }", 4)["fc.weight"]
        got = self.trained("{ strategy.topk{ fraction = 1 } }", 4)
        self.assert_near(got["fc.weight"], dense, 6)
        for r in range(4):
            self.assertEqual(set(got[f"topk.fc.weight.residual@{r}"]), {0.0})

    # Error feedback: weights lack just what the ranks still keep.
    def test_what_is_not_sent_waits(self):
        dense = self.trained("{ strategy.data{} }", 2, "steps=9", name="dense")["fc.weight"]
        for stack, kept in (("topk{ fraction = 6 }", ("residual",)), ("powersgd{ rank = 1 }", ("residual",)),
                            ("quantized{ bits = 8 }", ("residual", "owed")), ("quantized{ bits = 1 }", ("residual", "owed"))):
            with self.subTest(stack=stack):
                got = self.trained(f"{{ strategy.{stack} }}", 2, "steps=9")
                owed = [0.0] * len(dense)
                for name, values in got.items():
                    if "residual@" in name:
                        owed = plus(owed, values)
                    elif "owed@" in name:
                        share = [0.0] * 16 * 2
                        rank = int(name[-1])
                        share[rank * len(values):(rank + 1) * len(values)] = values
                        owed = plus(owed, share[:len(dense)])
                self.assertEqual(len([n for n in got if "@" in n]), 2 * len(kept))
                self.assertGreater(max(map(abs, owed)), 1e-4 if "8" in stack else 1e-2)
                self.assert_near(plus(got["fc.weight"], owed, -LR), dense)

    # Also gradients that are small or zero at first, and those of a lower rank: a column of the factors is left over.
    def test_powersgd_is_exact_for_gradients_of_its_rank(self):
        small = 2.0**-30
        for data, scale, steps in (("mixed", 1, 3), ("mixed", small, 3), ("parallel", 1, 3), ("parallel", small, 3), ("late", 1, 4)):
            with self.subTest(data=data, scale=scale):
                words = ("rows=2", "microbatches=2", f"steps={steps}", f"data={data}", f"scale={scale}", f"lr={LR / scale}")
                dense = self.trained("{ strategy.data{} }", 2, *words)["fc.weight"]
                got = self.trained("{ strategy.powersgd{ rank = 2 } }", 2, *words)
                self.assert_near(got["fc.weight"], dense)
                for r in range(2):
                    # Each rank's own gradient has rank 1, inside of what both span.
                    self.assertLess(max(map(abs, got[f"powersgd.fc.weight.residual@{r}"])), 1e-4 * scale)

    # The gradient's 30 elements fill no whole bytes: what pads the last share has no part in its scale.
    def test_one_bit_is_its_recursion(self):
        def rounded(x):
            scale = sum(map(abs, x)) / len(x)
            return [scale if v >= 0 else -scale for v in x]

        count = OUTPUTS * INPUTS
        for ranks, each in ((1, 32), (2, 16), (4, 8)):
            with self.subTest(ranks=ranks):
                shares = [slice(k * each, min((k + 1) * each, count)) for k in range(ranks)]
                weight, residual, owed = self.begin(), [[0.0] * count] * ranks, [0.0] * count
                for step in range(1, 6):
                    wanted = [plus(self.of_rank(step, r, ranks), residual[r]) for r in range(ranks)]
                    sent = [[v for share in shares for v in rounded(x[share])] for x in wanted]
                    residual = [plus(x, y, -1) for x, y in zip(wanted, sent)]
                    mine = plus([sum(v) for v in zip(*sent)], owed)
                    out = [v for share in shares for v in rounded(mine[share])]
                    owed, weight = plus(mine, out, -1), plus(weight, out, -LR)
                got = self.trained("{ strategy.quantized{ bits = 1 } }", ranks, "steps=5")
                self.assert_near(got["fc.weight"], weight)

    def test_quantized_is_near(self):
        dense = self.trained("{ strategy.data{} }", 4, "steps=20")["fc.weight"]
        got = self.trained("{ strategy.quantized{} }", 4, "steps=20")["fc.weight"]
        self.assertNotEqual(list(got), list(dense))
        for a, b in zip(got, dense):
            self.assertAlmostEqual(a, b, delta=2e-3)

    def test_adasum_adds_what_is_orthogonal_and_averages_what_is_parallel(self):
        begin = self.begin()
        for data, factor in (("orthogonal", 2), ("parallel", 1)):
            with self.subTest(data=data):
                got = self.trained("{ strategy.adasum{} }", 2, "steps=1", f"data={data}")["fc.weight"]
                self.assert_near(got, plus(begin, gradient(1, 0, ROWS, data=data), -LR * factor), 6)
        self.assert_near(self.trained("{ strategy.adasum{} }", 4, "steps=1", "data=parallel")["fc.weight"],
                         plus(begin, gradient(1, 0, ROWS, data="parallel"), -LR), 6)

    def test_adasum_is_its_tree(self):
        def pair(a, b):
            dot = sum(x * y for x, y in zip(a, b))
            aa, bb = sum(x * x for x in a), sum(x * x for x in b)
            return plus([x * (1 - dot / (2 * aa)) for x in a], [x * (1 - dot / (2 * bb)) for x in b])
        g = [self.of_rank(1, r, 4, rows=ROWS // 4) for r in range(4)]
        expected = plus(self.begin(), pair(pair(g[0], g[1]), pair(g[2], g[3])), -LR)
        self.assert_near(self.trained("{ strategy.adasum{} }", 4, "steps=1")["fc.weight"], expected)
        done = self.run_stack("{ strategy.adasum{} }", 3)
        self.assertEqual(done.code, 1)
        self.assertIn("3 ranks are no power of two", done.err)

    # The script itself fails if a rank has sent other bytes than its plan says.
    def test_bytes_are_as_planned(self):
        for name, options in OPEN.items():
            for ranks in (1, 2, 3, 4):
                if name == "adasum" and ranks == 3:
                    continue
                with self.subTest(name=name, ranks=ranks):
                    stack = f"{{ strategy.{name}{{ {options} }} }}"
                    self.trained(stack, ranks, "steps=5", "optimizer=adam", "clip=0.5")
                    plan = self.run_stack(stack, ranks, command="plan")
                    self.assertEqual(plan.code, 0, plan.err)
                    if ranks > 1:
                        self.assertIn(f"by {name} ", plan.out)

    def test_saved_and_continued(self):
        for name, options in OPEN.items():
            with self.subTest(name=name):
                stack = f"{{ strategy.{name}{{ {options} }} }}"
                whole = self.trained(stack, 2, "steps=7", "optimizer=adam", name="whole")
                self.trained(stack, 2, "steps=3", "optimizer=adam", name="half")
                rest = self.trained(stack, 2, "steps=7", "optimizer=adam", f"load={self.folder / 'half'}", name="rest")
                self.assertEqual(rest, whole)
                if name != "quantized":  # what an owner of a share owes belongs to as many shares
                    self.trained(stack, 4, "steps=7", "optimizer=adam", f"load={self.folder / 'half'}", name="more")

    # A value that is read before a program says which copy is whose is the mean of all; it must not become the copies'.
    def test_copies_stay_apart_whatever_comes_before_the_first_step(self):
        script = self.folder / "apart.lua"
        script.write_text(APART)

        def losses(*words):
            done = orrery("run", "-n", 2, script, f"folder={self.folder / 'apart'}", *words)
            self.assertEqual(done.code, 0, done.err)
            return re.findall(r"^loss (\S+)", done.out, re.MULTILINE)
        whole = losses()
        self.assertEqual(losses("to=2"), whole[:2])
        for between in ("nothing", "write", "read", "eval", "func", "save"):
            with self.subTest(between=between):
                self.assertEqual(losses("from=3", f"between={between}"), whole[2:])

    def test_rounding_of_shares_refuses_another_number_of_ranks(self):
        self.trained("{ strategy.quantized{} }", 2, name="two")
        done = self.run_stack("{ strategy.quantized{} }", 4, "steps=7", f"load={self.folder / 'two'}")
        self.assertEqual(done.code, 1)
        self.assertRegex(done.err, r"quantized\.fc\.weight\.owed")
        # One rank is as many as one.
        self.trained("{ strategy.quantized{} }", 1, name="one")
        self.trained("{ strategy.quantized{} }", 1, "steps=7", f"load={self.folder / 'one'}")

    # Weights lack just what the ranks keep, when others than those that kept it have gone on.
    def test_what_is_kept_back_is_kept_by_other_numbers_of_ranks(self):
        dense = self.trained("{ strategy.data{} }", 2, "steps=5", name="dense")["fc.weight"]
        stack = "{ strategy.topk{ fraction = 6 } }"
        self.trained(stack, 2, "steps=3", name="two")
        for ranks in (1, 3, 4):
            with self.subTest(ranks=ranks):
                got = self.trained(stack, ranks, "steps=5", f"load={self.folder / 'two'}", name="there")
                weight = got["fc.weight"]
                for name, values in got.items():
                    if "topk.fc.weight.residual" in name and ("@" in name or ranks == 1):
                        weight = plus(weight, values, -LR)
                self.assert_near(weight, dense)

    def test_they_send_rows_that_lie_in_uneven_shares(self):
        def losses(stack, ranks):
            script = self.folder / "eleven.lua"
            script.write_text(ELEVEN.replace("STACK", stack))
            done = orrery("run", "-n", ranks, script)
            self.assertEqual(done.code, 0, done.err)
            return [float(x) for x in re.findall(r"^loss (\S+)", done.out, re.MULTILINE)]
        for hook in ("topk { size = 2, fraction = 4 }", "adasum { size = 2 }"):
            got = losses(f"{{ strategy.tensor {{ size = 2 }}, strategy.{hook} }}", 4)
            self.assert_near(got, losses(f"strategy.{hook}", 2))

    # Inside of what they do to gradients and weights the other strategies keep their bits.
    def test_they_join_others(self):
        for stack, ranks, same, fewer in (
                ("{ strategy.pipeline{ size = 2 }, strategy.topk{} }", 4, "{ strategy.topk{} }", 2),
                ("{ strategy.topk{}, strategy.accumulate{} }", 2, "{ strategy.topk{} }", 2),
                ("{ strategy.pipeline{ size = 2 }, strategy.tensor{ size = 2, chunks = 4 }, strategy.topk{} }", 8,
                 "{ strategy.tensor{ size = 1, chunks = 4 }, strategy.topk{} }", 2),
                ("{ strategy.pipeline{ size = 2 }, strategy.powersgd{} }", 4, "{ strategy.powersgd{} }", 2),
                ("{ strategy.topk{ size = 2 }, strategy.data{}, strategy.zero{} }", 4, "{ strategy.topk{} }", 2),
                ("{ strategy.powersgd{ size = 2 }, strategy.data{}, strategy.zero{ stage = 3, group = 1 } }", 4,
                 "{ strategy.powersgd{} }", 2),
                ("{ strategy.quantized{ size = 2 }, strategy.data{}, strategy.zero{ stage = 2, cut = 'tensor' } }", 4,
                 "{ strategy.quantized{} }", 2),
                ("{ strategy.diloco{ size = 2, every = 3 }, strategy.data{} }", 4, "{ strategy.diloco{ every = 3 } }", 2),
                ("{ strategy.data{ size = 2 }, strategy.diloco{ every = 3 } }", 4, "{ strategy.diloco{ every = 3 } }", 2),
                ("{ strategy.diloco{ size = 2, every = 3 }, strategy.data{}, strategy.zero{} }", 4,
                 "{ strategy.diloco{ every = 3 } }", 2),
                ("{ strategy.diloco{ size = 2, every = 3 }, strategy.data{}, strategy.zero{ stage = 3 } }", 4,
                 "{ strategy.diloco{ every = 3 } }", 2),
                ("{ strategy.diloco{ size = 2, every = 3 }, strategy.pipeline{} }", 4, "{ strategy.diloco{ every = 3 } }", 2),
                # The last of four gets no sample of the last two batches.
                ("{ strategy.diloco{ size = 4, every = 3 }, strategy.data{}, strategy.zero{} }", 8,
                 "{ strategy.diloco{ every = 3 } }", 4),
                ("{ strategy.gossip{ size = 4 }, strategy.data{}, strategy.zero{ stage = 3 }, strategy.precision{} }", 8,
                 "{ strategy.gossip{}, strategy.precision{} }", 4),
                ("{ strategy.average{ size = 4, every = 3 }, strategy.pipeline{} }", 8, "{ strategy.average{ every = 3 } }", 4),
                ("{ strategy.gossip{ size = 2, every = 3 }, strategy.pipeline{ size = 2, schedule = 'zb1' } }", 4,
                 "{ strategy.gossip{ every = 3 } }", 2),
                ("{ strategy.easgd{ size = 2, every = 3 }, strategy.tensor{ chunks = 4 } }", 4,
                 "{ strategy.easgd{ size = 2, every = 3 }, strategy.tensor{ size = 1, chunks = 4 } }", 2)):
            with self.subTest(stack=stack):
                digests = []
                for each, n in ((stack, ranks), (same, fewer)):
                    done = self.run_stack(each, n, "eval=false", script="strategies.lua")
                    self.assertEqual(done.code, 0, done.err)
                    digests.append(re.search(r"^digest (\w+)$", done.out, re.MULTILINE)[1])
                self.assertEqual(digests[0], digests[1])

    # Of all parameters: one gather of places and one of elements; one sum of weights, one of losses.
    def test_small_exchanges_travel_together(self):
        for stack, kind, expected in (("topk{}", "all_gather", 2), ("average{}", "all_reduce", 2), ("gossip{}", "permute", 1)):
            with self.subTest(stack=stack):
                plan = self.run_stack(f"{{ strategy.{stack} }}", 2, command="plan", script="strategies.lua").out
                lines = re.findall(rf"^ +{kind} .* by {stack[:-2]} ", plan, re.MULTILINE)
                self.assertEqual(len(lines), expected, plan)

    # The mean of what all ranks have is what each has.
    def test_an_optimizer_may_exchange(self):
        before = """optim.mine = optim.define("mine", { options = { lr = 1.0 }, update = function(p, g, s, o)
          return p - (g * o.lr):vary("data"):all_reduce("data", "mean") end })"""
        words = ("{ strategy.data{} }", 2)
        self.assertEqual(self.trained(*words, "optimizer=mine", before=before)["fc.weight"],
                         self.trained(*words, "optimizer=sgd")["fc.weight"])
        for there, not_there, text in (('"data"', '"dta"', r"no axis 'dta' \(did you mean 'data'\?\); there are: data"),
                                       (':vary("data")', "", "this value is the same on all 2 ranks of axis 'data'")):
            done = self.run_stack(*words, "optimizer=mine", before=before.replace(there, not_there))
            self.assertRegex(done.err, r"open.lua:\d+: .*" + text)

    def test_bad_input(self):
        hook = 'local quux = strategy.define { name = "quux", class = "approx", options = { every = 1, size = 0 }, %s }'
        ends = "local big = orrery.tensor({ 1.0, 2.0, 3.0 }, 'f32')"
        for body, words in (
                ("exchange = function(g) return g end",
                 r"each rank of axis 'quux' has a value of its own here, and what exchange returns for 'fc.weight' is one for "
                 r"all of them; it begins to differ at .*: make one of them, such as with :all_reduce\(\"quux\", \"mean\"\)"),
                ("exchange = function(g, s, o, axis) return g:all_reduce(axis):reshape(-1) end",
                 r"exchange of strategy.quux was given the gradient of 'fc.weight' f32\[5,6\] and returned f32\[30\]"),
                ("exchange = function() end", "exchange returns nil, expected a tensor"),
                ("independent = true, synchronize = function() end", "synchronize returns nothing for 'fc.weight': return its new value"),
                ("independent = true, synchronize = function(p) return p:reshape(-1) end",
                 r"state 'fc.weight' is f32\[5,6\], its new value f32\[30\]"),
                ("synchronize = function(p, s, o, axis) return p:all_reduce(axis) end",
                 r"open.lua:\d+: all_reduce: this value is the same on all 2 ranks of axis 'quux': there is nothing to exchange"),
                ("synchronize = function(p, s, o, axis) return p:vary(axis) end",
                 r"each rank of axis 'quux' has a value of its own here, and 'fc.weight' is one .*; it begins to differ at .*open.lua:\d+"),
                ('exchange = function(g) return g:all_reduce("quuux") end',
                 r"open.lua:\d+: there is no axis 'quuux' \(did you mean 'quux'\?\); there are: quux"),
                ("exchange = function(g, s, o, axis) return g:all_to_all(axis, { split = 1, concat = 2 }) end",
                 r"open.lua:\d+: all_to_all: dim 1 of \[5,6\] does not divide over the 2 ranks of axis 'quux'"),
                ("exchange = function(g, s, o, axis) return g:ppermute(axis, { to = { 0, 0 } }) end",
                 r"permute: \[0,0\] is no permutation of the 2 ranks"),
                ("states = { r = 'zeros' }, exchange = function(g, s, o, axis) s.residue = g return g:all_reduce(axis) end",
                 "a hook assigns s.residue, which is not among its states"),
                ("states = { r = 'zeros' }, exchange = function(g, s, o, axis) s.r = g return g:all_reduce(axis) end",
                 r"each rank of axis 'quux' has a value of its own here, and 'quux.fc.weight.r' is one for all of them"),
                ("states = { r = 'ones' }, exchange = function(g, s, o, axis) return g:all_reduce(axis) end",
                 "there is no init 'ones'; there are: normal, parameter, zeros"),
                ("independent = true", "independent and states are for the hooks exchange and synchronize: give one"),
                ("sinchronize = function(p) return p end", r"unknown field 'sinchronize' \(did you mean 'synchronize'\?\)")):
            with self.subTest(body=body):
                done = self.run_stack("{ quux{} }", 2, before=f"{ends}\n{hook % body}")
                self.assertEqual((done.code, done.out), (1, ""))
                self.assertRegex(done.err, r"open\.lua:\d+: .*" + words)
        for stack, words in (("{ strategy.diloco{ every = 0 } }", "every = 0: give at least 1 step"),
                             ("{ strategy.quantized{ bits = 3 } }", "bits = 3: give 8 or 1"),
                             ("{ strategy.topk{}, strategy.topk{} }", "axis 'topk' exists already, made by topk")):
            done = self.run_stack(stack, 2)
            self.assertEqual((done.code, done.out), (1, ""))
            self.assertRegex(done.err, r"open\.lua:\d+: .*" + re.escape(words))

    # quux.fc.weight.r would be a parameter of the model and a state of the strategy.
    def test_a_state_has_a_name_of_its_own(self):
        before = """local quux = strategy.define { name = "quux", class = "approx", states = { r = "zeros" },
          exchange = function(g, s, o, axis) return g:all_reduce(axis) end }
        local nested = nn.module("Nested", function(m)
          m.quux = nn.module("Q", function(q)
            q.fc = nn.module("F", function(f)
              f.weight = nn.module("W", function(w)
                w.r = nn.parameter({ 1 }, { init = nn.init.zeros })
                return function() return w.r end
              end)()
              return function() return f.weight() end
            end)()
            return function() return q.fc() end
          end)()
          m.fc = model.fc
          return function(x) return m.fc(x) + m.quux() end
        end)()
        model = nested"""
        done = self.run_stack("{ quux{} }", 2, before=before)
        self.assertEqual((done.code, done.out), (1, ""))
        self.assertIn("there is a parameter or state 'quux.fc.weight.r' already: give the state another name", done.err)

    def test_how_long_they_are(self):
        for name, most in {"diloco": 40, "easgd": 25, "gossip": 25, "average": 25, "topk": 40, "powersgd": 70, "adasum": 60}.items():
            self.assertLessEqual(len((LIBRARY / f"{name}.lua").read_text().splitlines()), most, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
