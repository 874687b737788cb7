# SPDX-License-Identifier: Apache-2.0
"""Names and numbers of metrics, through every observer, `orrery top` and `orrery report`, read back by other programs;
two runs and a function of one script, whose numbers stay apart; starts of one job, one after another.

Arguments: the build tree.
"""
import csv
import json
import math
import pathlib
import struct
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("e2e", "observer")]
from event_records import fields, records  # noqa: E402
from program import orrery  # noqa: E402
from recorded import Recorded  # noqa: E402

HEAD = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local batch = { x = orrery.tensor { { 1.0, 2.0 } }, y = orrery.tensor { { 3.0 } } }
local function make(lr, second)
  local model = nn.linear(2, 1)
  return orrery.compile(function(b)
    local loss = nn.mse(model(b.x), b.y)
    return loss, second and second(b, loss)
  end, { params = model, optimizer = optim.sgd { lr = lr } }), model
end
"""
GOOD = ["accuracy", "größe", "精度", 'a "quoted" name', "it's", "a,b;c", "val/loss", "back\\slash", "<b>&amp;", "{x} [y]",
        "100 %", " a ", "x" * 200, "🦉", "configuration"]
NUMBERS = [math.nan, math.inf, -math.inf, -0.0, 1e-310, 1e300, 16777217.0, -3.0, 0.1]
RESERVED = ["step", "time", "seconds", "loss", "grad_norm", "learning_rate", "samples_per_second", "tokens_per_second", "mfu",
            "data_seconds", "resident_bytes", "arena_bytes", "bytes_sent", "checkpoint_seconds"]


def lua(text):
    return '"' + "".join(f"\\{b:03d}" for b in (text if isinstance(text, bytes) else text.encode())) + '"'


def scalars(place):
    """{tag: {step: value}} of the event files in the order of their names; a session's start drops what is behind it."""
    found = {}
    for path in sorted(place.glob("events.out.tfevents.*")):
        for event in map(dict, map(fields, records(path.read_bytes()))):
            if 7 in event:
                assert dict(fields(event[7])) == {1: 1}
                for series in found.values():
                    for step in [step for step in series if step >= event[2]]:
                        del series[step]
            if 5 not in event:
                continue
            value = dict(fields(dict(fields(event[5]))[1]))
            if 2 in value:
                found.setdefault(value[1].decode(), {})[event[2]] = value[2]
    return found


