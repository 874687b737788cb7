# SPDX-License-Identifier: Apache-2.0
"""What scripts record: numbers, texts, images and histograms, on one and three ranks, read back from every file, by the
formats' definitions and not by what writes them here; runs with names; what is refused.

Arguments: the build tree.
"""
import base64
import csv
import json
import pathlib
import re
import struct
import sys
import unittest
import zlib

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("e2e", "observer")]
from event_records import fields, records  # noqa: E402
from program import orrery  # noqa: E402
from recorded import Recorded, charts  # noqa: E402

HEAD = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local batch = { x = orrery.tensor { { 1.0 }, { 2.0 }, { 3.0 } }, y = orrery.tensor { { 3.0 }, { 5.0 }, { 7.0 } } }
local rank = orrery.world.rank
local function make(name, lr)
  local model = nn.linear(1, 1)
  return orrery.compile(function(b)
    local loss = nn.mse(model(b.x), b.y)
    return loss, { twice = loss * 2 }
  end, { params = model, optimizer = optim.sgd { lr = lr or 0.01 }, microbatches = 3, name = name })
end
"""


def metrics(place):
    """{name: [(step, value)]} of the lines, which the table must have too."""
    lines, rows = [], []
    for line in (place / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        lines += [(record["step"], name, record[name]) for name in record if name not in ("step", "time")]
    with open(place / "metrics.csv", newline="", encoding="utf-8") as file:
        rows = [(int(row["step"]), row["name"], float(row["value"])) for row in csv.DictReader(file)]
    assert lines == rows, (lines, rows)
    found = {}
    for step, name, value in lines:
        found.setdefault(name, []).append((step, value))
    return found


def summaries(place):
    """[(step, tag, {field: value of the Summary.Value})] of the event files."""
    found = []
    for path in sorted(place.glob("events.out.tfevents.*")):
        for event in map(dict, map(fields, records(path.read_bytes()))):
            if 5 in event:
                value = dict(fields(dict(fields(event[5]))[1]))
                found.append((event[2], value[1].decode(), value))
    return found


def decoded(png):
    """(width, height, channels, rows of bytes) of a PNG of 8 bits whose lines have no filter."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, []
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        data, [crc] = png[at + 8:at + 8 + size], struct.unpack(">I", png[at + 8 + size:at + 12 + size])
        assert crc == zlib.crc32(kind + data), kind
        chunks.append((kind, data))
        at += 12 + size
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"], chunks
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    assert depth == 8 and rest == [0, 0, 0]
    channels = {0: 1, 2: 3, 6: 4}[colour]
    lines, row = zlib.decompress(chunks[1][1]), 1 + width * channels
    assert len(lines) == row * height and not any(lines[::row])
    return width, height, channels, [list(lines[y * row + 1:(y + 1) * row]) for y in range(height)]


