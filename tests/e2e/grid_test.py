# SPDX-License-Identifier: Apache-2.0
"""Parameters that lie in parts over two axes at once, rows over one and columns over the other, train as in one
process, to rounding; are saved and loaded on other numbers of ranks; the script fails on a rank that sends other
bytes than planned.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery
from sweep import Sweep, Training


def grid(rows, columns, of="weight", dims=(1, 2)):
    """Matrices whose names match, `rows` times `columns` parts."""
    return (f'strategy.define{{ name = "grid", class = "approx", transform = function(draft) '
            f'draft:axis("rows", {rows}) draft:axis("columns", {columns}) '
            f'for _, p in ipairs(draft:values "param") do if #p.dims == 2 and p.name:find "{of}" then '
            f'draft:place(p, "rows", {dims[0]}) draft:place(p, "columns", {dims[1]}) end end end }}{{}}')


def numbers(line):
    return [float(x) for x in re.findall(r"(?:loss|norm|eval) (\S+)", line)]


class Grid(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.sweep = Sweep(pathlib.Path(cls.folder.name))

    def lines(self, stack, ranks, *words):
        lines = self.sweep.lines(Training(stack, ranks, words))
        return [line for line in lines if not line.startswith("outside ")]

    def assert_close(self, lines, expected):
        self.assertEqual(len(lines), len(expected))
        for got, want in zip(lines[:-1], expected[:-1], strict=True):  # the digest is the last
            for x, y in zip(numbers(got), numbers(want), strict=True):
                self.assertLess(abs(x - y), 1e-5 * abs(y), f"{got}: one process has {want}")

    def test_trains_as_one_process(self):
        for words in (("model=mlp", "optimizer=adamw"), ("model=mlp", "optimizer=lars"), ("model=mlp", "optimizer=rows"),
                      ("model=gpt", "drop=0")):
            one = self.lines("nil", 1, *words)
            for rows, columns in ((2, 2), (4, 2), (2, 4)):
                for dims in ((1, 2), (2, 1)):
                    with self.subTest(words=words, rows=rows, columns=columns, dims=dims):
                        stack = grid(rows, columns, "mlp.*weight" if "model=gpt" in words else "weight", dims)
                        self.assert_close(self.lines(stack, rows * columns, *words), one)

    def test_beside_other_strategies(self):
        words = ("model=mlp",)
        one = self.lines("nil", 1, *words)
        for stack in (f"{{ strategy.data{{ size = 2 }}, {grid(2, 2)} }}",
                      f"{{ strategy.data{{ size = 2 }}, strategy.zero{{}}, {grid(2, 2)} }}",
                      f"{{ strategy.data{{ size = 2 }}, strategy.zero{{ stage = 3 }}, {grid(2, 2)}, strategy.accumulate{{}} }}",
                      f"{{ strategy.pipeline{{ size = 2 }}, {grid(2, 2)} }}"):
            with self.subTest(stack=stack):
                self.assert_close(self.lines(stack, 8, *words), one)

    def test_tensor_on_one_axis_and_rows_on_another(self):
        more = ('strategy.define{ name = "mine", class = "approx", transform = function(draft) draft:axis("line") '
                'for _, p in ipairs(draft:values "param") do if p.name:find "qkv.weight" then '
                'draft:place(p, "line", DIM) end end end }{}')
        for dim in (1, 2):
            with self.subTest(dim=dim):
                stack = f"{{ strategy.tensor{{ size = 2 }}, {more.replace('DIM', str(dim))} }}"
                self.assert_close(self.lines(stack, 4, "drop=0"), self.lines("nil", 1, "drop=0"))

    def test_saved_under_one_continued_under_another(self):
        saved = pathlib.Path(self.folder.name) / "checkpoint"
        words = ("model=mlp",)
        whole = self.lines(grid(2, 2), 4, *words)
        self.lines(grid(2, 2), 4, *words, "stop=4", f"save={saved}")
        self.assertEqual(self.lines(grid(2, 2), 4, *words, f"load={saved}"), whole[4:])
        for stack, ranks in (("nil", 1), (grid(4, 2), 8), ("{ strategy.data{}, strategy.zero{} }", 3)):
            with self.subTest(stack=stack):
                self.assert_close(self.lines(stack, ranks, *words, f"load={saved}"), whole[4:])

    def test_a_rank_holds_a_quarter(self):
        script = pathlib.Path(self.folder.name) / "strategies.lua"
        held = []
        for stack, ranks in (("nil", 1), (grid(2, 2), 4)):
            script.write_text((HERE / "strategies.lua").read_text().replace("strategy = STACK", f"strategy = {stack}"))
            done = orrery("plan", "-n", ranks, script, "model=mlp")
            self.assertEqual((done.code, done.err), (0, ""))
            held.append(int(re.search(r"param +(\d+)", done.out)[1]))
        biases = 48 + 40 + 32 + 96
        self.assertEqual(held[1] - 4 * biases, (held[0] - 4 * biases) // 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
