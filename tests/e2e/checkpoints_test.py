# SPDX-License-Identifier: Apache-2.0
"""Ranks that do not have the same and weights that are not finite are errors, before anything wrong is
trained on or saved.

Arguments: the build tree.
"""
import errno
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from program import BUILD, HERE, Job, orrery, wait_for

SCRIPT = HERE / "checkpoints.lua"


def line(case, mark):
    """checkpoints.lua:N of the line of a case that ends so."""
    lines = SCRIPT.read_text().splitlines()
    begin = next(n for n, text in enumerate(lines) if text.startswith(f"function cases.{case}("))
    return f"checkpoints.lua:{1 + next(n for n in range(begin, len(lines)) if lines[n].endswith('-- ' + mark))}"


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name) / "at"

    def run_case(self, case, *words, ranks=2, **arguments):
        given = [f"{name}={value}" for name, value in {"case": case, "at": self.at, **arguments}.items()]
        return orrery("run", "-n", ranks, *words, SCRIPT, *given, ORRERY_DEADLINE="30")

    def refused(self, case, *fragments, **arguments):
        with self.subTest(case=case, **arguments):
            done = self.run_case(case, **arguments)
            self.assertEqual(done.code, 1, done.err)
            for text in fragments:
                self.assertIn(text, done.err)
            self.assertNotIn("digest", done.out)

    def test_ranks_that_load_different_checkpoints(self):
        other = self.at.parent / "other"
        self.assertEqual(self.run_case("save", ranks=1).code, 0)
        self.assertEqual(self.run_case("save", ranks=1, at=other, steps=5).code, 0)
        self.refused("apart", line("apart", "load"), "rank 0 has read one of step 3 and rank 1 another, of step 5",
                     other=other)
        self.refused("one_loads", "ranks post different operations", "run:load")
        # Of the same step, but not of the same run.
        shutil.rmtree(other)
        self.assertEqual(self.run_case("save", ranks=1, at=other, rate=0.5).code, 0)
        self.refused("apart", "rank 1 another, of step 3", other=other)
        shutil.copytree(self.at, other, dirs_exist_ok=True)
        self.assertEqual(self.run_case("apart", other=other).code, 0)

    def test_the_norm_of_gradients_without_clipping(self):
        plain = self.run_case("norm", ranks=1)
        self.assertIn("compile with grad_norm = true", plain.out)
        told = {self.run_case("norm", ranks=ranks, zero=stage, norm="true").out
                for ranks, stage in ((1, 0), (2, 0), (3, 2))}
        self.assertEqual(len(told), 1, told)
        [told] = told
        norms = re.findall(r"norm ([0-9.e-]+)\n", told)
        self.assertEqual(len(norms), 3, told)
        self.assertEqual(told.splitlines()[-1], plain.out.splitlines()[-1])  # the digest
        clipped = self.run_case("norm", ranks=1, clip="1e-3")
        self.assertEqual(re.findall(r"norm (\S+)\n", clipped.out)[0], norms[0])

    def test_what_one_rank_writes_alone(self):
        for stage in (0, 3):
            for case in ("one_writes", "one_writes_last", "different_parts"):
                self.refused(case, line(case, "write"), "not with one value on all ranks", zero=stage)
            self.refused("one_writes_first", "the parameters of rank 1 begin with other values", zero=stage)
        self.assertFalse(self.at.exists())
        alike = {self.run_case("all_write", ranks=ranks, zero=stage).out for ranks, stage in ((1, 0), (2, 0), (2, 3))}
        self.assertEqual(len(alike), 1)

    def test_states_that_are_read_before_ranks_have_parts_of_them(self):
        alike = {(done := self.run_case("read_first", ranks=ranks, zero=stage)).out + done.err * done.code
                 for ranks, stage in ((1, 0), (2, 3), (3, 3))}
        self.assertEqual(len(alike), 1, alike)

    def test_weights_that_are_not_finite(self):
        for stage in (0, 1):
            self.refused("nan", "checkpoints.lua:", "after step 2 '", "' holds ", "nan at [1", zero=stage)
        self.refused("bad_weights", line("bad_weights", "save"), "after step 1 'bias' holds ", "nan at [4]: it is not saved")
        self.assertFalse(self.at.exists())
        for ranks in (1, 2):
            done = self.run_case("nan_kept", ranks=ranks)
            self.assertEqual(done.code, 0, done.err)
            self.assertIn("false / false / true", done.out)
            [kept] = re.findall(r"digest (\w+) 1\n", done.out)
            self.assertIn(f"digest {kept}\n", done.out)

    # A slow disk is no dead rank: the others wait, and say for whom and for what.
    def test_a_disk_slower_than_the_deadline(self):
        done = orrery("run", "-n", 2, SCRIPT, "case=save", f"at={self.at}", ORRERY_DEADLINE="1",
                      LD_PRELOAD=str(BUILD / "tests/e2e/slow_disk.so"), ORRERY_TEST_FSYNC="3")
        self.assertEqual(done.code, 0, done.err)
        self.assertRegex(done.err, r"orrery: waiting for rank 0 for \d+ s: it is saving")
        self.assertEqual(self.run_case("load").code, 0)

    def steps_there(self):
        return sorted(int(path.name.removeprefix("step-")) for path in self.at.iterdir())

    def test_a_series(self):
        whole = self.run_case("series", steps=10, keep=0, ranks=1)
        self.assertEqual(whole.code, 0, whole.err)
        self.assertEqual(self.steps_there(), [2, 4, 6, 8, 10])
        digest = whole.out.splitlines()[-1]
        for ranks, stage in ((1, 0), (2, 0), (3, 3)):
            shutil.rmtree(self.at)
            for steps in (5, 7, 10):  # each run continues the one before
                done = self.run_case("series", steps=steps, keep=2, best="loss", ranks=ranks, zero=stage)
                self.assertEqual(done.code, 0, done.err)
                self.assertIn(f"from {max(steps - 3, 4) // 2 * 2 if steps > 5 else 0}\n", done.out)
                self.assertIn("waited true copied true", done.out)
            self.assertEqual(self.steps_there(), [4, 8, 10])  # 4 has the smallest loss
            self.assertEqual(done.out.splitlines()[-1], digest)
        # One by name, and the newest.
        self.assertIn("digest", self.run_case("load", at=self.at / "step-00000004", ranks=1).out)
        (self.at / "step-00000010/checkpoint.json").unlink()  # as of a writer that died
        done = self.run_case("series", steps=10, keep=1)
        self.assertIn("from 8\n", done.out)
        self.assertEqual(done.out.splitlines()[-1], digest)
        self.assertEqual(self.steps_there(), [10])
        # Nothing falls back to an older one by itself.
        [shard] = (self.at / "step-00000010").glob("*/shard-00002*")
        shard.write_bytes(shard.read_bytes()[:-1] + b"x")
        self.refused("series", "step-00000010", "shard-00002", "was altered")
        for wrong, said in (({"keep": -1}, "keep is -1"), ({"best": "accuracy"}, "accuracy")):
            shutil.rmtree(self.at, ignore_errors=True)
            self.refused("series", "checkpoints.lua:", said, **wrong)

    def test_what_follows_a_step_is_in_its_checkpoint(self):
        for hand in ("false", "true"):
            shutil.rmtree(self.at, ignore_errors=True)
            whole = self.run_case("follows", steps=6, hand=hand, ranks=1).out.splitlines()[1:]
            for ranks, stage in ((1, 0), (2, 0), (3, 3)):
                with self.subTest(hand=hand, ranks=ranks):
                    shutil.rmtree(self.at)
                    if hand == "false":
                        self.assertEqual(self.run_case("follows", steps=4, ranks=ranks, zero=stage).code, 0)
                    stopped = self.run_case("follows", steps=6, stop=5, hand=hand, ranks=ranks, zero=stage)
                    self.assertEqual(stopped.code, 75, stopped.err)
                    done = self.run_case("follows", steps=6, hand=hand, ranks=ranks, zero=stage)
                    self.assertEqual((done.code, done.out.splitlines()), (0, ["from 5 ", *whole]), done.err)

    def test_a_stop_keeps_what_the_script_has_just_saved(self):
        for ranks in (1, 2):
            shutil.rmtree(self.at, ignore_errors=True)
            self.assertEqual(self.run_case("follows", steps=6, stop=3, hand="true", ranks=ranks).code, 75)
            self.assertIn("from 3 after 3\n", self.run_case("follows", steps=3, hand="true", ranks=ranks).out)

    def test_two_runs_stop_after_the_same_step(self):
        whole = self.run_case("two_runs", steps=6, ranks=1)
        self.assertEqual(whole.code, 0, whole.err)
        for ranks in (1, 2):
            for second in ("false", "true"):
                with self.subTest(ranks=ranks, second=second):
                    shutil.rmtree(self.at)
                    stopped = self.run_case("two_runs", steps=6, stop=3, hand=second, ranks=ranks)
                    self.assertEqual(stopped.code, 75, stopped.err)
                    done = self.run_case("two_runs", steps=6, ranks=ranks)
                    self.assertEqual(done.out.splitlines(), ["from 3 3", *whole.out.splitlines()[1:]], done.err)

    def test_a_series_that_is_told_to_stop(self):
        job = Job("run", "-n", 2, SCRIPT, "case=series", f"at={self.at}", "steps=1000000", ORRERY_DEADLINE="30")
        self.addCleanup(job.end)
        wait_for(lambda: list(self.at.glob("step-*/checkpoint.json")), 60)
        job.process.terminate()
        self.assertEqual(job.finish().code, 75, job.err)
        [step] = set(re.findall(rf'after step (\d+); run:load "{self.at}/step-0*\1" continues from there', job.err))
        self.assertEqual(max(self.steps_there()), int(step))
        self.assertLessEqual(len(self.steps_there()), 2)
        self.assertIn(f"from {step}\n", self.run_case("series", steps=int(step) + 1, ranks=3, zero=2).out)

    def test_steps_go_on_beside_a_slow_disk(self):
        done = orrery("run", "-n", 2, SCRIPT, "case=beside", f"at={self.at}", ORRERY_DEADLINE="30",
                      LD_PRELOAD=str(BUILD / "tests/e2e/slow_disk.so"), ORRERY_TEST_FSYNC="6", ORRERY_TEST_BEFORE="4")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("at first false true\nthen true true\n", done.out)

    def test_a_run_goes_on_after_an_error(self):
        for rank, call in (("0", "10"), ("1", "5")):  # a write of its shard
            done = orrery("run", "-n", 2, SCRIPT, "case=goes_on", f"at={self.at}", "steps=5", ORRERY_DEADLINE="30",
                          LD_PRELOAD=str(BUILD / "tests/e2e/bad_disk.so"), ORRERY_TEST_PLACE=str(self.at),
                          ORRERY_TEST_RANK=rank, ORRERY_TEST_FAULT=str(errno.ENOSPC), ORRERY_TEST_CALL=call)
            self.assertEqual(done.code, 0, done.err)
            self.assertRegex(done.out, r"failed 1: .*shard-0000\d-.* cannot be (written|created): No space left on dev")
            self.assertNotIn("failed 2", done.out)
            self.assertIn("went on to true\n", done.out)

    def test_a_script_that_fails_beside_a_save(self):
        self.refused("fails", "as told", ranks=1)
        self.assertEqual(self.run_case("load", ranks=1).code, 0)  # it was completed
        shutil.rmtree(self.at)
        self.refused("fails", "as told", ranks=2)  # it was not, and is no hindrance
        self.assertEqual(self.run_case("save", ranks=2).code, 0)

    def test_what_is_somebodys_stays(self):
        def listing(*places):
            paths = [path for place in places for path in (place, *place.rglob("*"))]
            return {path: (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"") for path in paths}

        archive, by_hand = self.at.parent / "archive", self.at.parent / "exp"
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                for place in (self.at, archive, by_hand):
                    shutil.rmtree(place, ignore_errors=True)
                self.assertEqual(self.run_case("series", steps=6, ranks=1).code, 0)
                (self.at / "step-00000006").rename(archive)
                shutil.rmtree(self.at)
                (self.at / "step-00000004").mkdir(parents=True)
                (self.at / "step-00000006").symlink_to(archive)
                (self.at / "step-00000004/notes.txt").write_text("mine")
                (self.at / "step-00000099").write_text("mine")
                before = listing(archive, self.at / "step-00000004", self.at / "step-00000099")
                for steps, goes_on in ((8, 6), (12, 8)):  # the newest is the link, and then one with a file of the user's
                    done = self.run_case("series", steps=steps, keep=1, ranks=ranks)
                    self.assertEqual(done.code, 0, done.err)
                    self.assertIn(f"from {goes_on}\n", done.out)
                    self.assertRegex(done.err, "orrery: .*step-00000004' is not needed any more and stays: it holds 'notes.txt'")
                    (self.at / "step-00000008/README").write_text("mine")
                self.assertRegex(done.err, "orrery: .*step-00000008' is not needed any more and stays: it holds 'README'")
                self.assertEqual(self.steps_there(), [4, 8, 12, 99])
                self.assertEqual([path.name for path in (self.at / "step-00000008").iterdir()], ["README"])
                self.assertEqual(listing(*(path for path in before if path.parent in (self.at, self.at.parent))), before)
                self.assertEqual(self.run_case("load", at=archive, ranks=1).code, 0)
                # Beside a checkpoint that the script saves by hand.
                self.assertEqual(self.run_case("save", at=by_hand, ranks=ranks).code, 0)
                (by_hand / "2026").mkdir()
                (by_hand / "2026/notes.txt").write_text("mine")
                (by_hand / "3000").symlink_to(archive)
                self.assertEqual(self.run_case("save", at=by_hand, ranks=ranks).code, 0)
                self.assertEqual({path.name for path in by_hand.iterdir()}, {"2026", "3000", "3001", "checkpoint.json"})
                self.assertEqual(listing(by_hand / "2026")[by_hand / "2026/notes.txt"][1], b"mine")
                self.assertEqual(listing(archive).keys(), {path for path in before if archive in (path, *path.parents)})

    def test_a_directory_that_cannot_be_used_is_told_before_the_first_step(self):
        self.at.write_text("mine")
        for ranks in (1, 2):
            self.refused("series", "checkpoints.lua:", "there is something else of that name", ranks=ranks)
            self.refused("series", "checkpoints.lua:", "Not a directory", ranks=ranks, at=self.at / "below")
        self.assertEqual(self.at.read_text(), "mine")
        self.at.unlink()
        self.assertEqual(self.run_case("save", ranks=1).code, 0)
        self.refused("series", "the directory is itself a checkpoint", ranks=2)
        shutil.rmtree(self.at)
        first = Job("run", SCRIPT, "case=two_writers", "hand=true", f"at={self.at}", stdin=True)
        self.addCleanup(first.end)
        self.assertEqual(first.process.stdout.readline(), "saved\n")
        for ranks in (1, 2):
            self.refused("series", "checkpoints.lua:", f"process {first.process.pid} on host", "is saving there", ranks=ranks)
        first.process.stdin.write("\n")
        self.assertEqual(first.finish().code, 0, first.err)
        # A plan makes no directory.
        planned = orrery("plan", SCRIPT, "case=series", f"at={self.at.parent / 'planned'}")
        self.assertEqual(planned.code, 0, planned.err)
        self.assertFalse((self.at.parent / "planned").exists())

    def test_one_writer(self):
        first = Job("run", SCRIPT, "case=two_writers", f"at={self.at}", stdin=True)
        self.addCleanup(first.end)
        self.assertEqual(first.process.stdout.readline(), "saved\n")
        self.refused("save", "is saving there", ranks=1)
        first.process.stdin.write("\n")
        self.assertEqual(first.finish().code, 0, first.err)
        self.assertEqual(self.run_case("save", ranks=1).code, 0)
        self.assertEqual(sorted(p.name for p in self.at.iterdir()),
                         ["3", "checkpoint.json"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
