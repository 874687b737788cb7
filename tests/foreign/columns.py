# SPDX-License-Identifier: Apache-2.0
# Takes: pyarrow numpy pandas Pillow datasets
"""Parquet and Arrow files that pyarrow, pandas and Hugging Face's datasets write, as data.parquet and data.arrow read
them: every value, in files, lists of files and directories, within bounds of memory; what is refused, and that files
with some bytes changed are read or refused.

Arguments: the build tree.
"""
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import datasets
import numpy as np
import pandas
import PIL.Image
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

datasets.disable_progress_bars()
BUILD = pathlib.Path(sys.argv[1]).resolve()
HEAD = 'local orrery = require "orrery"\nlocal data = orrery.data\n'
DUMP = """
local function written(value)
  if math.type(value) == "float" then return value ~= value and '"nan"' or ("%.17g"):format(value) end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i, each in ipairs(value) do parts[i] = written(each) end
  return "[" .. table.concat(parts, ",") .. "]"
end
local function dump(set, as_text)
  io.write(('{"samples": %d, "classes": ["%s"], "rows": ['):format(#set, table.concat(set.classes, '", "')))
  local engine = orrery.engine
  for i = 1, #set do
    local parts = {}
    for name, x in pairs(engine.sample(set, i)) do
      local value = #x.shape == 0 and x:item() or x:tolist()
      if x.dtype == "u8" and #x.shape == 1 and as_text then value = ("%q"):format(x:text()):gsub("\\\\\\n", "\\\\n") end
      parts[#parts + 1] = ('"%s": %s'):format(name, type(value) == "string" and value or written(value))
    end
    io.write(i > 1 and "," or "", "{", table.concat(parts, ","), "}")
  end
  io.write "]}\\n"
end
"""


def lua(folder, text):
    """What a script prints, and what it complains of."""
    script = pathlib.Path(folder) / "script.lua"
    script.write_text(HEAD + DUMP + text)
    done = subprocess.run([BUILD / "orrery", "run", script], capture_output=True, text=True, cwd=folder, timeout=300,
                          env={"ORRERY_NO_DIR": "1", "ORRERY_PIN": "none", "PATH": "/usr/bin:/bin"})
    return done.stdout, done.stderr


