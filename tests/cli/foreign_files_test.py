# SPDX-License-Identifier: Apache-2.0
"""`orrery top` and `orrery report` on directories that several starts of a job, a killed one or other programs have
written: figures that are right, or one line that says what is wrong.

Arguments: the build tree.
"""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from program import orrery  # noqa: E402


class ForeignFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = pathlib.Path(folder.name) / "place"

    def test_the_time_left_after_steps_of_an_earlier_start(self):
        self.place.mkdir()
        lines = [f'{{"step":{step},"time":{step},"seconds":1}}' for step in range(1, 101)]
        lines += [f'{{"step":{step},"time":{1000 + 10 * (step - 100)},"seconds":10}}' for step in range(101, 111)]
        (self.place / "metrics.jsonl").write_text("\n".join(lines) + "\n")
        (self.place / "facts.0.jsonl").write_text('{"name":"run/begin","value":1000}\n{"name":"run/steps","value":200}\n')
        # 10 steps in 100 s, 90 are left.
        top = orrery("top", "--once", self.place)
        self.assertEqual(top.code, 0, top.err)
        self.assertIn("01:40 gone, 15:00 left", top.out)

    def test_files_of_others(self):
        self.place.mkdir()
        metric = '{"step":1,"time":2,"loss":3}\n'
        for name, text, word in (
                ("metrics.jsonl", "", None), ("metrics.jsonl", metric + '{"step":2,"ti', None),
                ("metrics.jsonl", metric + '{"msg":"hello"}\n', "line 2 is not of a run"),
                ("metrics.jsonl", metric + '{"step":"a","time":1,"loss":2}\n', "line 2 is not of a run"),
                ("metrics.jsonl", metric + '{"step":2,"time":1,"loss":[1]}\n', "line 2 is not of a run"),
                ("metrics.jsonl", metric + "12\n", "line 2 is not of a run"),
                ("metrics.jsonl", metric + "hello\n", "line 2: no JSON"), ("metrics.jsonl", "\x00\x01\n", "line 1: no JSON"),
                ("metrics.jsonl", "x" * 3_000_000, "line 1 is longer"),
                ("facts.0.jsonl", '{"name":1,"value":2}\n', "line 1 is not of a run"),
                ("facts.0.jsonl", '[]\n', "line 1 is not of a run"),
                ("facts.0.jsonl", '{"name":"plan/memory/a","value":"b"}\n{"name":"run/steps","value":"x"}\n'
                                  '{"name":"run/begin","value":true}\n{"name":"run/ranks","value":"many"}\n', None),
                ("trace.json", "[1,2]", None), ("trace.json", '{"traceEvents":{"a":1}}', None), ("trace.json", "7", None),
                ("trace.json", '{"traceEvents":[1,{"ph":"X"},{"ph":"X","name":"a","args":{},"pid":0,"tid":0,"ts":1,"dur":1}]}', None)):
            with self.subTest(name=name, text=text[:60]):
                for path in self.place.iterdir():
                    path.unlink()
                (self.place / "metrics.jsonl").write_text(metric)
                (self.place / name).write_text(text)
                for words in (("top", "--once"), ("report",)):
                    done = orrery(*words, self.place)
                    self.assertEqual(done.code, 2 if word else 0, done.err)
                    self.assertIn(word or "", done.err)
                    self.assertNotIn("attempt to", done.err)
                    self.assertLess(len(done.err), 500)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
