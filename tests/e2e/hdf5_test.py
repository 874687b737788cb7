# SPDX-License-Identifier: Apache-2.0
"""Arrays of HDF5 as h5py writes them (tests/data/make_hdf5.py): every kind of numbers, on ranks and by several threads;
what is refused, and that files with some bytes changed are read or refused.

Arguments: the build tree.
"""
import pathlib
import random
import re
import shutil
import sys
import tempfile
import unittest

from program import BUILD, SOURCE, orrery

FILES = SOURCE / "tests/data/files/hdf5"
HEAD = """
local orrery = require "orrery"
local function dump(set)
  for i = 1, #set do
    local x = orrery.engine.sample(set, i).x
    print(x.dtype, table.concat(x:cast("f64"):view(-1):tolist(), " "))
  end
end
"""
KINDS = {"i1": "i8", "u1": "u8", "i2": "i16", "big_i2": "i16", "u2": "i32", "i4": "i32", "big_u4": "i64", "i8": "i64",
         "f2": "f16", "f4": "f32", "big_f4": "f32", "f8": "f64"}


class Hdf5(unittest.TestCase):
    def setUp(self):
        if not (BUILD / "plugins/orrery-data-hdf5.so").exists():
            self.skipTest("the plugin hdf5 is not built: there is no libhdf5-dev")
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        for file in FILES.iterdir():
            shutil.copy(file, self.folder)

    def run_script(self, text, ranks=1):
        script = self.folder / "script.lua"
        script.write_text(HEAD + text)
        return orrery("run", "-n", ranks, script, cwd=self.folder)

    def rows(self, array, options="{}"):
        done = self.run_script(f"dump(orrery.data.hdf5('arrays.h5', {{ x = '{array}' }}, {options}))")
        self.assertEqual(done.code, 0, done.err)
        lines = [line.split("\t") for line in done.out.splitlines()]
        return {kind for kind, _ in lines}, [[float(x) for x in values.split()] for _, values in lines]

    def refused(self, call, *parts):
        done = self.run_script(f"dump(orrery.data.hdf5({call}))")
        self.assertNotEqual(done.code, 0, call)
        for part in parts:
            self.assertIn(part, done.err)

    def test_every_kind_of_numbers(self):
        for name in KINDS:
            with self.subTest(name):
                _, values = self.rows(f"kinds/{name}")
                self.assertEqual(values, [[i] for i in range(6)])
        self.assertEqual(self.rows("kinds/f4")[0], {"f32"})
        self.assertEqual(self.rows("kinds/u1", "{ dtypes = { x = 'i32' } }")[0], {"i32"})
        self.assertEqual(self.rows("kinds/bool")[1], [[0], [1], [1], [0], [1], [0]])

    def test_arrays_of_several_dims_in_chunks_and_in_one_piece(self):
        wanted = [[6 * i + k for k in range(6)] for i in range(6)]
        self.assertEqual(self.rows("plain")[1], wanted)
        self.assertEqual(self.rows("/packed")[1], wanted)

    def test_ranks_threads_and_restarts_change_no_bit(self):
        def digest(ranks, loop, *parts):
            done = self.run_script("""
local set = orrery.data.hdf5("arrays.h5", { x = "packed", y = "kinds/f4" }, { dtypes = { x = "f32" } })
orrery.seed(3)
local net = orrery.nn.linear(6, 1)
local run = orrery.compile(function(b) return orrery.nn.mse(net(b.x:view(-1, 6)):view(-1), b.y) end,
  { params = net, optimizer = orrery.optim.sgd { lr = 0.0001 }, microbatches = 2 })
""" + "\n".join(parts) + loop + '\norrery.log("digest %s", orrery.digest(net))', ranks)
            self.assertEqual(done.code, 0, done.err)
            return re.search(r"digest (\w+)", done.out)[1]

        def loop(steps, workers=1):
            return (f" for _, batch in set:batches {{ size = 4, steps = {steps}, workers = {workers}, from = run.steps + 1 }}"
                    " do run:step(batch) end ")
        whole = digest(1, loop(7))
        self.assertEqual(digest(2, loop(7, 4)), whole)
        digest(2, loop(3) + 'run:save "saved"')
        self.assertEqual(digest(1, loop(7), 'run:load "saved"'), whole)
        self.assertNotEqual(digest(1, loop(6)), whole)

    def texts(self, array, size=6):
        done = self.run_script(f"""
local set = orrery.data.hdf5("texts.h5", {{ x = "{array}" }})
for i = 1, #set do print((orrery.engine.sample(set, i).x:text())) end""")
        self.assertEqual(done.code, 0, done.err)
        lines = done.out.split("\n")[:-1]
        self.assertEqual(len(lines), size)
        return lines

    def test_texts(self):
        wanted = ["one", "", "drei äöü", "日本", "one", "a longer text than all of the others"]
        for array in ("any", "packed", "fixed", "ended", "blanks"):
            with self.subTest(array):
                self.assertEqual(self.texts(array), wanted)
        self.assertEqual(self.texts("many", 1100), [str(i % 7) * (i % 5) for i in range(1100)])
        self.assertEqual(self.texts("unwritten", 3), ["", "", ""])
        done = self.run_script("""
local set = orrery.data.hdf5("texts.h5", { x = "any", y = "packed", n = "numbers" }, { dtypes = { y = "class", n = "f32" } })
print(table.concat(set.classes, "|"))
for i = 1, #set do
  local s = orrery.engine.sample(set, i)
  print(s.y:tolist(), s.y.dtype, s.n:tolist(), #s.x.shape)
end""")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(done.out.splitlines(), ["|".join(sorted(set(wanted)))] + [
            f"{sorted(set(wanted), key=str.encode).index(text)}\ti32\t{i}.0\t1" for i, text in enumerate(wanted)])
        self.refused("'texts.h5', { x = 'square' }", "texts.h5: array 'square': its texts have 2 dims")
        self.refused("'texts.h5', { x = 'numbers' }, { dtypes = { x = 'class' } }", "'class'} is for texts, which it has not")
        self.refused("'texts.h5', { x = 'any', y = 'packed' }, { dtypes = { x = 'class', y = 'class' } }", "one can have them")

    def test_what_is_wrong_is_named(self):
        for array, reason in (("complex", "are compounds"), ("lists", "lists of any length"),
                              ("one", "is one value"), ("none", "dim 0 is 0"), ("outside", "in other files"),
                              ("virtual", "in other files")):
            self.refused(f"'other.h5', {{ x = '{array}' }}", f"other.h5: array '{array}'", reason)
        self.refused("'other.h5', { x = 'linked' }", "other.h5", "'linked'")
        self.refused("'arrays.h5', { x = 'plane' }", "arrays.h5: there is no array 'plane'; it has kinds/big_f4")
        self.refused("'arrays.h5', { x = 'kinds' }", "arrays.h5: array 'kinds'", "not a dataset")
        self.refused("'other.h5', { x = 'long', y = 'short' }", "samples, that of")
        self.refused("'nowhere.h5', { x = 'long' }", "nowhere.h5 is missing")
        self.refused("'kept.raw', { x = 'long' }", "kept.raw: it is no file of HDF5")
        self.refused("'arrays.h5', { x = 3 }", "expected a string")

    def test_files_that_are_cut_short_or_altered_are_refused_or_read(self):
        whole = (self.folder / "arrays.h5").read_bytes()
        for kept in (0, 100, len(whole) // 2, len(whole) - 8):
            (self.folder / "cut.h5").write_bytes(whole[:kept])
            self.refused("'cut.h5', { x = 'packed' }", "cut.h5: ")
        dims = b"".join(n.to_bytes(8, "little") for n in (6, 3, 2))  # then the most that they may be
        larger = dims[:-8] + (2 + (255 << 24)).to_bytes(8, "little") + dims
        (self.folder / "cut.h5").write_bytes(whole.replace(dims + dims, larger))
        self.refused("'cut.h5', { x = 'packed' }", "cut.h5: array 'packed': dim 2 is 4278190082, of 2 at most")
        # A chunk that says that it has one byte, and so no checksum; it is asked for twice.
        short = bytearray(whole)
        self.assertEqual(short[9512], 0o26)
        short[4892], short[9512] = 1, 1
        (self.folder / "short.h5").write_bytes(short)
        done = self.run_script("""
local set = orrery.data.hdf5("short.h5", { x = "packed" })
for _ = 1, 2 do print(select(2, pcall(orrery.engine.sample, set, 5))) end""")
        self.assertEqual(done.out.count("short.h5: array 'packed': a chunk has 1 bytes, 4 or more expected"), 2, done.out + done.err)
        # A number of 0 by which the library divides.
        empty = bytearray((self.folder / "texts.h5").read_bytes())
        empty[1546] = 0
        (self.folder / "empty.h5").write_bytes(empty)
        self.refused("'empty.h5', { x = 'any', y = 'packed' }", "empty.h5: opening it ends HDF5 by signal 8")
        self.damaged("arrays.h5", '{ x = "packed", y = "plain" }', 200)
        self.damaged("texts.h5", '{ x = "any", y = "packed", z = "fixed" }', 200)

    def damaged(self, name, fields, count, seed=3):
        """Files with some bytes changed, in one process."""
        whole, rng, lines = (self.folder / name).read_bytes(), random.Random(seed), []
        for i in range(count):
            damaged = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 255, rng.randrange(256)))
            if rng.random() < 0.1:
                del damaged[rng.randrange(len(damaged)):]
            (self.folder / f"damaged-{i}.h5").write_bytes(damaged)
            lines.append(f"try 'damaged-{i}.h5'")
        done = self.run_script("""
local refused, read = 0, 0
local function try(path)
  local ok, why = pcall(function()
    local set = orrery.data.hdf5(path, FIELDS)
    for i = 1, #set do orrery.engine.sample(set, i) end
  end)
  if ok then read = read + 1 return end
  refused = refused + 1
  assert(why:find(path, 1, true), why)
end
""".replace("FIELDS", fields) + "\n".join(lines) + "\nprint(refused, read)")
        self.assertEqual(done.err, "")
        refused, read = map(int, done.out.split())
        self.assertEqual(refused + read, count)
        self.assertGreater(refused, 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
