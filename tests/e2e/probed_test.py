# SPDX-License-Identifier: Apache-2.0
"""What run:probe fetches: values are second results, gradients are those of value_and_grad and finite differences; they
are the same under every stack on one to four ranks, and change no training.

Arguments: the build tree.
"""
import sys
import unittest

from program import HERE, orrery


def run(case, ranks=1):
    return orrery("run", "-n", ranks, "probed.lua", f"case={case}", cwd=HERE)


def numbers(text):
    return [float(x) for x in text.split()]


class Probed(unittest.TestCase):
    def check_close(self, found, expected, delta):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertAlmostEqual(a, b, delta=delta)

    def test_oracles(self):
        done = run("oracle")
        self.assertEqual(done.code, 0, done.err)
        lines = dict(line.split(" = ") for line in done.out.splitlines())
        self.assertEqual(lines["Net"], lines["logits"])
        gradient = next(value for name, value in lines.items() if name.endswith(" gradient"))
        self.check_close(numbers(lines["grad a.weight"]), numbers(gradient), 1e-8)
        by_b = numbers(lines["grad b"])
        self.assertEqual(len(by_b), 9 * 12)
        differences = {int(name.split()[1]): float(value) for name, value in lines.items() if "difference" in name}
        self.assertEqual(len(differences), 16)
        for i, difference in differences.items():
            self.assertAlmostEqual(by_b[i], difference, delta=2e-5)
        self.assertGreater(max(map(abs, by_b)), 5e-3)

    def test_equal_on_any_number_of_ranks_and_no_other_bits(self):
        expected = None
        for ranks in (1, 2, 3, 4):
            done = run("equal", ranks)
            self.assertEqual(done.code, 0, done.err)
            blocks = [block.splitlines() for block in done.out.split("--\n")[:-1]]
            self.assertEqual(len(blocks), 4 if ranks == 1 else 6)
            expected = expected or blocks[0]
            self.assertEqual(len(expected), 16)
            for i, block in enumerate(blocks):
                with self.subTest(ranks=ranks, stack=i):
                    self.assertEqual(block[0], block[-1])
                    self.assertTrue(block[0].startswith("digest "))
                    if i != 4:
                        self.assertEqual(block, expected)
                        continue
                    for line, other in zip(block[1:-1], expected[1:-1], strict=True):  # sums over the cut dim
                        (name, values), (its, others) = line.split(" = "), other.split(" = ")
                        self.assertEqual(name, its)
                        self.check_close(numbers(values), numbers(others), 1e-4)

    def test_a_loss_scale_is_taken_out(self):
        done = run("scaled")
        self.assertEqual(done.code, 0, done.err)
        exact, half = (line.split(" = ") for line in done.out.splitlines() if line.startswith("grad b"))
        self.assertEqual((exact[0], half[0]), ("grad b f32[9,12]", "grad b f32[9,12]"))
        self.assertNotEqual(exact[1], half[1])
        self.check_close(numbers(half[1]), numbers(exact[1]), 5e-4)

    def test_refused(self):
        for case, ranks, text in (("unknown", 1, "computes nothing of the name 'blocks'; it has Net, Net.seen, a, b"),
                                  ("parameter", 1, "computes nothing of the name 'grad a.bogus'"),
                                  ("input", 1, "no gradient flows to 'still'"),
                                  ("served", 2, "probe: with strategy.server")):
            with self.subTest(case=case):
                done = run(case, ranks)
                self.assertEqual(done.code, 1, done.err)
                self.assertRegex(done.err, r"probed\.lua:\d+: ")
                self.assertIn(text, done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
