# SPDX-License-Identifier: Apache-2.0
"""What orrery.print and orrery.watch show is computed again here from the tensors themselves; it is the same under
every stack on one to four ranks, and no training has other bits because of it.

Arguments: the build tree.
"""
import math
import re
import sys
import unittest

from program import HERE, orrery

SCRIPT = HERE / "watched.lua"
STATISTICS = ("mean", "std", "min", "max", "nan", "infinite")
PRINTED = re.compile(r"(.*?): watched\.lua:\d+: (?:(Net): )?(\S+) (\S+): mean (\S+), std (\S+), min (\S+), max (\S+); first (.*)")


def run(case, ranks=1):
    """The numbers of a script's runs, which begin the lines that they print, are left out."""
    done = orrery("run", "-n", ranks, SCRIPT.name, f"case={case}", cwd=HERE)
    done.out = re.sub(r"^run-\d+ ", "", done.out, flags=re.MULTILINE)
    return done


def numbers(lines):
    """{"step 1 Net.hidden.mean": "0.5", ...}"""
    return {what: value for what, value in
            (line.split(" = ") for line in lines if " = " in line and " tensor " not in line)}


def statistics(values):
    """Of a list of numbers, by their definitions."""
    finite = [x for x in values if math.isfinite(x)]
    mean = math.fsum(finite) / len(finite)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in finite) / len(finite))
    return (mean, deviation, min(finite), max(finite), sum(map(math.isnan, values)), sum(map(math.isinf, values)))


class Watched(unittest.TestCase):
    def check_close(self, found, expected, delta):
        self.assertEqual(found.keys(), expected.keys())
        for name, value in expected.items():
            self.assertTrue(value == found[name] or abs(float(value) - float(found[name])) <= delta, (name, value, found[name]))

    def test_statistics_are_those_of_the_tensors(self):
        done = run("fetched")
        self.assertEqual(done.code, 0, done.err)
        alone, beside = (block.splitlines() for block in done.out.split("--\n"))
        recorded = numbers(alone)
        self.assertEqual(recorded, numbers(beside))
        compared = 0
        for line in beside:
            if " tensor " not in line:
                continue
            what, elements = line.split(" = ")
            when, name = what.split(" tensor ")
            expected = statistics([float(x) for x in elements.split()])
            full = name if f"{when} {name}.mean" in recorded else f"{when} Net.{name}"[len(when) + 1:]
            for statistic, value in zip(STATISTICS, expected):
                compared += 1
                self.assertAlmostEqual(float(recorded[f"{when} {full}.{statistic}"]), value, delta=1e-12 * max(1, abs(value)),
                                       msg=f"{when} {full}.{statistic}")
        self.assertEqual(compared, 3 * 7 * len(STATISTICS))
        self.assertEqual((recorded["step 1 odd.nan"], recorded["step 1 odd.infinite"]), ("13", "3"))
        printed = [PRINTED.fullmatch(line) for line in alone if "first" in line]
        self.assertEqual([(m[1], m[2], m[3], m[4]) for m in printed],
                         [(when, "Net", "hidden", f"f32[{n},12]") for when, n in
                          (("step 1", 9), ("step 2", 9), ("evaluation after step 2", 16)) for _ in range(2)])
        for m, name in zip(printed, 3 * ("hidden", "hidden#2")):
            when = "eval" if m[1].startswith("eval") else m[1]
            for shown, statistic in zip(m.groups()[4:8], STATISTICS):
                self.assertEqual(shown, f"{float(recorded[f'{when} Net.{name}.{statistic}']):.6g}")
        first = next(line for line in beside if "step 1 tensor hidden#2 = " in line).split(" = ")[1].split()[:4]
        self.assertEqual(printed[1][9].split(), [f"{float(x):.6g}" for x in first])

    maxDiff = None

    def test_equal_on_any_number_of_ranks_and_no_other_bits(self):
        expected = None
        for ranks in (1, 2, 3, 4):
            done = run("equal", ranks)
            self.assertEqual(done.code, 0, done.err)
            blocks = done.out.split("--\n")[:-1]
            self.assertEqual(len(blocks), 5 if ranks == 1 else 7)
            expected = expected or blocks[0].split("watched\n")[1].splitlines()
            for i, block in enumerate(blocks):
                with self.subTest(ranks=ranks, stack=i):
                    plain, watched = block.removeprefix("plain\n").split("watched\n")
                    watched = watched.splitlines()
                    self.assertEqual(plain.splitlines()[-1], watched[-1])
                    self.assertTrue(watched[-1].startswith("digest "))
                    if i == 4:  # replicas train otherwise
                        self.assertEqual(numbers(watched).keys(), numbers(expected).keys())
                    elif i == 5:  # sums over the cut dim are in another order
                        self.check_close(numbers(watched), numbers(expected), 1e-4)
                    else:
                        self.assertEqual(watched, expected)

    def test_functions_and_tensors_at_hand(self):
        done = run("function")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(re.sub(r"watched.lua:\d+", "HERE", done.out).splitlines(), [
            "call 1: HERE: double f32[3]: mean 4.66667, std 2.49444, min 2, max 8; first 2 4 8",
            "call 2: HERE: double f32[3]: mean 2, std 0, min 2, max 2, 1 NaN, 1 infinite; first 2 nan inf",
            "2 3 5 | 0 1 3",
            "HERE: now f32[2]: mean 2, std 1, min 1, max 3; first 1 3",
            "HERE: f32[2]: mean 5, std 0, min 5, max 5; first 5 5"])

    def test_refused(self):
        for case, ranks, text in (("name", 1, "watch: the name is empty"),
                                  ("outside", 1, "orrery.watch of a HostTensor belongs into a traced function"),
                                  ("served", 2, "what is watched, watched.lua:")):
            with self.subTest(case=case):
                done = run(case, ranks)
                self.assertEqual(done.code, 1, done.err)
                self.assertRegex(done.err, r"watched\.lua:\d+: ")
                self.assertIn(text, done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
