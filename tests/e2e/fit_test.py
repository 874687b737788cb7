# SPDX-License-Identifier: Apache-2.0
"""run:fit: the bits of the loop that it stands for, also where a job was stopped or killed on the way; early stopping, and
which checkpoints stay.

Argument: the build tree.
"""
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from program import HERE, orrery

SCRIPT = HERE / "fit.lua"
STOPPED = 75


class Fit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name) / "at"

    def fit(self, ranks=1, code=0, words=(), **arguments):
        given = [f"{name}={value}" for name, value in arguments.items()]
        done = orrery("run", "-n", ranks, *words, SCRIPT, *given)
        self.assertEqual(done.code, code, done.err)
        return done.out

    def test_the_bits_of_a_loop_by_hand(self):
        by_hand = self.fit(hand="true", epochs=4)
        self.assertRegex(by_hand, r"^evaluated 5:\S+ 10:\S+ 15:\S+ 20:\S+\ndigest ")
        for ranks, more in ((1, {}), (3, {}), (3, {"zero": 3})):
            self.assertEqual(self.fit(ranks, epochs=4, **more), by_hand)

    def test_a_job_that_was_stopped_goes_on(self):
        undisturbed = self.fit(epochs=4, dir=self.at, every=3)
        # In an epoch, at its end, at an evaluation, and before there is any.
        for step, ranks in ((7, 3), (10, 1), (6, 1), (2, 2)):
            shutil.rmtree(self.at)
            cut = self.fit(ranks, STOPPED, epochs=4, dir=self.at, every=3, stop=step)
            self.assertNotIn("digest", cut)
            on = self.fit(1, epochs=4, dir=self.at, every=3, stop=-1)
            self.assertEqual(re.sub(r" ended.*", " ended ", undisturbed), on)

    def test_epochs_are_evaluated_once_where_it_goes_on(self):
        undisturbed = self.fit(epochs=4, dir=self.at)
        for step in (4, 5, 6, 19):
            shutil.rmtree(self.at)
            self.fit(2, STOPPED, epochs=4, dir=self.at, stop=step)
            self.assertEqual(re.sub(r" ended.*", " ended ", undisturbed), self.fit(epochs=4, dir=self.at, stop=-1))

    def test_a_rank_that_is_killed(self):
        undisturbed = self.fit(3, epochs=4, dir=self.at, saved=4)
        shutil.rmtree(self.at)
        again = self.fit(3, words=("--restarts", 1), epochs=4, dir=self.at, saved=4, die=13)
        self.assertEqual(undisturbed.replace("ended 1 2 3 4", "ended 3 4"), again)

    # What is judged is 41, 46, 51, 4, 1, 6, 11, 16 after the epochs, of 5 steps each.
    def test_patience_and_the_best_checkpoint(self):
        told = self.fit(2, epochs=20, bumpy="true", patience=3, dir=self.at, best="judged")
        self.assertIn("steps 40 epochs 8 stopped true best 25 at step-00000025 of 1 ended 1 2 3 4 5 6 7 8\n", told)
        kept = sorted(each.name for each in self.at.iterdir() if each.name.startswith("step-"))
        self.assertEqual(kept, ["step-00000025", "step-00000035", "step-00000040"])
        # It has ended and is not begun again; nor does it need what it had counted when it was stopped.
        self.assertIn("steps 40 epochs 8 stopped true best 25", self.fit(1, epochs=20, bumpy="true", patience=3, dir=self.at, best="judged"))
        shutil.rmtree(self.at)
        self.fit(1, STOPPED, epochs=20, bumpy="true", patience=3, dir=self.at, best="judged", stop=33)
        on = self.fit(1, epochs=20, bumpy="true", patience=3, dir=self.at, best="judged", stop=-1)
        self.assertEqual(re.sub(r"ended.*", "ended ", told), on)

    def test_the_largest_is_the_best(self):
        told = self.fit(1, steps=22, every=2, bumpy="true", best="judged", mode="max", dir=self.at, saved=100)
        self.assertIn("steps 22 epochs 6 stopped false best 18 at step-00000018 of 54 ended 1! 2! 3! 4! 5! 6\n", told)

    def test_lines_have_the_results_in_one_order(self):
        script = self.at.with_suffix(".lua")
        script.write_text("""local orrery = require "orrery"
local model = orrery.nn.linear(1, 1)
local run = orrery.compile(function(b)
  local y = model(b.x)
  return y:mean() * 0 + 2, { b = y:mean() * 0 + 3, rows = y, a = y:mean() * 0 + 4, c = y:mean() * 0, d = y:mean() * 0 }
end, { params = model, optimizer = orrery.optim.sgd {}, microbatches = 2 })
local data = orrery.data.arrays { x = { { 1.0 }, { 2.0 }, { 3.0 }, { 4.0 }, { 5.0 } } }
run:fit { data = data, size = 2, steps = 8, log = 2, eval = data, every = 3 }
run:fit { data = data, size = 4, epochs = 6 }
run:fit { data = data, size = 5, steps = 15 }
""")
        names = ("loss 2.0000", "a 4.0000", "b 3.0000", "c 0.0000", "d 0.0000")
        step, after = "".join(" " + each for each in names), "".join(" eval/" + each for each in names)
        wanted = [f"epoch 1, step 2:{step}", f"epoch 1, step 3:{step}{after}, the best so far", f"epoch 2, step 4:{step}",
                  f"epoch 3, step 6:{step}{after}", f"epoch 3, step 8:{step}{after}",
                  f"epoch 5, step 10:{step}", f"epoch 6, step 12:{step}", f"epoch 15, step 15:{step}"]
        for ranks in (1, 2):
            done = orrery("run", "-n", ranks, script)
            self.assertEqual((done.code, done.out.splitlines()), (0, wanted), done.err)

    def test_a_start_that_goes_on_says_from_where(self):
        script = self.at.with_suffix(".lua")
        script.write_text("""local orrery = require "orrery"
local args = orrery.args { epochs = 2, patience = 0, dir = "" }
local model = orrery.nn.linear(1, 1)
local run = orrery.compile(function(b) return model(b.x):mean() * 0 + 2 end,
  { params = model, optimizer = orrery.optim.sgd {}, microbatches = 2 })
local data = orrery.data.arrays { x = { { 1.0 }, { 2.0 }, { 3.0 } } }
run:fit { data = data, size = 2, epochs = args.epochs, eval = data, patience = args.patience, checkpoints = { dir = args.dir } }
""")
        lines = [f"epoch {epoch}, step {2 * epoch}: loss 2.0000 eval/loss 2.0000{', the best so far' if epoch == 1 else ''}"
                 for epoch in range(1, 5)]
        on = f"{self.at}: going on after step "
        for ranks, words, wanted in ((1, ("epochs=2",), lines[:2]), (2, ("epochs=2",), [on + "4 in epoch 2", "nothing is left to train after step 4"]),
                                     (2, ("epochs=8", "patience=3"), [on + "4 in epoch 2", *lines[2:]]),
                                     (1, ("epochs=8", "patience=3"), [on + "8 in epoch 4", "nothing is left to train after step 8: patience has run out"])):
            done = orrery("run", "-n", ranks, script, *words, f"dir={self.at}")
            self.assertEqual((done.code, done.out.splitlines()), (0, wanted), done.err)

    def test_a_last_step_is_evaluated(self):
        told = self.fit(1, steps=7, every=3)
        self.assertRegex(told, r"^evaluated 3:\S+ 6:\S+ 7:\S+\nsteps 7 ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
