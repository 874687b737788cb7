# SPDX-License-Identifier: Apache-2.0
"""`orrery doctor` measures the CPU: the best of all times is kept and said, and a damaged or
foreign file counts as none.

Arguments: the build tree.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ORRERY = pathlib.Path(sys.argv[1]).resolve() / "orrery"


def start(cache, **variables):
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), **variables}
    return subprocess.Popen([ORRERY, "doctor", "--json"], env=environment, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


def facts(process):
    """What it says of the CPU, in text, and the lines of its log."""
    text = process.communicate(timeout=120)[0]
    begin = text.index("{\n")
    said = json.JSONDecoder().raw_decode(text[begin:])[0]
    return {name: fact for name, fact in said.items() if name.startswith("cpu ")}, text[:begin]


def rates(said):
    """Of one thread, by name."""
    return {name: float(fact.split()[0]) for name, fact in said.items() if "on one thread" in fact}


class Doctor(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.cache = pathlib.Path(directory.name)

    def files(self):
        return sorted(p for p in (self.cache / "orrery/cpu").iterdir())

    def test_says_what_the_cpu_does(self):
        said, log = facts(start(self.cache))
        self.assertEqual(log, "")
        for name in ("cpu bf16", "cpu memory", "cpu f32 cold", "cpu caches"):
            self.assertIn(name, said)
        rates = [float(fact.split()[0]) for name, fact in said.items() if name.startswith("cpu f32")]
        self.assertTrue(rates and all(1 < rate < 2000 for rate in rates), said)

    def test_the_best_of_all_times_is_kept(self):
        before = rates(facts(start(self.cache))[0])
        together = [start(self.cache) for _ in range(2)]  # one after another, since one waits for the other
        for said in sorted((rates(facts(process)[0]) for process in together), key=lambda said: said["cpu memory"]):
            self.assertTrue(all(said[name] >= rate for name, rate in before.items()), (said, before))
        self.assertEqual(len(self.files()), 1)

    def test_what_was_kept_is_ignored_if_the_file_is_damaged_or_of_another_machine(self):
        before = facts(start(self.cache))[0]
        kept = self.files()[0]
        whole = kept.read_bytes()
        # The hash that the file begins with is of the key, too: what holds elsewhere does not here.
        for text in (whole[:-9], whole.replace(b"memory", b"sparrow"), b"", b"0" * 32 + whole[32:]):
            kept.write_bytes(text)
            said, log = facts(start(self.cache))
            self.assertIn(f"cpu: {kept} is damaged: it is ignored, and replaced", log)
            self.assertEqual(said.keys(), before.keys())
            self.assertNotIn("sparrow", str(said))
            self.assertEqual(facts(start(self.cache))[1], "")

    def test_goes_without_a_folder(self):
        said, log = facts(start("", HOME=""))
        self.assertEqual(log, "")
        self.assertIn("cpu caches", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
