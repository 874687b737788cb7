# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in the format of another program, by a plugin: any ranks and stacks go on from one with the bits of the
run that was not interrupted, and what is damaged, missing or something else is one error.

Arguments: the build tree.
"""
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import unittest

import dcp_files
from program import BUILD, HERE, SOURCE, orrery

SCRIPT = HERE / "checkpoint_formats.lua"


def words(arguments):
    return [f"{name.rstrip('_')}={value}" for name, value in arguments.items()]


def line(mark):
    lines = SCRIPT.read_text().splitlines()
    return f"checkpoint_formats.lua:{1 + next(n for n, text in enumerate(lines) if text.endswith('-- ' + mark))}"


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1:]


class CheckpointFormats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = pathlib.Path(cls.folder.name)
        cls.saved, cls.own = cls.root / "saved", cls.root / "own"
        for at, form in ((cls.saved, "dcp"), (cls.own, "")):
            done = orrery("run", "-n", 2, SCRIPT, *words({"stack": "zero", "to": at, "format": form, "extra": "text"}))
            assert done.code == 0, done.err

    def run_script(self, ranks=1, **arguments):
        return orrery("run", "-n", ranks, SCRIPT, *words(arguments), ORRERY_DEADLINE="30")

    def ran(self, ranks=1, **arguments):
        done = self.run_script(ranks, **arguments)
        self.assertEqual(done.code, 0, done.err)
        return done.out

    def refused(self, *fragments, ranks=1, code=1, **arguments):
        done = self.run_script(ranks, **arguments)
        self.assertEqual(done.code, code, done.out + done.err)
        self.assertEqual(len(re.findall("(?m)^error", done.err)), 1, done.err)
        for text in fragments:
            self.assertIn(text, done.err)
        self.assertNotIn("digest", done.out)

    def copy(self):
        at = self.root / "copy"
        shutil.rmtree(at, ignore_errors=True)
        shutil.copytree(self.saved, at)
        return at

    def data_files(self, at):
        return sorted(at.glob("*/*.distcp"))

    def test_others_go_on_as_if_nothing_had_happened(self):
        straight = self.ran(steps=4)
        rest = straight.partition("step 3")
        for ranks, stack in ((1, "data"), (2, "pipeline"), (3, "zero")):
            with self.subTest(ranks=ranks, stack=stack):
                went_on = self.ran(ranks, stack=stack, from_=self.saved, steps=4)
                self.assertEqual(went_on, "from 2 'text'\n" + rest[1] + rest[2])
        tensor = {self.ran(2, stack="tensor", from_=at, steps=4) for at in (self.saved, self.own)}
        self.assertEqual(len(tensor), 1, tensor)

    def test_what_pickle_and_zipfile_read(self):
        weights, at = self.root / "weights.safetensors", self.root / "of_stack"
        of_one = None
        for ranks, stack in ((1, "data"), (2, "tensor"), (3, "zero"), (4, "both")):
            with self.subTest(ranks=ranks, stack=stack):
                self.ran(ranks, stack=stack, to=at, extra="é", weights=weights)
                found, expected = dcp_files.read(at), dcp_files.numbers_in(weights)
                of_one = of_one or found
                self.assertEqual({name: found[name] for name in expected}, expected)
                self.assertEqual(len(found), 5 + 4 * len(expected))  # facts; and m, v, count
                facts = {name.partition(".")[2]: value for name, value in found.items() if name.startswith("orrery.")}
                self.assertEqual(facts, {"step": 2, "seed": 3, "microbatches": 12, "fast_sums": 0, "extra": "é"})
                if stack == "zero":
                    self.assertEqual(found, of_one)
                    self.assertGreater(dcp_files.chunks(at, "3.weight"), 3)  # rows, and parts of rows
        self.ran(from_=self.own, to=at, extra="é")  # no step between
        self.assertEqual(dcp_files.read(at), of_one)

    def test_what_pytorch_has_saved(self):
        """Recorded by tests/data/make_dcp.py: element i of weights is (i + 1) / 256, of m 1 more, of v 2 more."""
        recorded, at = SOURCE / "tests/data/files/dcp/run", self.root / "again"
        went_on = set()
        for ranks, stack in ((1, "data"), (2, "pipeline"), (3, "zero")):
            self.assertEqual(self.ran(ranks, stack=stack, from_=recorded, hidden=18, steps=7, to=at)[:20], "from 7 'by PyTorch'\n")
            found = dcp_files.read(at)
            self.assertEqual(found["orrery.step"], 7)
            for name, count in (("1.weight", 144), ("1.bias", 18), ("3.weight", 144), ("3.bias", 8)):
                for number, form in enumerate(("{}", "optim.{}.m", "optim.{}.v")):
                    self.assertEqual(found[form.format(name)], [(i + 1) / 256 + number for i in range(count)], name)
                self.assertEqual(found[f"optim.{name}.count"], [7])
            went_on.add(self.ran(ranks, stack=stack, from_=recorded, hidden=18, steps=9))
        self.assertEqual(len(went_on), 1, went_on)

    def test_each_rank_writes_what_it_has(self):
        sizes = [file.stat().st_size for file in self.data_files(self.saved)]
        self.assertEqual(len(sizes), 3)  # the facts, and one of each rank
        self.assertLess(max(sizes[1:]), 2 * min(sizes[1:]))

    def test_saving_again_beside_steps_and_on_other_ranks(self):
        at = self.copy()
        for ranks, stack in ((3, "zero"), (1, "data"), (2, "pipeline")):
            self.ran(ranks, stack=stack, from_=at, to=at, steps=2, wait="false")
            [folder] = [path for path in at.iterdir() if path.is_dir()]
        self.assertEqual(folder.name, "4")
        self.assertEqual(self.ran(from_=at, steps=4).partition("\n")[2],
                         self.ran(from_=self.own, steps=4).partition("\n")[2])

    def test_what_is_damaged(self):
        facts, first, *_ = self.data_files(self.saved)
        name = str(first.relative_to(self.saved))
        content = first.read_bytes()
        data = -(-(content.index(b"archive/data/0") + 18) // 64) * 64  # aligned in its archive
        cases = {
            "cut short": (name, content[:-5], "has", "cut short or altered"),
            "an altered pickle": (name, flipped(content, 200), "was altered: its CRC-32"),
            "an altered number": (name, flipped(content, data), "was altered: its CRC-32"),
            "empty metadata": (".metadata", b"", ".metadata", "it ends too early"),
            "half of the metadata": (".metadata", (self.saved / ".metadata").read_bytes()[:900], ".metadata"),
            "no facts": (str(facts.relative_to(self.saved)), facts.read_bytes()[:100], "cut short or altered"),
        }
        for what, (file, changed, *fragments) in cases.items():
            with self.subTest(what):
                at = self.copy()
                (at / file).write_bytes(changed)
                self.refused(line("load"), *fragments, from_=at)
        at = self.copy()
        (at / name).unlink()
        self.refused(line("load"), f"{name} is missing", from_=at, ranks=2)

    def edited(self, change):
        """A copy whose metadata says something else, of as many bytes."""
        at = self.copy()
        before = (at / ".metadata").read_bytes()
        after = change(before)
        self.assertNotEqual(before, after)
        (at / ".metadata").write_bytes(after)
        return at

    def test_what_the_metadata_says(self):
        def other_name(text):
            return text.replace(b"optim.1.bias.m", b"optim.1.bias.q")

        self.refused(line("load"), "has no tensor '1.bias' f32[1026]",
                     from_=self.edited(lambda text: text.replace(b"\x06\x00\x00\x001.bias", b"\x06\x00\x00\x001.bibs")))
        self.refused(line("load"), "'1.bias' is f32[1026], but f32[20] here", from_=self.saved, hidden=20)
        self.refused(line("load"), "has no 'orrery.seed', without which a run cannot go on",
                     from_=self.edited(lambda text: text.replace(b"orrery.seed", b"orrery.sood")))
        done = self.run_script(from_=self.edited(other_name), steps=3)
        self.assertIn("'optim.1.bias.q'", done.err)  # a tensor that nobody wants is named

    def test_other_directories(self):
        at = self.root / "other"
        at.mkdir()
        (at / "notes.txt").write_text("mine")
        self.refused(line("load"), "checkpoint.json", from_=at)
        self.refused(line("save"), "holds 'notes.txt', which is not of a checkpoint", to=at)
        own = self.root / "of_own"
        shutil.copytree(self.own, own)
        self.refused(line("save"), "holds 'checkpoint.json', which is not of a checkpoint", to=own)
        at = self.copy()
        self.refused(line("save"), "holds '.metadata', which is not of a checkpoint", to=at, format="")
        (at / "mine.distcp").write_text("mine")
        self.refused(line("save"), "holds 'mine.distcp', which is not of a checkpoint", to=at)
        self.assertEqual(self.ran(from_=at), self.ran(from_=self.own))

    def test_formats_that_there_are(self):
        at = self.root / "none"
        for ranks in (1, 2):
            self.refused(line("save"), "no plugin writes checkpoints in a format 'zarr'; there are: 'dcp'",
                         ranks=ranks, to=at, format="zarr")
        self.assertFalse(at.exists())
        self.refused(line("save"), "only Orrery's own format is saved to an address", to="s3://nowhere/at")

    def test_a_kill_leaves_the_one_before(self):
        """One that is killed as it syncs, at each sync of a save in turn."""
        at = self.copy()
        before, after, syncs = self.ran(from_=at, steps=3), "", 0
        while True:
            syncs += 1
            done = orrery("run", SCRIPT, *words({"from": at, "to": at, "steps": 2, "extra": "new"}),
                          LD_PRELOAD=str(BUILD / "tests/e2e/slow_disk.so"), ORRERY_TEST_KILL=str(syncs))
            found = self.ran(from_=at, steps=3)
            if found != before:
                self.assertEqual(found, before.replace("'text'", "'new'"))
                after = after or syncs
            if done.code == 0:
                break
            self.assertEqual(done.code, -signal.SIGKILL, done.err)
        self.assertGreater(after, 5)  # the last sync, or the last but one
        self.assertLess(syncs - after, 3)
        self.assertEqual(len([path for path in at.iterdir() if path.is_dir()]), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
