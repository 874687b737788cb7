# SPDX-License-Identifier: Apache-2.0
"""A slice of torture.py: blows over TCP, a cable that is pulled, strangers at the ports, and a file of each kind damaged.

Arguments: the build tree, and a seed to repeat a run.
"""
import concurrent.futures
import random
import signal
import sys
import unittest

from random_failures_test import SEED, left_behind
from torture import TCP, SavingBlow, Torture
from torture_files import FileBlow
from torture_hosts import CUT, HostBlow
from torture_peers import PeerBlow


class Slice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"seed {SEED}", file=sys.stderr)
        cls.torture = Torture(SEED)
        cls.addClassCleanup(cls.torture.close)

    def test_every_kind(self):
        chance, before, torture = random.Random(SEED), left_behind(), self.torture
        blows = [lambda: SavingBlow(TCP, signal.SIGKILL, chance.randrange(4), 1.5, "zero3"),
                 lambda: SavingBlow(TCP, signal.SIGSTOP, chance.randrange(4), 1.2, "pipeline"),
                 lambda: PeerBlow(chance.randrange(10 ** 6), torture.expected, pause=0.01)]
        if torture.two_hosts:
            blows += [lambda: HostBlow(torture.two_hosts, CUT, 0, 0.3, "data"),
                      lambda: HostBlow(torture.two_hosts, signal.SIGKILL, 0, 0.4, "pipeline")]
        blows += [lambda case=case: FileBlow(case, random.Random(f"{SEED} {case}"))
                  for case in {case[0]: case for case in torture.known_files}.values()]
        with concurrent.futures.ThreadPoolExecutor(3) as several:
            for blow in several.map(lambda strike: strike(), blows):
                with self.subTest(str(blow)):
                    self.assertEqual(list(blow.complaints()), [], blow.job.err)
        self.assertEqual(left_behind() - before, set())

    def test_damage_is_seen(self):
        """A blow at a checkpoint complains if it is taken for sound, and if it is refused without a name."""
        blow = FileBlow(self.torture.known_files[-1], random.Random(SEED))
        self.assertEqual(list(blow.complaints()), [])
        blow.job.code, blow.same = 0, False
        self.assertIn("another training", list(blow.complaints())[0])
        blow.job.code, blow.job.err = 1, "error: no"
        self.assertEqual(list(blow.complaints()), ["refused without the name of the file"])
        blow.job.code = -11
        self.assertEqual(list(blow.complaints()), ["exit code -11"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
