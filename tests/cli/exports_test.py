# SPDX-License-Identifier: Apache-2.0
"""The observers that write for other programs (Prometheus, MLflow, Weights & Biases, TensorBoard's hyperparameters) and the
one that runs a command: their files by the formats' definitions, on one and three ranks. ./scripts/test-foreign exports_read
has these programs read them.

Arguments: the build tree.
"""
import collections
import hashlib
import json
import pathlib
import re
import shutil
import struct
import sys
import unittest
import zlib

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("e2e", "observer")]
import exported  # noqa: E402
from event_records import fields, records  # noqa: E402
from program import orrery  # noqa: E402
from recorded import Recorded  # noqa: E402

SAMPLE = re.compile(r'(\w+)\{run="([^"]*)"(?:,name="((?:[^"\\]|\\.)*)")?\} (\S+)')


def prometheus(path):
    """{(family, run, name): value} of a file in text format, each family with its type."""
    found, typed = {}, set()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            typed |= set(re.findall(r"# TYPE (\w+) gauge$", line))
            continue
        family, run, name, value = SAMPLE.fullmatch(line).groups()
        assert family in typed, line
        found[family, run, name] = float(value)
    return found


def chunks(data):
    """The records of a file of W&B."""
    assert data[:7] == struct.pack("<4sHB", b":W&B", 0xBEE1, 0)
    at, whole, out = 7, b"", []
    while at < len(data):
        if 32768 - at % 32768 < 7:
            assert not any(data[at:at + 32768 - at % 32768])
            at += 32768 - at % 32768
            continue
        crc, size, kind = struct.unpack("<IHB", data[at:at + 7])
        part = data[at + 7:at + 7 + size]
        assert len(part) == size and crc == zlib.crc32(bytes([kind]) + part), at
        assert kind in ((1, 2) if not whole else (3, 4)), (at, kind)
        whole, at = whole + part, at + 7 + size
        if kind in (1, 4):
            out.append(whole)
            whole = b""
    assert not whole
    return out


def items(message, field):
    """{name: value} of the items of a history, a summary or a configuration."""
    found = {}
    for number, value in fields(message):
        if number == 1:
            one = dict(fields(value))
            found[one[field].decode()] = json.loads(one[16])
    return found


def wandb(path):
    """(run, configuration, {name: [(step, value)]}, summary, exit code) of an offline run."""
    run, config, series, summary, code = None, {}, collections.defaultdict(list), {}, None
    for i, record in enumerate(chunks(path.read_bytes()), 1):
        entry = dict(fields(record))
        assert entry[1] == i
        if 17 in entry:
            run = {number: value for number, value in fields(entry[17]) if number != 4}
            config |= items(dict(fields(entry[17])).get(4, b""), 1)
        if 5 in entry:
            config |= items(entry[5], 1)
        if 2 in entry:
            row = items(entry[2], 2)
            assert row["_step"] == dict(fields(dict(fields(entry[2]))[2]))[1]
            for name, value in row.items():
                series[name].append((row["_step"], value))
        if 3 in entry:
            summary = items(entry[3], 2)
        if 18 in entry:
            code = dict(fields(entry[18])).get(1, 0)
    return run, config, series, summary, code


