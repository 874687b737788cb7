# SPDX-License-Identifier: Apache-2.0
"""Parameters that lie in parts over two axes at once, rows over one and columns over the other, train as in one
process, to rounding; those that lie in parts over an axis that deals the batch have its bits. Both are saved and
loaded on other numbers of ranks. The script fails on a rank that sends other bytes than planned.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import unittest

from close import assert_close
from program import HERE, orrery
from sweep import Sweeping, Training


def grid(rows, columns, of="weight", dims=(1, 2)):
    """Matrices whose names match, `rows` times `columns` parts."""
    return (f'strategy.define{{ name = "grid", class = "approx", transform = function(draft) '
            f'draft:axis("rows", {rows}) draft:axis("columns", {columns}) '
            f'for _, p in ipairs(draft:values "param") do if #p.dims == 2 and p.name:find "{of}" then '
            f'draft:place(p, "rows", {dims[0]}) draft:place(p, "columns", {dims[1]}) end end end }}{{}}')


def shares(dim, before=""):
    """Ranks that share the batch, matrices in parts of `dim` over them; 0: all parameters, of other dims each."""
    which = "#p.dims == 2" if dim else "p.dims[i % #p.dims + 1] % draft:axis_size 'line' == 0"
    return (f'strategy.define{{ name = "shares", class = "exact", provides = "shares of the batch", transform = function(draft) '
            f'draft:axis "line" {before} '
            f'for _, field in ipairs(draft:values "batch") do draft:place(field, "line", 1) end '
            f'for _, gradient in ipairs(draft:values "grad") do draft:reduce(gradient, "line") end '
            f'for i, p in ipairs(draft:values "param") do if {which} then '
            f'draft:place(p, "line", {dim or "i % #p.dims + 1"}) end end end }}{{}}')


# A parameter whose indices are read one by one.
INDICES = """local orrery = require "orrery"
local nn, strategy = orrery.nn, orrery.strategy
local M = nn.module("M", function(m)
  m.w = orrery.parameter({ 2, 16, 8 }, { init = nn.init.normal(0.1) })
  return function(x)
    local a, b = m.w:split(1, { 1, 1 })
    return x:matmul(a:reshape(16, 8)) + x:matmul(b:reshape(16, 8)):tanh()
  end
end)
local model = M()
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end,
  { params = model, optimizer = orrery.optim.adamw {}, microbatches = 4, strategy = STACK })
local x, y = {}, {}
for i = 1, 8 do
  x[i], y[i] = {}, i % 8
  for j = 1, 16 do x[i][j] = (i * j) % 7 / 7 end
end
for s = 1, 3 do
  local loss = run:step { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "i32") }:mean()
  orrery.log("step %d loss %.17g", s, loss)
