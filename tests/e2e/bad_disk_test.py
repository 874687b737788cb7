# SPDX-License-Identifier: Apache-2.0
"""Whatever happens at any call by which a save changes the disk, the newest checkpoint that was complete loads, with
the bits of the run that made it.

Arguments: the build tree; then 1 to go wrong at every call, where the suite takes every third, from a random one on.
"""
import errno
import pathlib
import random
import re
import sys
import tempfile
import unittest

from program import BUILD, HERE, orrery, sampled

SCRIPT = HERE / "bad_disk.lua"
LIBRARY = BUILD / "tests/e2e/bad_disk.so"
EVERY = int(sys.argv[2]) if len(sys.argv) > 2 else 3
FIRST = random.randrange(EVERY)


class BadDisk(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.case = pathlib.Path(folder.name), 0

    def run_script(self, at, *words, ranks=1, **variables):
        return orrery("run", "-n", ranks, SCRIPT, f"at={at}", *words, ORRERY_DEADLINE="20", **variables)

    def train(self, words, ranks, rank=0, **variables):
        """A training into a new place under a disk that goes wrong: the place, and how it ended."""
        self.case += 1
        at = self.folder / f"place-{self.case}"
        return at, self.run_script(at, *words, ranks=ranks, LD_PRELOAD=str(LIBRARY), ORRERY_TEST_PLACE=str(at),
                                   ORRERY_TEST_RANK=str(rank), **variables)

    def calls(self, words, ranks, rank=0):
        """The letters of the calls of a whole training, and the digests by step."""
        trace = self.folder / "trace"
        trace.unlink(missing_ok=True)
        _, done = self.train(words, ranks, rank, ORRERY_TEST_TRACE=str(trace))
        self.assertEqual(done.code, 0, done.err)
        [letters] = trace.read_text().split()
        return letters, dict(re.findall(r"saved (\d+) (\w+)", done.out))

    def loads_the_newest(self, at, done, digests, words=()):
        """Returns the step that loads; 0: no checkpoint was complete."""
        said = max((int(step) for step, _ in re.findall(r"saved (\d+) (\w+)", done.out)), default=0)
        again = self.run_script(at, "load=true", *words)
        if said == 0 and again.code == 1:
            self.assertRegex(again.err, "cannot be opened|is missing")
            return 0
        self.assertEqual(again.code, 0, again.err)
        [(step, digest)] = re.findall(r"loaded (\d+) (\w+)", again.out)
        self.assertEqual(digests[step], digest)
        self.assertGreaterEqual(int(step), said)
        return int(step)

    def killed_at_every_call(self, *words, ranks=1, rank=0):
        letters, digests = self.calls(words, ranks, rank)
        self.assertGreater(len(letters), 15)
        loaded = set()
        for call in sampled(range(1 + FIRST, len(letters) + 1, EVERY)):
            with self.subTest(words=words, call=call, letter=letters[call - 1]):
                at, done = self.train(words, ranks, rank, ORRERY_TEST_CALL=str(call), ORRERY_TEST_FAULT="kill")
                self.assertNotEqual(done.code, 0)
                loaded.add(self.loads_the_newest(at, done, digests))
                again = self.run_script(at, *words, ranks=ranks)  # what the dead writer left does not disturb
                self.assertEqual(again.code, 0, again.err)
                self.assertEqual(self.loads_the_newest(at, again, digests), 3)
        self.assertGreaterEqual(len(loaded), 3)
        print(f"{words} {ranks} ranks: killed rank {rank} at every {EVERY}. of {len(letters)} calls {letters}", file=sys.stderr)

    def test_killed_at_every_call_of_saves(self):
        self.killed_at_every_call()

    def test_killed_at_every_call_of_saves_beside_steps(self):
        self.killed_at_every_call("series=true")

    def test_killed_among_several_ranks(self):
        self.killed_at_every_call("series=true", "zero=1", ranks=2, rank=0)
        self.killed_at_every_call("series=true", "zero=1", ranks=2, rank=1)

    def test_errors_at_every_call_are_told_once(self):
        for words, ranks, rank in ((), 1, 0), (("series=true",), 1, 0), (("series=true", "zero=1"), 2, 1):
            letters, digests = self.calls(words, ranks, rank)
            # An unlink that fails leaves a file to the next writer.
            for call in [n + 1 for n, letter in enumerate(letters) if letter != "u"][FIRST::EVERY]:
                fault = errno.EIO if letters[call - 1] == "f" else errno.ENOSPC
                with self.subTest(words=words, call=call, letter=letters[call - 1]):
                    at, done = self.train(words, ranks, rank, ORRERY_TEST_CALL=str(call), ORRERY_TEST_FAULT=str(fault))
                    # An older checkpoint that cannot be removed is none: the new one is complete.
                    stays = letters[call - 1] == "f" and "it stays, though it is not needed any more" in done.err
                    self.assertEqual(done.code, 0 if stays else 1, done.err)
                    said = "Input/output error; check the disk" if fault == errno.EIO else "No space left on device"
                    self.assertRegex(done.err, rf"bad_disk.lua:\d+: .*{said}|error: .*{said}|orrery: .*{said}.*it stays")
                    self.assertIn(str(at), done.err)
                    self.loads_the_newest(at, done, digests)

    def test_short_writes_are_completed(self):
        letters, digests = self.calls((), 1)
        at, done = self.train((), 1, ORRERY_TEST_CALL="1", ORRERY_TEST_FAULT="short")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(self.loads_the_newest(at, done, digests), 3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
