# SPDX-License-Identifier: Apache-2.0
"""The words of orrery.world: their results against a scalar model on one to four ranks and every host
backend, and what they refuse, each with one line that names both sides or the remedy.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import unittest

from launchers_test import ENVIRONMENT, MPIEXEC, MPIRUN, has_mpi, run
from launchers_test import orrery as command
from program import orrery

WORDS = pathlib.Path(__file__).resolve().parent / "words"
LINES = (WORDS / "refused.lua").read_text().splitlines()


def places(case):
    """The lines of a case that are marked `mine` and `theirs`."""
    begin = next(n for n, line in enumerate(LINES, 1) if line.startswith(f"function cases.{case}("))
    end = next(n for n, line in enumerate(LINES, 1) if n >= begin and line.split(" -- ")[0].endswith("end")
               and not line.startswith(" "))
    found = {mark: f"refused.lua:{n}" for n in range(begin, end + 1)
             for mark in ("mine", "theirs") if LINES[n - 1].endswith("-- " + mark)}
    return [found[mark] for mark in sorted(found)]


# Words that differ between the ranks: every rank names both lines.
APART = {
    "shape": ["allreduce of f32[2,3], op sum", "allreduce of f32[3,2], op sum"],
    "dtype": ["broadcast of f32[2,3], root 0", "broadcast of f64[2,3], root 0"],
    "operation": ["allreduce of f32[2,3]", "allgather of f32[*,3]"],
    "name": ["allreduce 'loss'", "allreduce 'norm'"],
    "op": ["op sum", "op max"],
    "root": ["root 0", "root 1"],
    "order": ["allreduce 'a' of f32[2,3]", "allreduce 'b' of f32[3,2]"],
    "unawaited": ["f32[2,3]", "f32[3,2]"],
    "trailing": ["f32[*,3]", "f32[*,2]"],
    "list": ["allreduce of 2 tensors f32[2,3], f32[3,2]", "allreduce of f32[2,3]"],
    "group": ["world:group{0}", "world:group{1}"],
    "join": ["allgather", "join", "after a rank has joined only allreduce"],
    "join_max": ["op max", "join", "with op sum or mean"],
    "step": ["scalars of the step", "allreduce of f32[2,3], op sum", ", operation 18"],
    "join_step": ["scalars of the step", "join"],
}
# Ranks that wait for each other until the deadline has passed.
STUCK = {
    "communicators": ["ranks 0 and 1 wait for each other since 2 s", "rank 0 is in", "rank 1 in"],
    "message": ["recv", "barrier"],
}
# What one rank alone can see to be wrong.
WRONG = {
    "member": "rank 1 is no member of world:group{0}",
    "no_rank": "group: there is no rank 2: ranks are 0..1",
    "twice": "group: rank 0 is named twice",
    "empty": "group: the list of ranks is empty",
    "nested": "groups are made of the world, not of groups",
    "big_root": "root is 2: ranks are 0..1",
    "unknown_op": "op is 'avg': one of sum, mean, min, max, prod",
    "whole_mean": "a mean over ranks needs f32 or f64, not i64; use op = \"sum\"",
    "scalar": "allgather works along dim 1: a scalar has none",
    "splits": "splits has 2 numbers with sum 3: it needs one for each of 2 ranks, with sum 2",
    "uneven": "alltoall cuts dim 1 of f32[3,2] into 2 equal parts: name the rows of each rank with splits",
    "to_itself": "is this rank itself",
    "to_nobody": "send: rank 7 is outside of the 2 ranks 0..1",
    "a_string": "'x' given, expected a HostTensor",
    "object": "a function cannot travel between ranks",
    "circle": "nested deeper than 100 levels, or contains itself",
    "dot": "call it with a colon",
    "handle": "call it with a colon",
    "option": "unknown option 'opp' (did you mean 'op'?)",
}


class Words(unittest.TestCase):
    def test_the_model_on_one_to_four_ranks(self):
        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                done = orrery("run", "-n", ranks, WORDS / "model.lua")
                self.assertEqual((done.code, done.out), (0, f"the model agrees on {ranks} ranks\n"), done.err)

    def test_the_model_under_mpi(self):
        for launcher, library, ranks in ((MPIRUN, "openmpi", 4), (MPIEXEC, "mpich", 3)):
            with self.subTest(library=library):
                if not has_mpi(launcher, library):
                    self.skipTest(f"{library} is not installed")
                done = run([*launcher, "-n", ranks, *command("--comm", "mpi", WORDS / "model.lua")])
                self.assertEqual(done.returncode, 0, done.err)
                self.assertIn(f"the model agrees on {ranks} ranks", done.out)

    def refused(self, case, code, *fragments):
        done = orrery("run", "-n", 2, "refused.lua", f"case={case}", cwd=WORDS, ORRERY_DEADLINE="2")
        self.assertEqual(done.code, code, done.err)
        for fragment in fragments:
            self.assertIn(fragment, done.err)
        return [line for line in done.err.splitlines() if "error: " in line]

    def test_all_compute_with_the_scalars_of_rank_0(self):
        """A rate that each rank would make of what it alone has seen, as on hosts whose pow differs."""
        for ranks in (1, 3):
            done = orrery("run", "-n", ranks, WORDS / "rate.lua")
            self.assertEqual(done.code, 0, done.err)
            self.assertIn(f"ranks {ranks}", done.out)

    def test_ranks_that_say_different_words(self):
        for case, fragments in APART.items():
            with self.subTest(case=case):
                errors = self.refused(case, 1, "ranks post different operations: rank 0 ", "; rank 1 ", *fragments)
                self.assertEqual(len(errors), 2, errors)
                for line in errors:
                    for place in places(case):
                        self.assertIn(place, line.partition("operations")[2])

    def test_ranks_that_wait_for_each_other(self):
        for case, fragments in STUCK.items():
            with self.subTest(case=case):
                for line in self.refused(case, 124, *fragments):
                    for place in places(case):
                        self.assertIn(place, line)

    def test_what_one_rank_sees(self):
        for case, text in WRONG.items():
            with self.subTest(case=case):
                [place] = places(case)
                self.refused(case, 1, f"error: {place}: ", text)

    def test_every_case_is_held_to_something(self):
        cases = {line.split("(")[0].partition("cases.")[2] for line in LINES if line.startswith("function cases.")}
        self.assertEqual(cases, {*APART, *STUCK, *WRONG})

    # A plan runs nothing: the words give what they get, whatever ranks they name.
    def test_a_plan_of_more_ranks(self):
        done = orrery("plan", "-n", 4, WORDS / "planned.lua")
        self.assertEqual(done.code, 0, done.err)

    # A function with its gradients is each rank's own, however many there are.
    def test_a_plan_of_a_horovod_script(self):
        done = orrery("plan", "-n", 4, WORDS.parents[2] / "examples" / "horovod.lua")
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertIn("sends nothing", done.out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