class Columns(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def read(self, call, as_text=False):
        out, err = lua(self.folder, f"dump({call}, {str(as_text).lower()})")
        self.assertEqual(err, "")
        return json.loads(out)

    def refused(self, call, *parts):
        out, err = lua(self.folder, f"dump({call})")
        self.assertNotIn("]}", out)
        for part in parts:
            self.assertIn(part, err)

    def every_way(self, table, **options):
        """Paths of the table in each format, in several chunks."""
        pq.write_table(table, self.folder / "t.parquet", row_group_size=3, **options)
        pyarrow.feather.write_feather(table, self.folder / "t.feather", chunksize=3)
        pyarrow.feather.write_feather(table, self.folder / "plain.feather", chunksize=4, compression="uncompressed")
        with pa.OSFile(str(self.folder / "t.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
        return [("parquet", "t.parquet"), ("arrow", "t.feather"), ("arrow", "plain.feather"), ("arrow", "t.arrow")]

    def test_numbers_of_every_type(self):
        n = 10
        columns = {"bool": pa.array([i % 3 == 0 for i in range(n)])}
        for bits in (8, 16, 32, 64):
            columns[f"i{bits}"] = pa.array([(-1) ** i * (2 ** (bits - 1) - 1 - i) for i in range(n)], getattr(pa, f"int{bits}")())
            top = 2 ** min(bits, 63)
            columns[f"u{bits}"] = pa.array([top - 1 - i for i in range(n)], getattr(pa, f"uint{bits}")())
        columns["half"] = pa.array(np.linspace(-3, 60000, n).astype(np.float16))
        columns["float"] = pa.array(np.linspace(-1, 1, n).astype(np.float32))
        columns["double"] = pa.array(np.geomspace(1e-300, 1e300, n))
        table = pa.table(columns)
        fields = ", ".join(f"{name} = '{name}'" for name in columns)
        rows = table.to_pylist()
        for call, path in self.every_way(table):
            with self.subTest(path=path):
                found = self.read(f"data.{call}('{path}', {{ {fields} }})")
                self.assertEqual(found["samples"], n)
                for got, wanted in zip(found["rows"], rows):
                    for name in columns:
                        self.assertEqual(float(np.float64(got[name])), float(wanted[name]), name)

    def test_lists_texts_and_several_columns(self):
        n = 10
        table = pa.table({
            "ids": pa.array([list(range(i % 4 + 1)) for i in range(n)], pa.list_(pa.int32())),
            "same": pa.array([[[i, 1], [2, 3], [4, -i]] for i in range(n)], pa.large_list(pa.list_(pa.int16()))),
            "fixed": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(3 * n, dtype=np.float32)), 3),
            "text": ["", "a", "\u00e4\u00f6 \u4e16", "two\nlines", 'say "hi"'] * 2,
            "large": pa.array(["x" * i for i in range(n)], pa.large_string()),
            "kind": pa.array(["b", "a", "c", "a", "b"] * 2).dictionary_encode(),
            "a": pa.array(range(n), pa.int8()), "b": pa.array(np.arange(n) / 4),
        })
        fields = "{ ids = 'ids', same = 'same', fixed = 'fixed', kind = 'kind', ab = { 'a', 'b' }, one = { 'a' } }"
        options = "{ pad = { ids = -1 }, dtypes = { kind = 'class', one = 'f32' } }"
        for call, path in self.every_way(table):
            if path == "t.arrow":
                self.refused(f"data.arrow('{path}', {{ x = 'a' }})", "t.arrow: column 'kind' has a dictionary", "Feather")
                continue
            with self.subTest(path=path):
                found = self.read(f"data.{call}('{path}', {fields}, {options})")
                self.assertEqual(found["classes"], ["a", "b", "c"])
                for i, (got, row) in enumerate(zip(found["rows"], table.to_pylist())):
                    self.assertEqual(got["ids"], row["ids"] + [-1] * (4 - len(row["ids"])))
                    self.assertEqual((got["same"], got["fixed"]), (row["same"], row["fixed"]))
                    self.assertEqual(got["kind"], "abc".index(row["kind"]))
                    self.assertEqual((got["ab"], got["one"]), ([i, i / 4], [i]))
                texts = self.read(f"data.{call}('{path}', {{ text = 'text', large = 'large' }})", as_text=True)
                self.assertEqual(texts["rows"], [{"text": r["text"], "large": r["large"]} for r in table.to_pylist()])
                self.refused(f"data.{call}('{path}', {{ x = 'ids' }})", f"{path}: row 2: column 'ids' has a list of 2, others have 1",
                             "pad = {x = 0}")

    def test_missing_values_are_refused_or_as_asked(self):
        table = pa.table({"x": pa.array([1.5, 2.5, None, 4.5]), "i": pa.array([1, None, 3, 4], pa.int32()),
                          "l": pa.array([[1, 2], [3, None], None, [4, 5]], pa.list_(pa.int64())), "t": ["a", None, "b", "c"]})
        for call, path in self.every_way(table):
            with self.subTest(path=path):
                found = self.read(f"data.{call}('{path}', {{ x = 'x', i = 'i', l = 'l' }}, {{ nulls = {{ x = 0/0, i = -1, l = 7 }} }})")
                self.assertEqual([r["x"] for r in found["rows"]], [1.5, 2.5, "nan", 4.5])
                self.assertEqual([r["i"] for r in found["rows"]], [1, -1, 3, 4])
                self.assertEqual([r["l"] for r in found["rows"]], [[1, 2], [3, 7], [7, 7], [4, 5]])
                self.refused(f"data.{call}('{path}', {{ x = 'x' }}):take {{ 3 }}", f"{path}: row 3: column 'x' is null", "nulls = {x = 0}")
                self.refused(f"data.{call}('{path}', {{ x = 't' }})", f"{path}: row 2: column 't' is null")
                self.refused(f"data.{call}('{path}', {{ x = 'i' }}, {{ nulls = {{ x = 0.5 }} }})", "nulls: 0.5 is no value of field 'x'")

    def test_images_of_datasets_are_those_of_files(self):
        pictures, classes = [], self.folder / "folders"
        for i in range(6):
            picture = PIL.Image.fromarray(np.random.default_rng(i).integers(0, 256, (9 + i, 14, 3), np.uint8))
            path = classes / "ab"[i % 2] / f"{i}.{'png' if i < 4 else 'jpg'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            picture.save(path)
            pictures.append(path)
        names = datasets.ClassLabel(names=["a", "b"])
        made = datasets.Dataset.from_dict({"image": [{"bytes": path.read_bytes(), "path": None} for path in pictures], "label": [0, 1] * 3},
                                          features=datasets.Features({"image": datasets.Image(), "label": names}))
        made.save_to_disk(self.folder / "saved", num_shards=2)
        made.to_parquet(self.folder / "images.parquet")
        rows = [None] * 6
        for row, at in zip(self.read("data.images('folders', { size = 6 })")["rows"], (0, 2, 4, 1, 3, 5)):
            rows[at] = row
        for call in ("data.arrow('saved'", "data.parquet('images.parquet'"):
            found = self.read(f"{call}, {{ x = 'image', y = 'label' }}, {{ size = 6 }})")
            self.assertEqual(found["classes"], ["a", "b"])
            for got, wanted in zip(found["rows"], rows):
                self.assertEqual(got["y"], wanted["y"])
                self.assertEqual(got["x"], wanted["x"])
        self.refused("data.arrow('saved', { x = 'image' })", "column 'image' has images: give size = 224")

    def test_directories_of_datasets(self):
        made = datasets.Dataset.from_dict({"x": list(range(7)), "m": [[[i, 2.0], [3.0, 4.0]] for i in range(7)]}, features=datasets.Features(
            {"x": datasets.Value("int64"), "m": datasets.Array2D((2, 2), "float32")}))
        datasets.DatasetDict({"train": made, "test": made.select(range(2))}).save_to_disk(self.folder / "dict", num_shards={"train": 3, "test": 1})
        found = self.read("data.arrow('dict', { x = 'x', m = 'm' }, { split = 'train' })")["rows"]
        self.assertEqual(found, [{"x": i, "m": [[i, 2.0], [3.0, 4.0]]} for i in range(7)])
        self.assertEqual(self.read("data.arrow('dict/test', { x = 'x' })")["samples"], 2)
        self.refused("data.arrow('dict', { x = 'x' })", "dict: it has several splits; name one, such as split = 'train': train, test")
        self.refused("data.arrow('dict', { x = 'x' }, { split = 'dev' })", "dict: it has no split 'dev'; it has train, test")
        made.select([3, 1]).save_to_disk(self.folder / "selected")
        self.assertEqual([r["x"] for r in self.read("data.arrow('selected', { x = 'x' })")["rows"]], [3, 1])
        for split, rows in (("train", 6), ("test", 2)):
            for k in range(2):
                pq.write_table(pa.table({"x": list(range(k * rows // 2, (k + 1) * rows // 2))}), self.folder / "hub" / f"{split}-{k:05}-of-00002.parquet"
                               if (self.folder / "hub").mkdir(exist_ok=True) is None else None)
        self.assertEqual([r["x"] for r in self.read("data.parquet('hub', { x = 'x' }, { split = 'train' })")["rows"]], list(range(6)))
        (self.folder / "hub/train-00000-of-00002.parquet").unlink()
        self.refused("data.parquet('hub', { x = 'x' }, { split = 'train' })", "hub: it has 1 of 2 parts")
        loaded = datasets.load_dataset("csv", data_files={"train": self.csv("a"), "test": self.csv("b")}, cache_dir=self.folder / "cache")
        cache = pathlib.Path(loaded["train"].cache_files[0]["filename"]).parent.relative_to(self.folder)
        self.assertEqual(self.read(f"data.arrow('{cache}', {{ x = 'v' }}, {{ split = 'test' }})")["samples"], 3)
        self.refused(f"data.arrow('{cache}', {{ x = 'v' }})", "it has several splits; name one", "csv-train")

    def csv(self, name):
        pandas.DataFrame({"v": [1, 2, 3]}).to_csv(self.folder / f"{name}.csv", index=False)
        return str(self.folder / f"{name}.csv")

    def test_many_row_groups_in_little_memory_and_in_any_order(self):
        n = 400_000
        table = pa.table({"x": np.arange(n, dtype=np.int64), "y": np.arange(n) / 7})
        pq.write_table(table.slice(0, n // 2), self.folder / "a.parquet", row_group_size=10_000)
        pq.write_table(table.slice(n // 2), self.folder / "b.parquet", row_group_size=30_000)
        out, err = lua(self.folder, """
local set = data.parquet({ "a.parquet", "b.parquet" }, { x = "x", y = "y" }, { memory = 1000000, dtypes = { y = "f64" } })
local seen, sum, last = {}, 0, nil
for _, batch in set:batches { size = 50000, epochs = 1 } do
  local x, y = batch.x:read():tolist(), batch.y:read():tolist()
  for i = 1, #x do
    assert(not seen[x[i]] and y[i] == x[i] / 7)
    seen[x[i]] = true
  end
  sum = sum + #x
end
for line in io.lines "/proc/self/status" do last = line:match "VmHWM:%s+(%d+)" or last end
print(#set, sum, last)
""")
        self.assertEqual(err, "")
        rows, read, peak = map(int, out.split())
        self.assertEqual((rows, read), (n, n))
        self.assertLess(peak, 400_000, "kB at most at once")

    def test_what_is_wrong_is_named(self):
        table = pa.table({"a": [1, 2, 3], "when": pa.array([1, 2, 3], pa.timestamp("ms")), "t": ["a", "b", "c"], "d": pa.array([1, 2, 3], pa.uint64())})
        pq.write_table(table, self.folder / "t.parquet")
        self.refused("data.parquet('t.parquet', { x = 'b' })", "t.parquet: there is no column 'b'; it has a, when, t, d")
        self.refused("data.parquet('t.parquet', { x = 'when' })", "column 'when' is timestamp[ms]")
        self.refused("data.parquet('t.parquet', { x = { 'a', 't' } })", "t.parquet: column 't' is string: numbers")
        self.refused("data.parquet('t.parquet', { x = { 'a', 'd' } })", "field 'x': no dtype holds unsigned")
        self.refused("data.parquet('t.parquet', { x = 'a' }, { dtypes = { x = 'class' } })", "column 'a' is int64, no text")
        self.refused("data.parquet('t.parquet', { x = 'a' }, { pad = { x = 0 } })", "field 'x': pad is for a column of lists")
        self.refused("data.parquet('t.parquet', { x = 'a' }, { pad = { z = 0 } })", "parquet: pad: unknown option 'z'")
        self.refused("data.parquet('nowhere.parquet', { x = 'a' })", "nowhere.parquet is missing")
        pq.write_table(table.slice(0, 0), self.folder / "empty.parquet")
        self.refused("data.parquet('empty.parquet', { x = 'a' })", "empty.parquet: there are no rows")
        pq.write_table(pa.table({"a": ["x"]}), self.folder / "other.parquet")
        self.refused("data.parquet({ 't.parquet', 'other.parquet' }, { x = 'a' })", "other.parquet: column 'a' is string, in t.parquet int64")
        np.save(self.folder / "t.npy", np.arange(3))
        self.refused("data.parquet('t.npy', { x = 'a' })", "t.npy: it is a .npy file, not Parquet or Arrow")

    def test_damaged_files_are_refused_or_read(self):
        rng = random.Random(5)
        table = pa.table({"x": pa.array(range(40), pa.int32()), "l": pa.array([[i, i + 1] for i in range(40)], pa.list_(pa.int64())),
                          "t": [f"text {i}" for i in range(40)]})
        ways = [(call, path, (self.folder / path).read_bytes()) for call, path in self.every_way(table)]
        for call, path, whole in ways:
            for kept in (0, 3, 9, len(whole) // 2, len(whole) - 9, len(whole) - 1):
                (self.folder / path).write_bytes(whole[:kept])
                self.refused(f"data.{call}('{path}', {{ x = 'x', l = 'l', t = 't' }})", f"{path}: ")
        lines, count, rounds = [], 0, 150
        for call, path, whole in ways:
            for i in range(rounds):
                damaged = bytearray(whole)
                for _ in range(rng.randint(1, 4)):
                    at = rng.randrange(len(damaged))
                    damaged[at:at + rng.choice((0, 1, 1, 1, 4))] = bytes(rng.choices((0, 1, 255, rng.randrange(256)), k=rng.randint(1, 4)))
                name = f"damaged/{i}.{path}"
                (self.folder / "damaged").mkdir(exist_ok=True)
                (self.folder / name).write_bytes(damaged)
                lines.append(f"try('{call}', '{name}')")
                count += 1
        out, err = lua(self.folder, """
local refused, silent = 0, 0
local function try(call, path)
  local ok, why = pcall(function()
    local set = data[call](path, { x = 'x', l = 'l', t = 't' })
    for i = 1, math.min(#set, 50) do orrery.engine.sample(set, i) end
  end)
  if ok then silent = silent + 1 return end
  refused = refused + 1
  assert(why:find(path, 1, true) or why:find("column", 1, true) or why:find("memory", 1, true), why)
end
""" + "\n".join(lines) + "\nprint(refused, silent)")
        self.assertEqual(err, "")
        refused, silent = map(int, out.split())
        self.assertEqual(refused + silent, count)
        self.assertGreater(refused, count // 2)


if __name__ == "__main__":
    if not (BUILD / "plugins/orrery-data-arrow.so").exists():
        print("columns: the plugin arrow is not built; configure with -Darrow=" + pathlib.Path(pa.__file__).parent.as_posix())
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