class Exports(Recorded):
    head = exported.SCRIPT

    def start(self, exports, ranks=1, fail=False):
        self.script.write_text(exported.SCRIPT, encoding="utf-8")
        shutil.rmtree(self.place, ignore_errors=True)
        done = orrery("run", "-n", ranks, *exported.words(self.place, exports), self.script, *exported.given(fail))
        self.assertEqual(done.code, int(fail), done.err)
        return done

    def test_prometheus(self):
        for ranks in (1, 3):
            path = self.root / f"all{ranks}.prom"
            self.start({"prometheus": path}, ranks)
            place = str(self.place)
            found = prometheus(path)
            for name, values in (exported.OWN | {"learning_rate": [(5, 0.05)]}).items():
                value = found["orrery_metric", place, name]
                self.assertTrue(exported.same(value, values[-1][1]) or abs(value - values[-1][1]) < 1e-7, name)
            self.assertEqual((found["orrery_step", place, None], found["orrery_running", place, None]), (5, 0))
            critic = prometheus(self.root / f"all{ranks}-critic.prom")
            self.assertEqual(critic["orrery_metric", f"{place}/critic", "penalty"], 0.625)
            self.assertEqual(critic["orrery_running", f"{place}/critic", None], 0)
            self.assertEqual(sorted(path.name for path in self.root.glob("all*")), sorted(
                f"all{n}{more}.prom" for n in (1, 3)[:ranks] for more in ("", "-critic") if n <= ranks))

    def test_mlflow(self):
        for fail, status in ((False, "3"), (True, "4")):
            store = self.root / f"store {fail}"
            self.start({"mlflow": store}, 3, fail)
            runs = {}
            for path in (store / "0").glob("*/meta.yaml"):
                meta = dict(line.split(": ", 1) for line in path.read_text().splitlines())
                self.assertEqual((json.loads(meta["run_id"]), meta["status"]), (path.parent.name, status))
                self.assertLessEqual(int(meta["start_time"]), int(meta["end_time"]))
                runs[json.loads(meta["run_name"])] = path.parent
            self.assertEqual(set(runs), {"place", "critic"})
            for name, own in (("place", exported.OWN), ("critic", exported.CRITIC)):
                series = {}
                for path in (runs[name] / "metrics").rglob("*"):
                    if path.is_file():
                        lines = [line.split(" ") for line in path.read_text().splitlines()]
                        series[str(path.relative_to(runs[name] / "metrics"))] = [(int(s), float(v)) for _, v, s in lines]
                exported.check(series, own)
                params = {path.name: path.read_text() for path in (runs[name] / "params").iterdir()}
                self.assertEqual(params, exported.ARGUMENTS | {"fail": str(fail).lower()})

    def test_a_name_that_mlflow_has_no_room_for(self):
        done = self.run_text("""
local function other() orrery.record("a", 1, { step = 1 }) orrery.record("a/b", 2, { step = 1 }) end
other() other()
orrery.record("../up", 3, { step = 1 })
orrery.record("half", 4, { step = 1 })
""".replace("step = 1", "step = 6"), "--observe", f"mlflow={self.root}/store")
        self.assertEqual(done.err.count("observer mlflow: "), 1, done.err)
        [place] = [path.parent for path in (self.root / "store/0").glob("*/metrics/half")]
        names = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
        self.assertLessEqual({"a", "_/up", "half"}, names)

    def test_wandb(self):
        for fail in (False, True):
            self.start({"wandb": "my project"}, 1 if fail else 3, fail)
            for place, own in ((self.place, exported.OWN), (self.place / "critic", exported.CRITIC)):
                [path] = (place / "wandb").glob("offline-run-*/run-*.wandb")
                run, config, series, summary, code = wandb(path)
                self.assertEqual((run[1].decode(), run[3], run[8].decode()), (path.stem[4:], b"my project", place.name))
                self.assertEqual(config, {"lr": 0.05, "layers": 3, "note": exported.ARGUMENTS["note"], "deep": True, "fail": fail})
                exported.check(series, own)
                for name, values in own.items():
                    self.assertTrue(exported.same(summary[name], values[-1][1]))
                self.assertEqual(code, int(fail))

    def test_records_of_wandb_across_blocks(self):
        self.run_text("for step = 7, 400 do\n  local many = {}\n  for i = 1, 30 do many['number ' .. i] = step * i end\n"
                      "  orrery.record('many', many, { step = step })\nend\n"
                      "local big = {}\nfor i = 1, 4000 do big['big number ' .. i] = i end orrery.record('big', big, { step = 500 })\n",
                      "--observe", "wandb=p")
        [path] = (self.place / "wandb").glob("offline-run-*/run-*.wandb")
        self.assertGreater(path.stat().st_size, 10 * 32768)
        series = wandb(path)[2]
        for i in range(1, 31):
            self.assertEqual(series[f"many/number {i}"], [(step, step * i) for step in range(7, 401)])
        for i in range(1, 4001):
            self.assertEqual(series[f"big/big number {i}"], [(500, i)])

    def test_images_histograms_and_texts(self):
        self.run_text("""
orrery.record("shown/grey", orrery.tensor { { 0.0, 1.0 }, { 0.5, 0.25 } }, { step = 6 })
orrery.record("../spread", orrery.tensor { 0.0, 1.0, 1.0, 60.0 }, { step = 6, as = "histogram" })
orrery.record("said", 'a "text"', { step = 6 })
""", "--observe", f"mlflow={self.root}/store", "--observe", "wandb=p", ranks=3)
        [run] = [path.parents[2] for path in (self.root / "store/0").glob("*/artifacts/images/*")]
        [image] = (run / "artifacts/images").iterdir()
        self.assertRegex(image.name, r"^shown~grey\+step\+6\+timestamp\+\d+\+[0-9a-f]{32}\.png$")
        self.assertEqual((run / "tags/mlflow.loggedImages").read_text(), "True")
        histogram = json.loads((run / "artifacts/histograms/_/spread/6.json").read_text())
        counts, edges = [3] + 28 * [0] + [1], [2 * i for i in range(31)]
        self.assertEqual(histogram, {"values": counts, "bins": edges})
        self.assertEqual((run / "artifacts/texts/said/6.txt").read_text(), 'a "text"')

        [path] = (self.place / "wandb").glob("offline-run-*/run-*.wandb")
        _, _, series, summary, _ = wandb(path)
        [(_, told)] = series["shown/grey"]
        png = (path.parent / "files" / told["path"]).read_bytes()
        self.assertEqual(png, image.read_bytes())
        self.assertEqual((png[:4], struct.unpack(">II", png[16:24])), (b"\x89PNG", (2, 2)))
        sha256 = hashlib.sha256(png).hexdigest()
        self.assertEqual(told, {"_type": "image-file", "format": "png", "size": len(png), "width": 2, "height": 2, "sha256": sha256,
                                "path": f"media/images/shown/grey_6_{sha256[:20]}.png"})
        uploads = [dict(fields(dict(fields(entry[6]))[1])) for entry in map(dict, map(fields, chunks(path.read_bytes()))) if 6 in entry]
        self.assertEqual(uploads, [{1: told["path"].encode(), 3: 3}])
        self.assertEqual(series["../spread"], [(6, {"_type": "histogram", "values": counts, "bins": edges})])
        self.assertEqual(series["said"], [(6, 'a "text"')])
        self.assertEqual(summary["said"], 'a "text"')

    def test_hyperparameters_of_tensorboard(self):
        for fail in (False, True):
            self.start({}, 1, fail)
            infos = {}
            for path in self.place.glob("events.out.tfevents.*"):
                for event in map(dict, map(fields, records(path.read_bytes()))):
                    value = dict(fields(dict(fields(event[5]))[1])) if 5 in event else {}
                    if b"hparams" in value.get(9, b""):
                        named = dict(fields(dict(fields(value[9]))[1]))
                        self.assertEqual(named[1], b"hparams")
                        infos[value[1].decode()] = dict(fields(named[2]))
            self.assertEqual(set(infos), {"_hparams_/session_start_info", "_hparams_/session_end_info"})
            found = {}
            for number, value in fields(infos["_hparams_/session_start_info"][3]):
                if number == 1:
                    entry = dict(fields(value))
                    [(kind, given)] = fields(entry[2])
                    found[entry[1].decode()] = {2: lambda x: x, 3: bytes.decode, 4: bool}[kind](given)
            self.assertEqual(found, {"lr": 0.05, "layers": 3, "note": exported.ARGUMENTS["note"], "deep": True, "fail": fail})
            self.assertEqual(dict(fields(infos["_hparams_/session_end_info"][4]))[1], 1 + fail)

    def test_a_command(self):
        told = self.root / "told"
        command = f'printf "%s|%s|%s|%s\\n" "$ORRERY_EVENT" "$ORRERY_TEXT" "$ORRERY_STEP" "$ORRERY_DIRECTORY" >> {told}'
        for ranks, fail in ((1, False), (3, True)):
            told.unlink(missing_ok=True)
            self.start({"notify": command}, ranks, fail)
            lines = [line.split("|") for line in told.read_text().splitlines()]
            expected = [["nan", "odd", "2", str(self.place)], ["end", "failed" if fail else "finished", "5", str(self.place)]]
            if fail:
                failure = [line for line in lines if line[0] == "failure"]
                self.assertEqual(len(failure), 1, lines)
                self.assertIn("asked to fail", failure[0][1])
                lines.remove(failure[0])
            self.assertEqual(sorted(lines), sorted(expected))

    def test_a_command_that_fails_or_hangs_stops_nothing(self):
        done = self.start({"notify": "exit 7"})
        self.assertEqual(done.err.count("observer notify: the command ended with exit code 7: exit 7; the run goes on"), 1, done.err)
        done = self.start({"notify": '[ "$ORRERY_EVENT" = nan ] && exec sleep 60'})
        self.assertIn("observer notify: a command goes on after the end of the run", done.err)

    def test_what_cannot_be_written(self):
        (self.root / "file").write_text("")
        for name, value, why in (("prometheus", "all.txt", "write the path of a file that ends in .prom"),
                                 ("prometheus", "/nowhere/all.prom", "cannot open /nowhere/all.prom.part"),
                                 ("mlflow", f"{self.root}/file", "cannot make"), ("wandb", "a/b", "a project's name has none of"),):
            self.script.write_text(exported.SCRIPT, encoding="utf-8")
            done = orrery("run", "--dir", self.place, "--observe", f"{name}={value}", self.script)
            self.assertEqual((done.code, done.out), (1, ""), done.err)
            self.assertIn(why, done.err)
            self.assertEqual(done.err.count("error: "), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
