# SPDX-License-Identifier: Apache-2.0
"""The page of `orrery report`: every number of every run is in its data, runs have names, states and colours of their own,
and, where there is a browser, its script draws all charts and does what the controls and the pointer ask for.

Arguments: the build tree.
"""
import itertools
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from program import orrery  # noqa: E402
from recorded import Recorded, charts, embedded  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local batch = { x = orrery.tensor { { 1.0 }, { 2.0 }, { 3.0 } }, y = orrery.tensor { { 3.0 }, { 5.0 }, { 7.0 } } }
local function make(name)
  local model = nn.linear(1, 1)
  return orrery.compile(function(b) return nn.mse(model(b.x), b.y) end,
    { params = model, optimizer = optim.sgd { lr = 0.01 }, microbatches = 3, name = name })
end
local run, critic = make(), make "critic"
for i = 1, 5 do
  run:step(batch)
  critic:step(batch)
  critic:record("penalty", i * 0.1)
  orrery.record("valid", { accuracy = 1 - 1 / i, f1 = i / 7 })
end
run:eval(batch)
"""


def written(place, lines, facts=()):
    """A directory as runs write it; a line is {name: value} of the next step, or has its step."""
    place.mkdir(parents=True)
    rows = [{"step": i, "time": 100 + i, **line} for i, line in enumerate(lines, 1)]
    (place / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "facts.0.jsonl").write_text("".join(json.dumps({"name": name, "value": value}) + "\n" for name, value in facts))


def numbers(place):
    """{name: [(step, value)]} of metrics.jsonl, by its format alone."""
    found = {}
    for row in map(json.loads, (place / "metrics.jsonl").read_text().splitlines()):
        for name in row.keys() - {"step", "time"}:
            found.setdefault(name, []).append((row["step"], row[name]))
    return found


def linear(channel):
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def luminance_and_lab(colour):
    """The relative luminance of sRGB, and CIE L*a*b* of the illuminant D65."""
    r, g, b = (linear(int(colour[i:i + 2], 16) / 255) for i in (1, 3, 5))
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    xyz = ((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, y, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089)
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return y, (116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz))


class Report(Recorded):
    def page(self, *places):
        done = orrery("report", *places)
        self.assertEqual((done.code, done.err), (0, ""))
        return done.out

    def test_every_number_is_there(self):
        self.run_text(SCRIPT)
        shown = charts(self.page(self.place))
        for name, place in (("place", self.place), ("place/critic", self.place / "critic")):
            recorded = numbers(place)
            self.assertEqual({tag for tag in shown if name in shown[tag]}, set(recorded))
            for tag, values in recorded.items():
                for (step, value), (at, drawn) in zip(values, shown[tag][name], strict=True):
                    self.assertEqual(step, at)
                    self.assertTrue(math.isclose(value, drawn, rel_tol=1e-8), (tag, value, drawn))
        self.assertLessEqual({"loss", "valid/accuracy", "valid/f1", "eval/loss", "seconds", "arena_bytes", "data_seconds"},
                             {tag for tag in shown if "place" in shown[tag]})
        self.assertEqual([step for step, _ in shown["penalty"]["place/critic"]], [1, 2, 3, 4, 5])
        self.assertEqual(list(shown)[0], "loss")

    def test_hundreds_of_names(self):
        names = [f"part{i}/weight" for i in range(300)] + ["</script><b>", 'a "quote"', "größe"]
        written(self.place, [{name: i + k for i, name in enumerate(names)} for k in range(3)])
        page = self.page(self.place)
        shown = charts(page)
        self.assertEqual(set(shown), set(names))
        self.assertEqual(shown["</script><b>"]["place"], [(1, 300), (2, 301), (3, 302)])
        self.assertNotIn("</script><b>", page)
        top = orrery("top", "--once", self.place).out
        for i in range(300):
            self.assertIn(f"\npart{i}/weight ", top)

    def test_what_stands_for_a_long_line(self):
        values = [math.sin(i / 500) for i in range(10000)]
        values[4321], values[7777], values[9000] = 50, -50, None
        written(self.place, [{"wave": value} for value in values])
        [line] = embedded(self.page(self.place))["charts"][0]["lines"]
        points = list(zip(line["steps"], line["values"], strict=True))
        self.assertLess(len(points), 2100)
        self.assertGreater(len(points), 1000)
        self.assertEqual([step for step, _ in points], sorted({step for step, _ in points}))
        for step, value in points:
            self.assertTrue(value is values[step - 1] or math.isclose(value, values[step - 1], rel_tol=1e-8, abs_tol=1e-12))
        self.assertLessEqual({(4322, 50), (7778, -50), (9001, None), (1, 0)}, set(points))
        self.assertEqual(points[-1][0], 10000)
        self.assertEqual([time + 1 for time in line["times"]], line["steps"])  # since the first
        means = line["means"]["values"]
        whole = sum(value for value in values if value is not None) / 9999
        self.assertAlmostEqual(sum(means) / len(means), whole, places=3)

    def test_times_and_samples(self):
        # 4 samples in each of three steps, then two steps that are not recorded, then 6 in each.
        lines = [{"step": step, "samples_per_second": size / 2, "seconds": 2, "time": 1000 + 3 * step}
                 for step, size in ((1, 4), (2, 4), (3, 4), (6, 6), (7, 6))]
        written(self.place, lines, [("run/begin", 1001)])
        data = embedded(self.page(self.place))
        self.assertEqual(data["runs"][0]["samples"], [[0, 0], [3, 12], [7, 36]])
        self.assertEqual(data["charts"][0]["lines"][0]["times"], [2, 5, 8, 17, 20])
        written(self.root / "other", [{"loss": 1}])
        self.assertIsNone(embedded(self.page(self.root / "other"))["runs"][0]["samples"])

    def test_names_and_states(self):
        ends = {"a/gpt": ([("run/status", "finished")], "finished"), "b/gpt": ([("run/status", "failed"), ("run/error", "x.lua:3: <no>")],
                "failed: x.lua:3: <no>"), "b/deep/gpt": ([("run/status", "stopped")], "stopped and saved"),
                "c": ([("run/locked", 1)], "lost without a word")}
        for name, (facts, _) in ends.items():
            written(self.root / name, [{"loss": 2.5}, {"loss": None}], facts)
        page = self.page(*(self.root / name for name in ends))
        self.assertEqual([run["name"] for run in embedded(page)["runs"]], list(ends))
        for name, (_, state) in ends.items():
            escaped = state.replace("<", "&lt;").replace(">", "&gt;")
            self.assertRegex(page, rf'<td>{name}</td><td class="{state.split(":")[0].split()[0]}">{re.escape(escaped)}')
        self.assertEqual([run["name"] for run in embedded(self.page(self.root / "b/gpt", self.root / "b/deep/gpt"))["runs"]],
                         ["gpt", "deep/gpt"])

    def test_twenty_colours_are_told_apart(self):
        written(self.place, [{"loss": 1}])
        style = re.search(r"<style>(.*?)</style>", self.page(self.place), re.DOTALL).group(1)
        backs, all_colours = re.findall(r"--back: (#\w{6})", style), re.findall(r"--r\d+: (#\w{6})", style)
        self.assertEqual((len(backs), len(all_colours)), (2, 40))
        for back, colours in zip(backs, (all_colours[:20], all_colours[20:])):
            behind, _ = luminance_and_lab(back)
            seen = [luminance_and_lab(colour) for colour in colours]
            for (light, _), colour in zip(seen, colours):
                bright, dark = max(light, behind), min(light, behind)
                self.assertGreaterEqual((bright + 0.05) / (dark + 0.05), 2.99, colour)
            for (i, (_, one)), (k, (_, two)) in itertools.combinations(enumerate(seen), 2):
                self.assertGreater(math.dist(one, two), 20, (colours[i], colours[k]))


@unittest.skipUnless(shutil.which("chromium"), "there is no chromium here")
class InABrowser(Recorded):
    def asked(self, page, name, width=1280, height=900):
        """What tests/cli/NAME finds in the page, as a browser runs it; its script must not fail."""
        probe = (HERE / name).read_text()
        path = self.root / "shown.html"
        head = "<script>const failures = []; addEventListener('error', e => failures.push(e.message));</script></head>"
        path.write_text(page.replace("</head>", head, 1).replace("</body>", f"<script>{probe}</script></body>"))
        # Chromium may dump the page before the probe has looked at it, on a busy machine: it is asked again.
        for _ in range(4):
            done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.root}/browser",
                                   f"--window-size={width},{height}", "--virtual-time-budget=20000", "--dump-dom",
                                   path.as_uri()], capture_output=True, text=True, timeout=100)
            found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
            if found:
                break
        self.assertTrue(found, done.stdout[-2000:] + done.stderr[-2000:])
        return json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))

    def runs(self, count, steps=400):
        for k in range(count):
            lines = [{"loss": (2 + k) * math.exp(-i / 100), "rate": 10 ** -(i / 100), "seconds": 0.1, "samples_per_second": 320,
                      "arena_bytes": 50 << 20, "a/long name/of a number that a script records/at each step": i * k} for i in range(steps)]
            lines[steps // 2]["loss"] = None
            written(self.root / f"runs/lr={k}", lines, [("run/begin", 100), ("run/status", "finished")])
        return [self.root / f"runs/lr={k}" for k in range(count)]

    def test_all_is_drawn_and_nothing_overlaps(self):
        for count, width in ((1, 1280), (8, 1280), (8, 420), (24, 1280)):
            with self.subTest(count=count, width=width):
                shutil.rmtree(self.root / "runs", ignore_errors=True)
                found = self.asked(orrery("report", *self.runs(count)).out, "report_drawn.js", width, 4000)
                self.assertEqual(found["failures"], [])
                self.assertEqual(found["overlaps"], [])
                self.assertEqual({chart["title"]: chart["lines"] for chart in found["charts"]},
                                 {chart["title"]: count for chart in found["charts"]})
                self.assertEqual(len(found["charts"]), 6)
                [loss] = [chart for chart in found["charts"] if chart["title"] == "Loss"]
                self.assertEqual((loss["crosses"], loss["pieces"]), (count, 2 * count))
                self.assertEqual(found["legend"], [f"lr={k}" for k in range(count)])
                for chart in found["charts"]:
                    self.assertEqual(len(chart["ticks"]), len(set(chart["ticks"])), chart)

    def test_controls_and_pointer(self):
        found = self.asked(orrery("report", *self.runs(3)).out, "report_controls.js")
        self.assertEqual(found["failures"], [])
        self.assertEqual(found["step"][-1], "400")
        self.assertEqual(found["time"][-1], "6m")
        self.assertEqual(found["samples"][-1], "12k")
        self.assertEqual(found["powers"], ["0.001", "0.01", "0.1", "1"])
        self.assertTrue(found["smoothed"])
        self.assertEqual(found["hidden"], 2)
        self.assertEqual(found["filtered"], ["rate"])
        low, high = found["zoomed"]
        self.assertTrue(90 < low < high < 310, found["zoomed"])
        self.assertEqual(found["others"], found["zoomed"])
        self.assertEqual(found["whole"], [1, 400])
        step, *values = found["tip"]
        self.assertEqual(len(values), 3)
        for k, value in enumerate(reversed(values)):
            self.assertAlmostEqual(value, (2 + k) * math.exp(-(step - 1) / 100), places=4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
