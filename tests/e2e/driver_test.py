# SPDX-License-Identifier: Apache-2.0
"""A driver of a third party (driver/rounds.cpp): alone it is one process; on two ranks, whose weights become
means whenever they are read, it is strategy.average over as many steps. What it does wrong is named.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import BUILD, HERE, orrery

ROUNDS = "strategy.rounds {}"


class Driver(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_it(self, stack, ranks, *words, command="run"):
        script = self.folder / "rounds.lua"
        script.write_text((HERE / "driver/rounds.lua").read_text().replace("STACK", f"{{ {stack} }}"))
        return orrery(command, *["--details"] * (command == "plan"), "-n", ranks, script, *words, ORRERY_PLUGIN_PATH=str(BUILD / "tests/e2e/driver"))

    def weights(self, stack, ranks, *words):
        done = self.run_it(stack, ranks, *words)
        self.assertEqual(done.code, 0, done.err)
        found = re.findall(r"digest \d+ (\w+)", done.out)
        self.assertEqual(len(found), 2, done.out)
        return found

    def test_alone_it_is_one_process(self):
        for optimizer in ("sgd", "adamw"):
            for rows in (12, 9):
                words = (f"optimizer={optimizer}", f"rows={rows}")
                with self.subTest(words=words):
                    self.assertEqual(self.weights(ROUNDS, 1, *words), self.weights("", 1, *words))

    def test_two_are_an_average(self):
        self.assertEqual(self.weights(ROUNDS, 2), self.weights("strategy.average { every = 3 }", 2))

    def test_a_checkpoint_has_its_states(self):
        saved = self.folder / "saved"
        self.run_it("", 1, "optimizer=adamw", f"save={saved}")
        expected = self.weights("", 1, "optimizer=adamw", "from=6", f"load={saved}")
        for before, after in (("", ROUNDS), (ROUNDS, ""), (ROUNDS, ROUNDS)):
            with self.subTest(before=before, after=after):
                self.weights(before, 1, "optimizer=adamw", f"save={saved}")
                self.assertEqual(self.weights(after, 1, "optimizer=adamw", "from=6", f"load={saved}"), expected)

    def test_the_plan_shows_a_rank_s_step(self):
        plan = self.run_it(ROUNDS, 2, command="plan")
        self.assertEqual(plan.code, 0, plan.err)
        self.assertIn("sends   what strategy.rounds says above, at times of its own", plan.out)
        self.assertEqual(re.findall(r"\n    state +(\d+)", plan.out), re.findall(r"\n    parameter +(\d+)", plan.out))

    def test_faults(self):
        for fault, why in (
                ("holes", "a driver has all of write, open, step, settle, stop and predicted"),
                ("twice", "the ranks are driven by strategy.rounds already"),
                ("late", "the ranks are driven by strategy.rounds already"),
                ("early", "programs beside a step are written by drivers"),
                ("names", "there is a program 'update.0' already"),
                ("serve", "strategy.rounds was built for calls that have left the editing table"),
                ("cut", "a program beside the step has no batch, and needs '[xy]'"),
                ("piece", r"the leaves \[0, 3\) cannot be a piece of rank 0, which has \[0, 2\)"),
                ("state", "there is no state 'no such state'"),
                ("pieces", "piece 1 of 1 is to be computed in a step"),
                ("outside", "piece 0 of 1 is to be computed outside of a step"),
                ("throws", "it threw something that is no std::exception"),
                ("program", "rank 0 has no program 'update.7'")):
            with self.subTest(fault=fault):
                done = self.run_it(f"strategy.rounds {{ fault = '{fault}' }}", 2)
                self.assertNotEqual(done.code, 0)
                self.assertRegex(done.err, rf"error: (.*rounds.lua:\d+: .*)?{why}")

    def test_beside_what_ranks_do_together(self):
        for stack in (f"strategy.data {{ size = 1 }}, {ROUNDS}", f"{ROUNDS}, strategy.accumulate {{}}"):
            with self.subTest(stack=stack):
                done = self.run_it(stack, 2)
                self.assertEqual(done.code, 1)
                self.assertRegex(done.err, r"rounds.lua:\d+: strategy.rounds without a common step .*, or train in one process")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