end
orrery.log("digest %s", orrery.digest(model))
"""


class Axes(Sweeping):
    def lines(self, stack, ranks, *words):
        lines = self.sweep.lines(Training(stack, ranks, words))
        return [line for line in lines if not line.startswith("outside ")]

    def test_trains_as_one_process(self):
        for words in (("model=mlp", "optimizer=adamw"), ("model=mlp", "optimizer=lars"), ("model=mlp", "optimizer=rows"),
                      ("model=gpt", "drop=0")):
            one = self.lines("nil", 1, *words)
            for rows, columns, dims in ((2, 2, (1, 2)), (2, 2, (2, 1)), (4, 2, (1, 2))):
                with self.subTest(words=words, rows=rows, columns=columns, dims=dims):
                    stack = grid(rows, columns, "mlp.*weight" if "model=gpt" in words else "weight", dims)
                    assert_close(self, self.lines(stack, rows * columns, *words), one)

    def test_beside_other_strategies(self):
        words = ("model=mlp",)
        one = self.lines("nil", 1, *words)
        for stack in (f"{{ strategy.data{{ size = 2 }}, {grid(2, 2)} }}",
                      f"{{ strategy.data{{ size = 2 }}, strategy.zero{{}}, {grid(2, 2)} }}",
                      f"{{ strategy.data{{ size = 2 }}, strategy.zero{{ stage = 3 }}, {grid(2, 2)}, strategy.accumulate{{}} }}",
                      f"{{ strategy.pipeline{{ size = 2 }}, {grid(2, 2)} }}"):
            with self.subTest(stack=stack):
                assert_close(self, self.lines(stack, 8, *words), one)

    def test_tensor_on_one_axis_and_rows_on_another(self):
        more = ('strategy.define{ name = "mine", class = "approx", transform = function(draft) draft:axis("line") '
                'for _, p in ipairs(draft:values "param") do if p.name:find "qkv.weight" then '
                'draft:place(p, "line", DIM) end end end }{}')
        for dim in (1, 2):
            with self.subTest(dim=dim):
                stack = f"{{ strategy.tensor{{ size = 2 }}, {more.replace('DIM', str(dim))} }}"
                assert_close(self, self.lines(stack, 4, "drop=0"), self.lines("nil", 1, "drop=0"))

    def test_saved_under_one_continued_under_another(self):
        saved = pathlib.Path(self.folder.name) / "checkpoint"
        words = ("model=mlp",)
        whole = self.lines(grid(2, 2), 4, *words)
        self.lines(grid(2, 2), 4, *words, "stop=4", f"save={saved}")
        self.assertEqual(self.lines(grid(2, 2), 4, *words, f"load={saved}"), whole[4:])
        for stack, ranks in (("nil", 1), (grid(4, 2), 8), ("{ strategy.data{}, strategy.zero{} }", 3)):
            with self.subTest(stack=stack):
                assert_close(self, self.lines(stack, ranks, *words, f"load={saved}"), whole[4:])

    def plan(self, stack, ranks, *words):
        script = pathlib.Path(self.folder.name) / "strategies.lua"
        script.write_text((HERE / "strategies.lua").read_text().replace("strategy = STACK", f"strategy = {stack}"))
        done = orrery("plan", "--details", "-n", ranks, script, *words)
        self.assertEqual((done.code, done.err), (0, ""))
        return done.out

    def parameters(self, stack, ranks):
        return int(re.search(r"\n    parameter +(\d+)", self.plan(stack, ranks, "model=mlp"))[1])

    def test_a_rank_holds_its_part(self):
        biases = 4 * (48 + 40 + 32 + 96)
        whole = self.parameters("nil", 1) - biases
        self.assertEqual(self.parameters(grid(2, 2), 4) - biases, whole // 4)
        self.assertEqual(self.parameters(shares(1), 4) - biases, whole // 4)

    def test_shares_of_the_batch_have_the_bits_of_one_process(self):
        for words in (("model=mlp", "optimizer=lars"), ("model=gpt", "optimizer=adamw")):
            one = self.lines("nil", 1, *words)
            for dim, ranks in ((0, 2), (1, 2), (2, 2), (0, 4)):
                for stack in (shares(dim), f"{{ {shares(dim)}, strategy.accumulate{{}} }}"):
                    with self.subTest(words=words, stack=stack, ranks=ranks):
                        self.assertEqual(self.lines(stack, ranks, *words), one)

    def test_shares_on_stages(self):
        """Samples of all ranks go from stage to stage, and scalars of what is cut."""
        for words in (("model=mlp",), ("model=mlp", "optimizer=lars"), ("optimizer=rows",)):
            one = self.lines("nil", 1, *words)
            for dim in (0, 1):
                for more in ("", ", strategy.zero{ cut = 'tensor' }"):
                    with self.subTest(words=words, dim=dim, more=more):
                        self.assertEqual(self.lines(f"{{ strategy.pipeline{{ size = 2 }}, {shares(dim)}{more} }}", 4, *words), one)

    def test_shares_of_indices_that_are_read_one_by_one(self):
        script = pathlib.Path(self.folder.name) / "indices.lua"
        found = []
        for stack, ranks in (("nil", 1), (shares(0), 2), (f"{{ {shares(0)}, strategy.accumulate{{}} }}", 2)):
            script.write_text(INDICES.replace("STACK", stack))
            done = orrery("run", "-n", ranks, script)
            self.assertEqual(done.code, 0, done.err)
            found.append([line for line in done.out.splitlines() if line.startswith(("step", "digest"))])
        self.assertEqual(len(found[0]), 4)
        self.assertEqual(found[1:], found[:1] * 2)

    def test_shares_are_loaded_elsewhere(self):
        saved = pathlib.Path(self.folder.name) / "shares"
        words = ("model=mlp",)
        whole = self.lines("nil", 1, *words)
        self.lines(shares(1), 4, *words, "stop=4", f"save={saved}")
        for stack, ranks in (("nil", 1), (shares(2), 2), (shares(1), 4), ("{ strategy.data{}, strategy.zero{} }", 3)):
            with self.subTest(stack=stack, ranks=ranks):
                self.assertEqual(self.lines(stack, ranks, *words, f"load={saved}"), whole[4:])

    def test_refuses_what_cannot_be(self):
        two = shares(1).replace('axis "line"', 'axis("line", 2)')
        also = shares(1).replace("shares", "also").replace("line", "other")
        over = ('strategy.define{ name = "mine", class = "approx", transform = function(draft) for _, p in '
                'ipairs(draft:values "param") do if #p.dims == 2 then draft:place(p, "AXIS", 1) end end end }{}')
        for stack, ranks, words, text in [
            *((f"{{ strategy.{axis}{{}}, {over.replace('AXIS', axis)} }}", 2, ("model=mlp",),
               f"the ranks of axis '{axis}' train apart or exchange gradients of their own, and values are cut over it")
              for axis in ("average", "topk")),
            (shares(1, 'draft:chunk("line", 2)'), 2, (), "the ranks of axis 'line' share the work on every sample"),
            (f"{{ {two}, {also} }}", 4, (),
             "values are cut over the axes 'other*line', which both deal the batch: cut them over one of them"),
            (f"{{ {shares(1)}, strategy.accumulate{{}} }}", 2, ("microbatches=6",), "each rank needs the "
             "same number, as strategy.accumulate runs them one after another a power of two"),
        ]:
            with self.subTest(stack=stack, ranks=ranks):
                script = pathlib.Path(self.folder.name) / "strategies.lua"
                script.write_text((HERE / "strategies.lua").read_text().replace("strategy = STACK", f"strategy = {stack}"))
                done = orrery("run", "-n", ranks, script, *words)
                self.assertEqual(done.code, 1, done.out)
                self.assertIn(text, done.err)
                self.assertRegex(done.err, r"strategies\.lua:\d+:")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
