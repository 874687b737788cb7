# SPDX-License-Identifier: Apache-2.0
"""What the observers write into a run's directory, and what `orrery top` and `orrery report` make of it.

Arguments: the build tree.
"""
import collections
import csv
import html.parser
import json
import math
import pathlib
import struct
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("e2e", "observer")]
import trace_rules  # noqa: E402
from event_records import crc32c, fields, masked, records  # noqa: E402
from program import SOURCE, orrery  # noqa: E402
from recorded import charts  # noqa: E402

GPT = SOURCE / "examples/gpt.lua"
SMALL = ("steps=8", "layers=1")


class Page(html.parser.HTMLParser):
    """Whether the elements of a page are closed in order, and which there are."""
    EMPTY = {"meta", "line", "rect", "path", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], collections.Counter(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += attrs
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open[-1:] != [tag]:
            raise AssertionError(f"</{tag}> ends {self.open[-3:]}")
        self.open.pop()

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_data(self, data):
        self.words.append(data)


class Watch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.one, cls.two = cls.root / "one", cls.root / "two"
        text = cls.root / "text"  # not the sources, whose figures change with every commit
        text.write_text("".join(f"local {i * i} squared\n" for i in range(2000)))
        first = orrery("run", "--dir", cls.one, "--observe", "tensorboard=histograms:4", GPT, *SMALL, f"data={text}")
        second = orrery("run", "-n", "2", "--dir", cls.two, "--observe", "trace=2:4", SOURCE / "examples/pipeline.lua", "steps=6")
        assert (first.code, second.code) == (0, 0), first.err + second.err
        cls.lines = [json.loads(line) for line in (cls.one / "metrics.jsonl").read_text().splitlines()]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def tags(self):
        return {tag: [line[tag] for line in self.lines if tag in line]
                for tag in {key for line in self.lines for key in line} - {"step", "time"}}

    def test_every_step_tells_how_the_run_goes(self):
        tags = self.tags()
        for tag in ("loss", "grad_norm", "learning_rate", "samples_per_second", "tokens_per_second", "mfu", "resident_bytes",
                    "seconds", "arena_bytes"):
            self.assertEqual(len(tags[tag]), 8, tag)
            self.assertTrue(all(value > 0 for value in tags[tag]), tag)
        for rate, samples, seconds in zip(tags["tokens_per_second"], tags["samples_per_second"], tags["seconds"]):
            self.assertAlmostEqual(rate, 64 * samples, delta=1e-6 * rate)
            self.assertAlmostEqual(samples * seconds, 12, delta=0.1)

    def test_tokens_are_counted_of_text_alone(self):
        """Batches of six samples by their fields: a dtype and the dims of a sample."""
        images, ids, rows = "f32 {3,4,4}", "i32 {5}", "f32 {2,7}"
        cases = ({"x": ids, "y": ids}, {"text": ids}, {"x": ids, "y": ids, "h": rows}, {"x": ids, "read": "i64 {3}", "y": "i64 {3}"},
                 {"x": images, "ids": ids}, {"x": images, "y": "i32 {}"}, {"edges": "i32 {2}", "y": "i32 {}"}, {"x": rows, "y": "i32 {1}"},
                 {"ids": ids, "y": "i32 {}"}, {"x": rows, "y": rows}, {"text": "i64 {1}"})
        tokens = (30, 30, 30, 18) + 7 * (None,)
        script = self.root / "rates.lua"
        script.write_text("""local orrery = require "orrery"
local weight = orrery.parameter({}, { init = 1 })
for i, fields in ipairs(%s) do
  local run = orrery.compile(function(batch)
    local sum = 0
    for name in pairs(fields) do sum = sum + batch[name]:cast("f32"):mean() end
    return sum * weight
  end, { params = { weight }, optimizer = orrery.optim.sgd {}, microbatches = 2, name = "case" .. i })
  local batch = {}
  for name, type in pairs(fields) do
    local dims = { 6 }
    for dim in type:gmatch "[{,](%%d+)" do dims[#dims + 1] = math.tointeger(dim) end
    batch[name] = orrery.func(function() return orrery.zeros(dims, type:match "%%w+") end)()
  end
  run:step(batch)
end
""" % ("{" + ",".join("{" + ",".join(f"{name} = '{kind}'" for name, kind in case.items()) + "}" for case in cases) + "}"))
        for ranks in (1, 2):
            done = orrery("run", "-n", ranks, "--dir", self.root / f"rates{ranks}", script)
            self.assertEqual(done.code, 0, done.err)
            for i, (case, wanted) in enumerate(zip(cases, tokens), 1):
                with self.subTest(case=case, ranks=ranks):
                    line = {}
                    for part in (self.root / f"rates{ranks}/case{i}/metrics.jsonl").read_text().splitlines():
                        line |= json.loads(part)
                    self.assertAlmostEqual(line["samples_per_second"] * line["seconds"], 6, delta=0.05)
                    self.assertEqual("tokens_per_second" in line, wanted is not None)
                    if wanted:
                        self.assertAlmostEqual(line["tokens_per_second"] / line["samples_per_second"], wanted / 6, delta=1e-6)

    def test_the_table_has_the_same_numbers(self):
        with open(self.one / "metrics.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        lines = [(line["step"], tag, value) for line in self.lines for tag, value in line.items() if tag not in ("step", "time")]
        self.assertEqual([(int(r["step"]), r["name"], float(r["value"])) for r in rows], lines)

    def test_the_event_file(self):
        self.assertEqual((crc32c(b"123456789"), masked(struct.pack("<Q", 24))), (0xE3069283, 0x224B7FA3))
        [path] = self.one.glob("events.out.tfevents.*")
        events = [dict(fields(record)) for record in records(path.read_bytes())]
        self.assertEqual(events[0][3], b"brain.Event:2")
        self.assertEqual((events[1][2], dict(fields(events[1][7]))), (1, {1: 1}))  # SessionLog START
        losses, histograms, texts = {}, {}, []
        for event in events[2:]:
            value = dict(fields(dict(fields(event[5]))[1]))
            if value[1] == b"loss":
                losses[event[2]] = value[2]
            plugin = dict(fields(dict(fields(value[9]))[1]))[1] if 9 in value else b""
            if plugin == b"histograms":
                histograms[event[2], value[1]] = struct.iter_unpack("<3d", dict(fields(value[8]))[4])
            if plugin == b"text":
                texts.append(dict(fields(value[8]))[8].decode())
        expected = [struct.unpack("<f", struct.pack("<f", loss))[0] for loss in self.tags()["loss"]]
        self.assertEqual([losses[step] for step in range(1, 9)], expected)
        self.assertIn("config/layers | 1\n", texts[-1])
        self.assertEqual({step for step, _ in histograms}, {4, 8})
        drawn = {tag.decode(): list(rows) for (step, tag), rows in histograms.items() if step == 4}
        gradients = {tag: drawn.pop(tag) for tag in list(drawn) if tag.startswith("grad ")}
        self.assertEqual({tag.removeprefix("grad ") for tag in gradients}, set(drawn))
        for tag, rows in gradients.items():
            self.assertEqual(sum(count for *_, count in rows), sum(c for *_, c in drawn[tag.removeprefix("grad ")]), tag)
        # The squares of the numbers in the buckets add up to that of the norm.
        buckets = [row for rows in gradients.values() for row in rows]
        least = sum(count * (0 if low < 0 < high else min(low * low, high * high)) for low, high, count in buckets)
        most = sum(count * max(low * low, high * high) for low, high, count in buckets)
        square = self.tags()["grad_norm"][3] ** 2
        self.assertTrue(least * (1 - 1e-6) <= square <= most * (1 + 1e-6), (least, square, most))
        middle = sum(count * ((low + high) / 2) ** 2 for low, high, count in buckets)
        self.assertAlmostEqual((middle / square) ** 0.5, 1, delta=0.1)
        elements = sum(count for rows in drawn.values() for _, _, count in rows)
        facts = {line["name"]: line["value"] for line in map(json.loads, (self.one / "facts.0.jsonl").read_text().splitlines())}
        self.assertEqual(elements, facts["run/parameters"])

    def test_the_trace(self):
        trace = json.loads((self.two / "trace.json").read_text())
        self.assertEqual(trace_rules.check(trace), [])
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        self.assertEqual({e["args"]["step"] for e in spans}, {2, 3, 4})
        self.assertEqual({e["pid"] for e in spans}, {0, 1})
        arrows = [e for e in trace["traceEvents"] if e["ph"] == "s"]
        # Two ranks of a pipeline: each microbatch goes forward and back, in each of three steps.
        self.assertGreaterEqual(len(arrows), 3 * 2 * 8)
        levels = [e["args"]["bytes"] for e in trace["traceEvents"] if e["ph"] == "C" and e["pid"] == 0]
        self.assertTrue(levels and min(levels) >= 0)

    def test_top_prints_one_screen_and_draws_it(self):
        picture = self.root / "top.svg"
        done = orrery("top", "--once", "--svg", picture, self.two)
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertIn("step 6/6", done.out)
        for word in ("loss", "tokens/s", "grad norm", "share of the time", "activation"):
            self.assertIn(word, done.out)
        self.assertNotIn("\033", done.out)
        text = "".join(xml.etree.ElementTree.parse(picture).getroot().itertext())
        self.assertIn("step 6/6", text)

    def test_the_report_is_one_whole_page(self):
        page = self.root / "page.html"
        done = orrery("report", "-o", page, self.one, self.two)
        self.assertEqual((done.code, done.err), (0, ""))
        text = page.read_text()
        read = Page(text)
        self.assertEqual(read.open, [])
        self.assertGreaterEqual(read.tags["svg"], 3)
        self.assertEqual(read.tags["link"] + read.tags["img"], 0)
        self.assertEqual([a for a in read.attributes if a[0] in ("src", "href")], [])
        self.assertNotRegex(text, "https?://")
        for word in ("Time by op", "Time by exchange", "bubble", "Plan beside what was counted", "matmul"):
            self.assertIn(word, text)
        self.assertEqual(orrery("report", self.one, self.two).out, text)
        self.assertIn('class="differs"><td>config/layers', text)

    def test_what_is_wrong_is_said(self):
        for words, sentence in ((("top", "--once", self.root), "there is no metrics.jsonl"),
                                (("report", self.one, "/nowhere"), "/nowhere: there is no metrics.jsonl"),
                                (("report", "-o", "/nowhere/x.html", self.one), "-o /nowhere/x.html: cannot write it"),
                                (("run", "--observe", "trase=1:2", GPT), "did you mean 'trace'?"),
                                (("run", "--observe", "trace", GPT), "write NAME=OPTIONS"),
                                (("run", "--dir", self.root / "x", "--observe", "trace=5:2", GPT, "steps=1"), "the last step comes after"),
                                (("run", "--dir", self.root / "x", "--observe", "tensorboard=every", GPT, "steps=1"),
                                 "write histograms:STEPS")):
            with self.subTest(words=words):
                done = orrery(*words)
                self.assertNotEqual(done.code, 0)
                self.assertIn(sentence, done.err)
        broken = self.root / "broken"
        broken.mkdir()
        (broken / "metrics.jsonl").write_text('{"step":1,"time":2,"loss":3}\n{"step":2,"ti\n')
        done = orrery("top", "--once", broken)
        self.assertEqual(done.code, 2)
        self.assertIn("metrics.jsonl: line 2: no JSON at byte", done.err)

    def test_observers_can_be_left_out_and_change_no_bit(self):
        off = [word for name in ("trace", "csv", "tensorboard", "metrics") for word in ("--observe", f"{name}=off")]
        bare = orrery("run", "--dir", self.root / "bare", *off, GPT, *SMALL)
        watched = orrery("run", "--dir", self.root / "all", "--observe", "trace=1:8", GPT, *SMALL)
        self.assertEqual(list((self.root / "bare").iterdir()), [])
        digest = [line for line in bare.out.splitlines() if line.startswith("digest")]
        self.assertTrue(digest)
        self.assertEqual(digest, [line for line in watched.out.splitlines() if line.startswith("digest")])

    def test_a_step_again_replaces_the_first(self):
        again = self.root / "again"
        again.mkdir()
        lines = [(1, 9.0), (2, 8.0), (3, 7.0), (2, 5.0), (3, math.nan)]
        (again / "metrics.jsonl").write_text("".join(
            f'{{"step":{step},"time":{i},"loss":{"null" if math.isnan(loss) else loss}}}\n' for i, (step, loss) in enumerate(lines)))
        done = orrery("top", "--once", again)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("loss        not finite  █▁!\n", done.out)
        page = orrery("report", again)
        self.assertEqual(page.code, 0, page.err)
        self.assertIn("<td class=\"n\">not finite</td>", page.out)
        self.assertEqual(charts(page.out)["loss"], {"again": [(1, 9), (2, 5), (3, None)]})

    def test_files_of_somebody_else(self):
        """Their names command no terminal, and brackets without end are refused at once."""
        foreign = self.root / "foreign"
        foreign.mkdir()
        (foreign / "metrics.jsonl").write_text('{"step":1,"time":1,"loss":2}\n')
        (foreign / "facts.0.jsonl").write_text('{"name":"plan/memory/\\u001b[31m\\u009b2J","value":1}\n')
        done = orrery("top", "--once", foreign)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("\n?[31m?2J ", done.out)
        (foreign / "trace.json").write_text("[" * 300000)
        done = orrery("top", "--once", foreign)
        self.assertEqual(done.code, 2)
        self.assertIn("trace.json: more than 100 tables inside of one another at byte 101", done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
