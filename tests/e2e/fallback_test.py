# SPDX-License-Identifier: Apache-2.0
"""A damaged newest checkpoint is refused by name; with --fallback, or after a restart, all ranks go on from the newest
good one, with the bits of an undisturbed job.

Arguments: the build tree.
"""
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from program import HERE, orrery
from two_hosts import digest

SCRIPT = HERE / "restarts.lua"


def cut_short(checkpoint):
    """The last of its files of tensors."""
    path = sorted(checkpoint.glob("*/*.safetensors"))[-1]
    path.write_bytes(path.read_bytes()[:-1])
    return path.name, "is truncated"


def flip(checkpoint):
    path = sorted(checkpoint.glob("*/*.safetensors"))[0]
    data = bytearray(path.read_bytes())
    data[-5] ^= 4
    path.write_bytes(data)
    return path.name, "was altered"


def lose(checkpoint):
    path = sorted(checkpoint.glob("*/*.safetensors"))[-1]
    path.unlink()
    return path.name, "is missing"


def scribble(checkpoint):
    path = checkpoint / "checkpoint.json"
    path.write_text(path.read_text().replace('"step"', '"stop"', 1))
    return path.name, ""


class Fallback(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def job(self, *words, ranks=2, folder="job", steps=40):
        (self.folder / folder).mkdir(exist_ok=True)
        return orrery("run", "-n", ranks, *words, SCRIPT, f"folder={self.folder / folder}", f"steps={steps}")

    def series(self, folder="job"):
        return sorted(p.name for p in (self.folder / folder / "checkpoints").iterdir() if p.is_dir())

    def test_the_newest_good_one(self):
        quiet = digest(self.job(folder="quiet"))
        digest(self.job(folder="begun", steps=30))
        for ranks in (1, 2):
            for damage in (cut_short, flip, lose, scribble):
                with self.subTest(ranks=ranks, damage=damage.__name__):
                    shutil.rmtree(self.folder / "job", ignore_errors=True)
                    shutil.copytree(self.folder / "begun", self.folder / "job")
                    self.assertEqual(self.series(), ["step-00000021", "step-00000028"])
                    file, why = damage(self.folder / "job/checkpoints/step-00000028")
                    refused = self.job(ranks=ranks)
                    self.assertEqual(refused.code, 1, refused.err)
                    for said in (f"step-00000028': ", file, why, "`orrery run --fallback`"):
                        self.assertIn(said, refused.err)
                    self.assertEqual(self.series(), ["step-00000021", "step-00000028"])
                    job = self.job("--fallback", ranks=ranks)
                    self.assertEqual(digest(job), quiet)
                    self.assertEqual(set(re.findall(r"begins behind step (\d+)", job.out)), {"21"})
                    [line] = [line for line in job.err.splitlines() if "a damaged checkpoint is skipped" in line]
                    for said in ("now " + str(self.folder), "step-00000028.damaged; going on from ", "step-00000021: ", file, why):
                        self.assertIn(said, line)
                    self.assertEqual(self.series(), ["step-00000028", "step-00000028.damaged", "step-00000035"])

    def test_what_is_not_known_to_be_damaged_is_kept(self):
        def of_another_release(checkpoint):
            path = checkpoint / "checkpoint.json"
            path.write_text(path.read_text().replace('"version": 3', '"version": 4', 1))
            return "version 4 cannot be read, only 3; load it with the release that wrote it"

        def no_file(checkpoint):
            path = sorted(checkpoint.glob("*/*.safetensors"))[-1]
            path.unlink()
            path.mkdir()
            return "is not a regular file"

        self.job(steps=30)
        shutil.copytree(self.folder / "job", self.folder / "begun")
        for ranks in (1, 2):
            for change in (of_another_release, no_file):
                with self.subTest(ranks=ranks, change=change.__name__):
                    shutil.rmtree(self.folder / "job")
                    shutil.copytree(self.folder / "begun", self.folder / "job")
                    said = change(self.folder / "job/checkpoints/step-00000028")
                    for words in ([], ["--fallback"], ["--restarts", 1]):
                        job = self.job(*words, ranks=ranks)
                        self.assertEqual(job.code, 1, job.err)
                        self.assertIn(said, job.err)
                        if words:
                            self.assertIn("it is not known to be damaged, so that --fallback does not pass it over", job.err)
                        else:
                            self.assertNotIn("--fallback", job.err)
                        self.assertNotIn("starting again", job.err)
                        self.assertEqual(self.series(), ["step-00000021", "step-00000028"])
        # The remedy of the message.
        (self.folder / "job/checkpoints/step-00000028").rename(self.folder / "job/checkpoints/away")
        self.assertEqual(digest(self.job()), digest(self.job(folder="quiet")))

    def test_where_all_are_damaged_the_oldest_is_named(self):
        self.job(steps=15)
        for name in self.series():
            flip(self.folder / "job/checkpoints" / name)
        job = self.job("--fallback")
        self.assertEqual(job.code, 1, job.err)
        self.assertRegex(job.err, "error: .*step-00000007': .* was altered")
        self.assertNotIn("`orrery run", job.err)

    def test_a_restart_does_so_by_itself(self):
        self.job(steps=30)
        flip(self.folder / "job/checkpoints/step-00000028")
        job = self.job("--restarts", 1)
        self.assertEqual(digest(job), digest(self.job(folder="quiet")))
        self.assertIn("a damaged checkpoint is skipped", job.err)

    def test_a_checkpoint_of_another_model_is_not_skipped(self):
        self.job(steps=15)
        job = orrery("run", "--fallback", HERE / "checkpoints.lua", "case=load",
                     f"at={self.folder / 'job/checkpoints'}")
        self.assertEqual(job.code, 1, job.err)
        self.assertIn("step-00000014' has no tensor 'bias'", job.err)
        self.assertNotIn("skipped", job.err)
        self.assertEqual(self.series(), ["step-00000007", "step-00000014"])


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main()