class Records(Recorded):
    head = HEAD

    def test_numbers(self):
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                place = self.root / f"numbers{ranks}"
                self.run_text("""
orrery.record("seeds", 7, { step = 4 })
if rank == 0 then orrery.record("first", 0.25, { step = 0 }) end
local run = make()
orrery.record("before", 1)
for i = 1, 3 do
  run:step(batch)
  orrery.record("all", i / 4)
  if rank == 0 then orrery.record("one", orrery.tensor({ i * 1.5 }, "f64")) end
end
orrery.record("many", { b = orrery.tensor(9), a = -0.5 })
run:record("far", 2, { step = 100 })
run:eval(batch)
""", ranks=ranks, place=place)
                found = metrics(place)
                self.assertEqual(found["seeds"], [(4, 7)])
                self.assertEqual(found["first"], [(0, 0.25)])
                self.assertEqual(found["before"], [(0, 1)])
                self.assertEqual(found["all"], [(1, 0.25), (2, 0.5), (3, 0.75)])
                self.assertEqual(found["one"], [(1, 1.5), (2, 3.0), (3, 4.5)])
                self.assertEqual((found["many/a"], found["many/b"], found["far"]), ([(3, -0.5)], [(3, 9)], [(100, 2)]))
                self.assertEqual([step for step, _ in found["loss"]], [1, 2, 3])
                [(step, loss)] = found["eval/loss"]
                self.assertEqual((step, found["eval/twice"]), (3, [(3, 2 * loss)]))
                self.assertLess(loss, found["loss"][2][1])
                board = [(step, tag, value[2]) for step, tag, value in summaries(place) if 2 in value]
                for name, values in found.items():
                    self.assertEqual(len([tag for _, tag, _ in board if tag == name]), len(values), name)
                self.assertIn((3, "all", 0.75), board)
                top, report = self.pages(place)
                self.assertRegex(top, r"\nall         0\.75 ")
                self.assertIn("eval/loss", charts(report))

    def test_the_planned_steps_are_told_after_a_record(self):
        self.run_text("""
local data = orrery.data.arrays { x = { { 1.0 }, { 2.0 }, { 3.0 } }, y = { { 3.0 }, { 5.0 }, { 7.0 } } }
local run = make()
orrery.record("early", 1)
for step, batch in data:batches { size = 3, steps = 4 } do run:step(batch) end
""")
        self.assertIn("step 4/4 ", self.pages()[0])

    def test_other_kinds(self):
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                place = self.root / f"kinds{ranks}"
                done = self.run_text(r"""
local run = make()
run:step(batch)
orrery.record("sample", "once\nupon <a> \255 time\0.")
run:step(batch)
orrery.record("sample", "größe")
orrery.record("grey", orrery.tensor({ { 0, 128 }, { 255, 7 }, { 1, 2 } }, "u8"))
orrery.record("a/b", orrery.tensor { { { 0.0, 1.0 } }, { { 0.5, 0.25 } }, { { 1.0, 0.0 } } })
orrery.record("loud", orrery.tensor { { -0.5, 1.5 } })
orrery.record("loud", orrery.tensor { { -0.5, 1.5 } })
local many = {}
for n = 1, 10 do many[n] = { { { n, n + 100 } } } end
orrery.record("many", orrery.tensor(many, "u8"))
local values = {}
for i = 0, 299 do values[i + 1] = i * i end
orrery.record("spread", orrery.tensor(values), { as = "histogram" })
""", ranks=ranks, place=place)
                self.assertEqual(done.err.count("has numbers from -0.5 to 1.5"), 1, done.err)
                lines = [json.loads(line) for line in (place / "records.jsonl").read_text(encoding="utf-8").splitlines()]
                named = [(line["step"], line["name"]) for line in lines]
                self.assertEqual(named, [(1, "sample")] + [(2, name) for name in
                                 ("sample", "grey", "a/b", "loud", "loud", "many", "spread")])
                texts = ["once\nupon <a> \ufffd time\ufffd.", "größe"]
                self.assertEqual([line["text"] for line in lines[:2]], texts)
                tiles = [[n, n + 100] for n in range(1, 11)]
                images = {"grey": (2, 3, 1, [[0, 128], [255, 7], [1, 2]]),
                          "a/b": (2, 1, 3, [[0, 128, 255, 255, 64, 0]]),
                          "loud": (2, 1, 1, [[0, 255]]),
                          "many": (16, 2, 1, [sum(tiles[:8], []), sum(tiles[8:], []) + [0] * 12])}
                for line in lines[2:7]:
                    self.assertEqual(decoded((place / line["image"]).read_bytes()), images[line["name"]], line)
                self.assertEqual(lines[2]["image"], "images/grey-2.png")
                width, counts = 299 * 299 / 30, [0] * 30
                for i in range(300):
                    counts[min(29, int(i * i / width))] += 1
                self.assertEqual(lines[7]["histogram"], {"least": 0, "most": 299 * 299, "counts": counts})

                board = [entry for entry in summaries(place) if entry[1] != "configuration" and 2 not in entry[2]]
                self.assertEqual([(step, tag) for step, tag, _ in board], named)
                for (_, tag, value), line in zip(board, lines, strict=True):
                    if tag in images:
                        image = dict(fields(value[4]))
                        expected = images[tag]
                        self.assertEqual((image[2], image[1], image[3]), expected[:3])
                        self.assertEqual(decoded(image[4]), expected)
                        continue
                    kind = dict(fields(dict(fields(value[9]))[1]))[1].decode()
                    tensor = list(fields(value[8]))
                    if tag == "sample":
                        self.assertEqual((kind, dict(tensor)[8].decode()), ("text", line["text"]))
                    else:
                        rows = struct.unpack("<90d", dict(tensor)[4])
                        self.assertEqual((kind, list(rows[2::3])), ("histograms", counts))

                report = self.pages(place)[1]
                self.assertIn("<pre>größe</pre>", report)
                shown = {base64.b64decode(part) for part in re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", report)}
                self.assertEqual(shown, {(place / line["image"]).read_bytes() for line in lines[2:7]})
                self.assertIn('aria-label="spread"', report)

    def test_refused(self):
        head = "local run = make() run:step(batch)\n"
        for text, why in ((head + "orrery.record('loss', 1)", "the name 'loss' is what files of metrics call"),
                          (head + "orrery.record('caf\\xe9', 1)", "the name 'caf\\xe9' is not UTF-8"),
                          (head + "orrery.record('', {a = 1})", "the name is empty"),
                          (head + "orrery.record('a', {['b\\n'] = 1})", "has a line end"),
                          (head + "orrery.record('a', {1, 2})", "a table with the key 1"),
                          (head + "orrery.record('a', {})", "is an empty table"),
                          (head + "orrery.record('a', {b = {c = 1}})", "'a/b' is a table: write orrery.tensor{...}"),
                          (head + "orrery.record('a', true)", "write 1 or 0"),
                          (head + "orrery.record('a', run:eval(batch))", "write result:mean(), or result:get(name)"),
                          (head + "orrery.record('a', 1, { stop = 2 })", "stop"),
                          (head + "orrery.record('a', 1, { step = -2 })", "step is -2"),
                          (head + "orrery.record('a', 1, { as = 'histogramm' })", "did you mean 'histogram'"),
                          (head + "orrery.record('a', 1, { as = 'image' })", "'a' is 1, which is no image"),
                          (head + "orrery.record('a', 'x', { as = 'number' })", "'a' is 'x', which is no number"),
                          (head + "orrery.record('a', orrery.tensor { 1.0, 2.0 })", "'a' is f32[2], which is no image: expected [H,W]"),
                          (head + "orrery.record('a', orrery.tensor { { 1, 2 } })", "'a' is i64[1,2]: expected u8"),
                          (head + "orrery.record('a', orrery.tensor { { { 1.0 } }, { { 1.0 } } })", "with 1, 3 or 4 channels"),
                          ("orrery.record('a', 1)", "write { step = ... }"),
                          ("local m = nn.linear(1, 1)\norrery.record('a', m.weight, { step = 1 })", "write :read() behind it"),
                          ("orrery.func(function(x) orrery.record('a', 1) return x end)(batch.x)", "write orrery.watch(x, name)"),
                          ("make('a b')", "the name 'a b' cannot be that of a run"), ("make('run-7')", "cannot be that of a run"),
                          ("make('checkpoint')", "cannot be that of a run"), ("make('../a')", "cannot be that of a run"),
                          ("make(7)", "name is 7, expected a string"),
                          ("local d, m = make('D'), nn.linear(1, 1)\nlocal e = orrery.compile(function(b) return nn.mse(m(b.x), b.y) end,"
                           "{ params = m, optimizer = optim.sgd {}, name = 'D' })",
                           "train.lua:14: compile: the run of train.lua:8 has the name 'D' already")):
            with self.subTest(text=text):
                done = self.run_text(text, code=1)
                self.assertRegex(done.err, r"train\.lua:\d+: ")
                self.assertIn(why, done.err.replace(str(self.root) + "/", ""))
                self.assertEqual(done.err.count("error: "), 1)

    def test_runs_with_names(self):
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                place = self.root / f"runs{ranks}"
                self.run_text("""
local d, g, third = make("D", 0.01), make("G", 0.001), make()
for i = 1, 4 do
  d:step(batch)
  if i > 1 then g:step(batch) end
  third:step(batch)
  d:record("fake", i)
  orrery.record("both", i)
end
g:eval(batch)
""", ranks=ranks, place=place)
                for name, steps, rate in (("D", 4, 0.01), ("G", 3, 0.001), ("run-3", 4, 0.01)):
                    found = metrics(place / name)
                    self.assertEqual(found["learning_rate"], [(step, rate) for step in range(1, steps + 1)])
                    self.assertEqual([step for step, tag, _ in summaries(place / name) if tag == "loss"], list(range(1, steps + 1)))
                    self.assertEqual(set(found) & {"fake", "eval/loss", "both"}, {"D": {"fake"}, "G": {"eval/loss"}}.get(name, set()))
                    top = orrery("top", "--once", place / name).out.splitlines()
                    self.assertEqual(top[1:3], ["finished", f"step {steps}"])
                self.assertEqual(metrics(place)["both"], [(step, step) for step in range(1, 5)])
                self.assertEqual(metrics(place / "D")["fake"], [(step, step) for step in range(1, 5)])
                top, report = self.pages(place)
                for name, steps in (("D", 4), ("G", 3), ("run-3", 4)):
                    self.assertRegex(top, rf"\n{name}\nstep {steps}\nloss ")
                for name in ("fake", "eval/loss", "both"):
                    self.assertRegex(top, rf"\n{name} ")
                for name in ("D", "G", "run-3"):
                    self.assertIn(f"<td>{place.name}/{name}</td>", report)

    def test_a_new_seed_does_not_mix_runs(self):
        self.run_text("""
local first = make()
orrery.seed(7)
local second = make()
first:step(batch)
for _ = 1, 3 do second:step(batch) end
""")
        self.assertEqual([step for step, _ in metrics(self.place)["loss"]], [1])
        self.assertEqual([step for step, _ in metrics(self.place / "run-2")["loss"]], [1, 2, 3])

    def test_only_values_and_gradients(self):
        for ranks in (1, 3):
            place = self.root / f"loop{ranks}"
            self.run_text("""
local model = nn.linear(1, 1)
local step = orrery.value_and_grad(function(b) return nn.mse(model(b.x), b.y) end, model)
for i = 1, 3 do orrery.record("error", step(batch), { step = i }) end
""", ranks=ranks, place=place)
            self.assertEqual([step for step, _ in metrics(place)["error"]], [1, 2, 3])
            self.assertEqual(orrery("top", "--once", place).out.splitlines()[1], "finished")

    def test_a_plan_records_nothing(self):
        self.script.write_text(HEAD + 'orrery.record("a", 1, { step = 1 })\nmake():step(batch)\n')
        done = orrery("plan", self.script, cwd=self.root)
        self.assertEqual((done.code, list(self.root.iterdir())), (0, [self.script]), done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
