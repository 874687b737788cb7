# SPDX-License-Identifier: Apache-2.0
"""Offload keeps what it says out of a rank's memory, and leaves nothing on the disk.

That bits stay the same is a row of strategies_test.py.

Argument: the build tree.
"""
import json
import os
import pathlib
import re
import resource
import sys
import tempfile
import unittest

from plan_test import MACHINE
from program import HERE, Job, orrery, wait_for

TEMPLATE = (HERE / "offload.lua").read_text()
counter = 4  # bytes: Adam counts the updates of each parameter; the counts stay on the rank


def figure(text, name):
    """The bytes of the first rank's line of this name; 0 if it has none."""
    found = re.search(rf"^ +{name} +(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


class Offload(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.spill = self.folder / "spill"

    def script(self, stack):
        path = self.folder / "offload.lua"
        path.write_text(TEMPLATE.replace("STACK", stack))
        return path

    def plan(self, zero, *words, ranks=2, before=""):
        stack = f"{{ {before} strategy.data{{}}, strategy.zero{{ {zero} }} }}"
        done = orrery("plan", *["--details"] * ("--json" not in words), "-n", ranks, self.script(stack), *words)
        self.assertEqual(done.code, 0, done.err)
        return done.out

    def test_state_leaves_the_rank(self):
        words = ("width=256", "layers=16")
        layer = 4 * 256 * 256
        for ranks in (1, 2):
            kept = self.plan("stage = 1", *words, ranks=ranks)
            self.assertEqual(figure(kept, "state"), 16 * 2 * layer // ranks + 16 * counter)
            for tier, line in (("disk", "on disk"), ("host", "in host memory")):
                away = self.plan(f'stage = 1, offload = "{tier}"', *words, ranks=ranks)
                self.assertEqual(figure(away, line), 16 * 2 * layer // ranks)
                self.assertRegex(away, rf"copies +{figure(away, line)} bytes a step from .* and {figure(away, line)} back")
                self.assertEqual(figure(away, "state"), 16 * counter)
                windows = figure(away, "memory") - (figure(kept, "memory") - figure(kept, "state"))
                self.assertLessEqual(windows, 3 * 2 * layer)  # three units of one layer's moments

    def test_parts_over_another_axis_leave_the_rank(self):
        words, tensor = ("width=256", "layers=4"), "strategy.tensor{ size = 2 },"
        kept, away = (self.plan(zero, *words, ranks=4, before=tensor) for zero in ("stage = 1", 'offload = "host"'))
        self.assertGreater(figure(kept, "state"), 0)
        self.assertEqual(figure(away, "in host memory"), figure(kept, "state") - 4 * counter)

    def test_parameters_leave_the_rank(self):
        words = ("width=256", "layers=16")
        kept, away = self.plan("stage = 3", *words), self.plan('stage = 3, offload = "disk"', *words)
        gone = 16 * 3 * 4 * 256 * 256 // 2
        self.assertEqual(figure(away, "on disk"), gone)
        self.assertLess(figure(away, "memory"), figure(kept, "memory") - gone // 2)

    def test_parameters_beside_compute_copies_leave_the_rank(self):
        words = ("width=256", "layers=16")
        parameters = 16 * 256 * 256
        for stage, ranks, each in ((1, 2, 12), (2, 2, 12), (3, 2, 14), (1, 1, 8)):  # one rank has no copies
            away = self.plan(f'stage = {stage}, offload = "host"', *words, ranks=ranks, before="strategy.precision{},")
            self.assertEqual(figure(away, "in host memory"), each * parameters // ranks)

    def test_activations_leave_the_rank(self):
        plans = []
        for stack in ("{}", '{ strategy.recompute{ offload = "disk" } }'):
            done = orrery("plan", "--details", "-n", 1, self.script(stack), "width=32", "layers=24", "batch=4096")
            self.assertEqual(done.code, 0, done.err)
            plans.append(done.out)
        kept, away = (figure(plan, "arena peak") for plan in plans)
        self.assertGreater(figure(plans[1], "on disk"), 16 * 4096 * 32 * 4)
        self.assertLess(away, kept // 2)

    def test_copies_take_time(self):
        """All copies of a rank take one lane; compute waits for what it does not hide."""
        machine = self.folder / "machine.json"

        def planned(zero, **tiers):
            machine.write_text(json.dumps(MACHINE | tiers))
            return json.loads(self.plan(zero, "--json", "--machine", machine, "width=256", "layers=8", ranks=1))
        kept = planned("stage = 1")["step_seconds"]
        for tier, other in (("disk", "host"), ("host", "disk")):
            steps, away = {}, f'offload = "{tier}"'
            for speed in (1e7, 1e8, 1e15):
                link = {"latency": 1e-9, "bandwidth": speed}
                plan = planned(away, **{tier: link, other: {"latency": 1, "bandwidth": 1}})
                steps[speed] = plan["step_seconds"]
                copies = sum(c["read_bytes"] + c["written_bytes"] for c in plan["kinds"][0]["traffic"]["copies"]) / speed
                self.assertGreaterEqual(steps[speed], copies)
                self.assertLessEqual(steps[speed], kept + copies + 1e-6)
                waits = [part for part in plan["time"] if part["what"] == "offload"]
                self.assertEqual([part["axis"] for part in waits], [tier])
            self.assertGreater(steps[1e7], 5 * steps[1e8])
            self.assertGreater(steps[1e8], steps[1e15])
            machine.write_text(json.dumps(MACHINE))
            script = self.script(f"{{ strategy.data{{}}, strategy.zero{{ {away} }} }}")
            done = orrery("plan", "--machine", machine, script)
            self.assertNotEqual(done.code, 0)
            self.assertRegex(done.err, rf"copies tensors from and to {tier}, but machine '.*' has no field {tier}: add it")

    def test_resident_memory_falls(self):
        """32 layers of 4 MiB: 256 MiB of moments, on one rank."""
        peaks = []
        for offload in ("disk", "none"):  # the peak of all children only grows
            done = orrery("run", "-n", 1, self.script(f'{{ strategy.data{{}}, strategy.zero{{ offload = "{offload}" }} }}'),
                          "width=1024", "layers=32", "batch=4", "steps=2")
            self.assertEqual(done.code, 0, done.err)
            peaks.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
        self.assertGreater(peaks[1] - peaks[0], 200, peaks)

    def test_a_killed_process_leaves_no_file(self):
        zero = f'{{ strategy.data{{}}, strategy.zero{{ offload = "disk", directory = "{self.spill}" }} }}'
        job = Job("run", "-n", 2, self.script(zero), "steps=1000000")

        def opened(folder):
            """The files of the folder that a process, which may end meanwhile, has open."""
            found = []
            try:
                for link in os.scandir(folder):
                    found += [link] if os.readlink(link).startswith(str(self.spill)) else []
            except OSError:
                pass
            return found

        def files():
            return sum(len(opened(f"/proc/{p}/fd")) for p in os.listdir("/proc") if p.isdigit()) == 2

        wait_for(files, 60)
        self.assertEqual(list(self.spill.iterdir()), [])
        job.end()
        self.assertEqual(list(self.spill.iterdir()), [])

    def test_a_full_disk_is_one_error(self):
        zero = f'{{ strategy.data{{}}, strategy.zero{{ offload = "disk", directory = "{self.spill}" }} }}'
        done = orrery("run", "-n", 1, self.script(zero),
                      limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(done.err, r"offload: a file of 256 KiB in '\S+spill' cannot be made: File too large")
        self.assertEqual(list(self.spill.iterdir()), [])

    def test_refusals(self):
        for stack, error in (
                ('strategy.zero{ offload = "tape" }', "there is no offload 'tape': give none or host or disk"),
                ('strategy.zero{ offload = "host", directory = "/tmp" }', "a directory is for offload"),
                ('strategy.recompute{ mode = "selective", offload = "host" }', "leave one out"),
                ('strategy.recompute{ offload = "tape" }', "there is no offload 'tape': give none or host or disk"),
                ('strategy.zero{ offload = "disk", directory = "/proc/none" }', "in '/proc/none' cannot be made")):
            with self.subTest(stack=stack):
                done = orrery("run", "-n", 1, self.script(f"{{ strategy.data{{}}, {stack} }}"))
                self.assertIn(done.code, (1, 2), done.err)
                self.assertIn(error, done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
