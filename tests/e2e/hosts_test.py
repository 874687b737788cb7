# SPDX-License-Identifier: Apache-2.0
"""`orrery run --hosts` on two hosts through a stand-in for ssh, who listens where, and bad hosts files.

Arguments: the build tree.
"""
import os
import pathlib
import sys
import tempfile
import time
import unittest

from program import HERE, Job, orrery
from two_hosts import GPT, TAG, TwoHosts


class Hosts(TwoHosts, unittest.TestCase):
    shell = f"{sys.executable} {HERE / 'namespace_shell.py'} {TAG}"

    def test_a_host_that_cannot_be_reached(self):
        job = self.on_hosts({1: 1, 9: 1}, *GPT, ORRERY_DEADLINE="1").finish(30)
        self.assertEqual(job.code, 69, job.err)
        self.assertRegex(job.err.splitlines()[-1], r"^orrery: .*/hosts-\d+:3: host 10\.77\.0\.9: "
                         r"namespace_shell: there is no host 10\.77\.0\.9 \(exit code 1\)$")


class Usage(unittest.TestCase):
    # What is given as MASTER_ADDR decides where rank 0 listens: nothing is open to a network by itself.
    def test_loopback_stays_loopback(self):
        port = 20000 + os.getpid() % 12000
        job = Job("run", *GPT, RANK="0", WORLD_SIZE="2", LOCAL_WORLD_SIZE="1", LOCAL_RANK="0", ORRERY_DEADLINE="20",
                  MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), ORRERY_TOKEN="of this test")
        self.addCleanup(job.end)
        pid, until, held = job.process.pid, time.monotonic() + 10, []
        while not held and time.monotonic() < until:
            links = {os.readlink(p) for p in pathlib.Path(f"/proc/{pid}/fd").iterdir() if p.is_symlink()}
            rows = [r.split() for t in ("tcp", "tcp6") for r in
                    pathlib.Path(f"/proc/{pid}/net/{t}").read_text().splitlines()[1:]]
            held = [r[1] for r in rows if r[3] == "0A" and f"socket:[{r[9]}]" in links]
            time.sleep(0.01)
        self.assertEqual(held, [f"0100007F:{port:04X}"])

    def test_bad_hosts_files(self):
        for text, words in (("", "names no host: write one per line"),
                            ("# nobody\n\n", "names no host: write one per line"),
                            ("a\nb slots=0\n", ":2: 'slots=0': a host takes 1 to 1024 ranks"),
                            ("a slots=2x\n", ":1: 'slots=2x': a host takes"),
                            ("a 4\n", ":1: '4' is not understood"),
                            ("a\n\na slots=2\n", ":3: 'a' stands here a second time"),
                            ("-oProxyCommand=x\n", ":1: '-oProxyCommand=x' is no name")):
            with self.subTest(text=text), tempfile.NamedTemporaryFile("w") as file:
                file.write(text)
                file.flush()
                job = orrery("run", "--hosts", file.name, *GPT)
                self.assertEqual(job.code, 2, job.err)
                self.assertIn(words, job.err)
                self.assertIn(file.name, job.err)
        self.assertIn("cannot be read: No such file", orrery("run", "--hosts", "none.txt", *GPT).err)
        self.assertIn("leave -n out", orrery("run", "-n", 2, "--hosts", "none.txt", *GPT).err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