def metrics(place):
    """[(step, name, value)], and the same of the table."""
    lines, rows = [], []
    for line in (place / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        lines += [(record["step"], name, record[name]) for name in record if name not in ("step", "time")]
    with open(place / "metrics.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.append((int(row["step"]), row["name"], float(row["value"])))
    return lines, rows


def same(a, b):
    return a == b and math.copysign(1, a) == math.copysign(1, b) or math.isnan(a) and math.isnan(b)


class Names(Recorded):
    head = HEAD

    def test_names_come_back(self):
        self.run_text("local run = make(0.01, function(b, loss) return {"
                      + ", ".join(f"[{lua(name)}] = loss * 0 + {i}" for i, name in enumerate(GOOD)) + "} end)\n"
                      "run:step(batch)\n")
        lines, rows = metrics(self.place)
        board = scalars(self.place)
        for i, name in enumerate(GOOD):
            with self.subTest(name=name):
                self.assertIn((1, name, i), lines)
                self.assertIn((1, name, float(i)), rows)
                self.assertEqual(board[name], {1: float(i)})
        self.assertEqual(len(lines), len(rows))
        self.pages()

    def test_numbers_come_back(self):
        shown = ", ".join("0/0" if math.isnan(x) else "math.huge" if x == math.inf else "-math.huge" if x == -math.inf else repr(x)
                          for x in NUMBERS)
        self.run_text(f"""
local run = make(0.01, function(b, loss) return {{
  up = loss * 0 + math.huge, down = loss * 0 - math.huge, none = (loss * 0 + math.huge) * 0, whole = loss * 0 + 7, minus = loss * 0 * -1 }} end)
local record = orrery.func(function(x) return orrery.watch(x, "w") end)
run:step(batch)
for _, x in ipairs {{ {shown} }} do record(orrery.tensor({{ x }}, "f64")) end
""")
        lines, rows = metrics(self.place / "func-1")
        for kind, of in (("jsonl", lines), ("csv", rows)):
            for i, x in enumerate(NUMBERS):
                with self.subTest(kind=kind, number=x):
                    [least] = [value for step, name, value in of if (step, name) == (i + 1, "w.min")]
                    finite = math.isfinite(x)
                    if finite:
                        self.assertTrue(same(least, x), least)
                    else:
                        self.assertTrue(least is None or math.isnan(least), least)
                    [bad] = [value for step, name, value in of if (step, name) == (i + 1, "w.nan")]
                    self.assertEqual(bad, math.isnan(x))
                    [bad] = [value for step, name, value in of if (step, name) == (i + 1, "w.infinite")]
                    self.assertEqual(bad, math.isinf(x))
        lines, rows = metrics(self.place)
        board = scalars(self.place)
        for name, x in (("up", math.inf), ("down", -math.inf), ("none", math.nan), ("whole", 7.0), ("minus", -0.0)):
            self.assertIn((1, name, x if math.isfinite(x) else None), lines)
            for found in ([value for _, other, value in rows if other == name], list(board[name].values())):
                self.assertTrue(len(found) == 1 and same(found[0], x), (name, found))
        board = scalars(self.place / "func-1")
        for i, x in enumerate(NUMBERS):
            expected = math.nan if not math.isfinite(x) else math.inf if abs(x) > 3.5e38 else \
                struct.unpack("<f", struct.pack("<f", x))[0]
            self.assertTrue(same(board["w.min"][i + 1], expected), (x, board["w.min"]))
        self.pages()
        self.pages(self.place / "func-1")

    def test_what_is_refused(self):
        cases = [(name, "is what files of metrics call a number of their own: take another one") for name in RESERVED]
        cases += [("", "is empty"), (b"caf\xe9", "is not UTF-8"), (b"\xed\xa0\x80", "is not UTF-8"), ("a\nb", "has a line end"),
                  ("a\tb", "has a line end or another control character"), ("y" * 201, "has 201 bytes, 200 are the most"),
                  ("skipped_steps", "is how strategies count steps")]
        for name, why in cases:
            with self.subTest(name=name):
                done = self.run_text(f"""local run = make(0.01, function(b, loss)
  return {{ [{lua(name)}] = loss * 2 }}
end)
run:step(batch)
""", code=1)
                self.assertRegex(done.err, r"train\.lua:\d+: .*the second result '")
                self.assertIn(why, done.err)
                self.assertEqual(done.err.count("error: "), 1)
        for name in ("", b"\xff", "x" * 200):
            done = self.run_text(f"""
local run = make(0.01, function(b, loss) orrery.watch(loss, {lua(name)}) end)
run:step(batch)
""", code=1)
            self.assertRegex(done.err, r"train\.lua:\d+: .*watch: the name")

    def test_runs_of_a_script_stay_apart(self):
        self.run_text("""
local first, model = make(0.1)
local second = make(0.001)
local record = orrery.func(function(x) return orrery.watch(x, "w") end)
for _ = 1, 3 do first:step(batch) end
for _ = 1, 5 do second:step(batch) first:step(batch) record(batch.x) end
""")
        alone = self.root / "alone"
        self.script.write_text(HEAD + "local first = make(0.1)\nfor _ = 1, 8 do first:step(batch) end\n")
        self.assertEqual(orrery("run", "--dir", alone, self.script).code, 0)
        names = sorted(path.name for path in self.place.iterdir())
        self.assertEqual([name for name in names if "tfevents" not in name],
                         ["facts.0.jsonl", "func-1", "metrics.csv", "metrics.jsonl", "run-2", "trace.0.json", "trace.json"])
        bits = [[line for line in metrics(place)[0] if line[1] in ("loss", "learning_rate")] for place in (self.place, alone)]
        self.assertEqual(*bits)
        for place, steps, rate in ((self.place, 8, 0.1), (self.place / "run-2", 5, 0.001)):
            for of in metrics(place):
                self.assertEqual([(step, value) for step, name, value in of if name == "learning_rate"],
                                 [(step, rate) for step in range(1, steps + 1)])
                self.assertEqual([step for step, name, _ in of if name == "seconds"], list(range(1, steps + 1)))
            self.assertEqual(list(scalars(place)["loss"]), list(range(1, steps + 1)))
            spans = [e for e in json.loads((place / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
            self.assertEqual({e["args"]["step"] for e in spans}, {3, 4, 5})
            self.assertEqual(orrery("top", "--once", place).out.splitlines()[1:3], ["finished", f"step {steps}"])
        self.assertEqual({name for _, name, _ in metrics(self.place / "func-1")[0]},
                         {f"w.{kind}" for kind in ("mean", "std", "min", "max", "nan", "infinite")})
        top, report = self.pages()
        self.assertRegex(top, r"\nrun-2\nstep 5\nloss  ")
        self.assertIn("<td>place/run-2</td>", report)
        # A failure is the job's, whichever run it is of.
        self.run_text("local first, second = make(0.1), make(0.1)\nfirst:step(batch) second:step(batch) error 'here'\n", code=1)
        for place in (self.place, self.place / "run-2"):
            self.assertRegex(self.pages(place)[0].splitlines()[1], "^failed: .*here$")

    def test_starts_one_after_another(self):
        text = """
local steps, load = orrery.args {{ steps = 3, load = "" }}.steps, {load}
local run = make(0.01)
if load ~= "" then run:load(load) end
while run.steps < {steps} do run:step(batch) end
run:save("{root}/saved")
"""
        saved = self.root / "saved"
        self.run_text(text.format(load='""', steps=6, root=self.root), "--observe", "trace=2:3")
        first = (self.place / "trace.json").read_text()
        self.run_text(text.format(load='""', steps=4, root=self.root), "--observe", "trace=1:2")
        self.assertEqual((self.place / "trace-1.json").read_text(), first)
        second = (self.place / "trace.json").read_text()
        self.assertEqual(list(scalars(self.place)["loss"]), [1, 2, 3, 4])
        self.run_text(text.format(load=lua(str(saved)), steps=9, root=self.root), "--observe", "trace=1:2")
        self.assertEqual((self.place / "trace-2.json").read_text(), second)
        self.assertEqual(list(scalars(self.place)["loss"]), list(range(1, 10)))
        self.assertEqual(len(list(self.place.glob("events.out.tfevents.*"))), 3)
        self.assertIn("Step 2", self.pages()[1])  # of the newest trace


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
