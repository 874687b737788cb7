# SPDX-License-Identifier: Apache-2.0
"""When ranks do not meet, each that is left writes its last exchanges to the run's directory: the one that a frozen
rank did not come to, and those in which ranks differ.

Arguments: the build tree.
"""
import json
import pathlib
import sys
import tempfile
import unittest

from program import HERE, orrery

KEPT = 256


class Exchanges(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_job(self, *words, ranks=4, **options):
        job = orrery("run", "-n", ranks, "--threads", 1, "--dir", self.folder / "run", *words, ORRERY_DEADLINE="1",
                     **options)
        files = {int(p.name.split(".")[1]): json.loads(p.read_text()) for p in (self.folder / "run").glob("exchanges.*")}
        return job, files

    def frozen(self, stack, ranks=4):
        return self.run_job(HERE / "restarts.lua", f"folder={self.folder}", f"stack={stack}", "blows=STOP 1 40",
                            ranks=ranks)

    def test_a_frozen_rank_did_not_come_to_an_exchange(self):
        job, files = self.frozen("data")
        self.assertEqual(job.code, 124, job.err)
        self.assertEqual(sorted(files), [0, 2, 3])
        last = {rank: file["exchanges"][-1] for rank, file in files.items()}
        for rank, file in files.items():
            self.assertEqual((file["rank"], file["ranks"]), (rank, 4))
            self.assertEqual(len(file["exchanges"]), KEPT)
            self.assertTrue(all(e["end"] >= e["begin"] for e in file["exchanges"][:-1]))
            self.assertIsNone(last[rank]["end"])
            for key in ("sequence", "op", "name", "where", "among"):
                self.assertEqual(last[rank][key], last[0][key])
            named = f"rank 1 has not answered for 1 s in {last[0]['op']} '{last[0]['name']}' ({last[0]['where']})"
            self.assertIn(named, file["error"])
            self.assertIn("restarts.lua:", last[rank]["where"])
        self.assertIn(named, job.err.splitlines()[-1])

    def test_under_a_pipeline_the_ranks_of_a_message_are_named(self):
        _, files = self.frozen("pipeline", ranks=2)
        self.assertIn(("send", "rank 0 to rank 1"), {(e["op"], e["among"]) for e in files[0]["exchanges"]})

    def test_ranks_that_part_ways(self):
        job, files = self.run_job("parts_ways.lua", ranks=3, cwd=HERE / "bad")
        self.assertEqual(job.code, 1, job.err)
        self.assertIn("rank 0 allreduce of f32[8,2], op sum (parts_ways.lua:12); rank 1 barrier (parts_ways.lua:10)", job.err)
        self.assertEqual(sorted(files), [0, 1, 2])
        calls = {rank: [e["where"] for e in file["exchanges"] if e["name"] == "agreement"][-1] for rank, file in files.items()}
        self.assertTrue(calls[1].startswith("parts_ways.lua:10"), calls)
        self.assertTrue(calls[0] == calls[2] and calls[0].startswith("parts_ways.lua:12"), calls)

    def test_other_ends_write_none(self):
        job, files = self.run_job(HERE / "restarts.lua", f"folder={self.folder}", "steps=9", ranks=2)
        self.assertEqual((job.code, files), (0, {}), job.err)
        job, files = self.run_job(HERE / "restarts.lua", f"folder={self.folder}", "stack=nothing", ranks=2)
        self.assertEqual((job.code, files), (1, {}), job.err)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main()
