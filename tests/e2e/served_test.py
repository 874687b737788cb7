# SPDX-License-Identifier: Apache-2.0
"""Servers that take gradients as they come do what the log of arrivals says, and with a bound of 0, or
one worker, what one process does.

Arguments: the build tree.
"""
import collections
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import unittest

from program import HERE, Job, orrery, wait_for

ASYNC, STALE = 'mode = "async"', 'mode = "stale"'
RANKS = 3


def arrivals(path):
    """[(kind, worker, clock, version)] of a log."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return [(w[0], *map(int, w[1:4])) for w in lines if w[0] in ("push", "pull", "end")]


class Served(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.log = self.folder / "arrivals"

    def start(self, script, options, ranks, *words, **variables):
        """`options`: of the server, None for one process; with `|`, further strategies behind."""
        options, _, beside = ("" if options is None else options).partition("|")
        server = f"strategy.server{{ {options} }}" if options else ""
        stack = f"{{ {', '.join(filter(None, (server, beside)))} }}" if server or beside else "nil"
        path = self.folder / pathlib.Path(script).name
        path.write_text((HERE / script).read_text().replace("STACK", stack))
        return Job("run", "-n", ranks, path, *words, **variables)

    def run_it(self, script, options, ranks, *words):
        done = self.start(script, options, ranks, *words).finish()
        self.assertEqual(done.code, 0, done.err)
        return [line for line in done.out.splitlines() if re.match(r"(step|eval|outside|digest) ", line)]

    def refused(self, options, ranks=RANKS, script="served.lua", *words):
        done = self.start(script, options, ranks, *words).finish()
        self.assertEqual(done.code, 1, done.err)
        return done.err

    def order(self, log=None):
        return ",".join(f"{kind} {worker} {clock}" for kind, worker, clock, _ in arrivals(log or self.log)
                        if kind != "end")


class Bits(Served):
    def test_one_worker_is_one_process(self):
        for model, optimizer in (("gpt", "adamw"), ("gpt", "adagrad"), ("mlp", "sgd"), ("mlp", "lua")):
            words = (f"model={model}", f"optimizer={optimizer}")
            expected = self.run_it("strategies.lua", None, 1, *words)
            self.assertEqual(len(expected), 13)
            for options, ranks in ((ASYNC, 1), (f"{ASYNC}, dedicated = 1", 2), (STALE, 1),
                                   (f"{ASYNC}, servers = 2, dedicated = 1", 3)):
                with self.subTest(words=words, options=options):
                    self.assertEqual(self.run_it("strategies.lua", options, ranks, *words), expected)

    def test_a_bound_of_0_is_a_common_step(self):
        """But for the losses: each rank reports those of its own part of the batch."""
        for model, optimizer in (("gpt", "adamw"), ("mlp", "adagrad")):
            words = (f"model={model}", f"optimizer={optimizer}")
            expected = self.run_it("strategies.lua", None, 1, *words)[-3:]
            for options, ranks in (("servers = 1", 2), ("servers = 1", 3), ("servers = 3", 4),
                                   ("dedicated = 1", 4), ("servers = 2, dedicated = 1", 4)):
                with self.subTest(words=words, options=options, ranks=ranks):
                    self.assertEqual(self.run_it("strategies.lua", f"{STALE}, {options}", ranks, *words)[-3:], expected)

    def test_batches_of_two_shapes(self):
        for optimizer in ("sgd", "adamw"):
            words = (f"optimizer={optimizer}", "rows=9")
            expected = self.run_it("driver/rounds.lua", None, 1, *words)
            self.assertEqual(len(expected), 2)
            for options, ranks in ((f"{STALE}, servers = 2", 3), (f"{ASYNC}, dedicated = 1", 2)):
                with self.subTest(optimizer=optimizer, options=options):
                    self.assertEqual(self.run_it("driver/rounds.lua", f"{options}", ranks, *words), expected)

    def test_beside_other_strategies(self):
        words = ("model=gpt", "optimizer=adamw")
        for beside in ("strategy.recompute{}", 'strategy.precision{ compute = "bf16" }'):
            expected = self.run_it("strategies.lua", f"|{beside}", 1, *words)
            with self.subTest(beside=beside):
                self.assertEqual(self.run_it("strategies.lua", f"{ASYNC}, dedicated = 1|{beside}", 2, *words), expected)
                self.assertEqual(self.run_it("strategies.lua", f"{STALE}, servers = 2|{beside}", 3, *words)[-3:],
                                 expected[-3:])

    def test_rows_of_large_embeddings(self):
        words = ("model=gpt", "optimizer=adamw", "vocab=1000", "tie=false")
        expected = self.run_it("strategies.lua", None, 1, *words)
        self.assertEqual(self.run_it("strategies.lua", f"{ASYNC}, dedicated = 1", 2, *words), expected)
        self.assertEqual(self.run_it("strategies.lua", STALE, 3, *words)[-3:], expected[-3:])

    def test_checkpoints_go_from_and_to_a_common_step(self):
        words = ("model=gpt", "optimizer=adamw")
        expected = self.run_it("strategies.lua", None, 1, *words)[-3:]
        saved = self.folder / "checkpoint"
        for before, after in (((f"{STALE}, servers = 2", 3), ("dedicated = 1", 3)), (("servers = 2", 3), (STALE, 2)),
                              ((f"{ASYNC}, dedicated = 1", 2), (None, 1)), ((None, 1), (ASYNC, 1))):
            with self.subTest(before=before, after=after):
                self.run_it("strategies.lua", *before, *words, "stop=4", f"save={saved}")
                self.assertEqual(self.run_it("strategies.lua", *after, *words, f"load={saved}")[-3:], expected)


class Order(Served):
    def test_it_is_what_the_rules_make_of_the_log(self):
        for optimizer in ("adagrad", "momentum"):
            for slow in (0, 2):
                words = (f"optimizer={optimizer}",)
                with self.subTest(optimizer=optimizer, slow=slow):
                    done = self.run_it("served.lua", f'{ASYNC}, log = "{self.log}"', RANKS, *words, f"slow={slow}")
                    self.assertEqual(self.run_it("served.lua", None, 1, *words, f"order={self.order()}"), done)
                    self.assertEqual(collections.Counter(kind for kind, *_ in arrivals(self.log)),
                                     {"push": 18, "pull": 15, "end": 3})

    def test_steps_pushed_together_are_added(self):
        for options, push, pushes in (("push = 2", 2, 9), ("push = 4, pull = 2", 4, 6), ("push = 2, pull = 3", 2, 9)):
            with self.subTest(options=options):
                done = self.run_it("served.lua", f'{ASYNC}, {options}, log = "{self.log}"', RANKS, "slow=1")
                self.assertEqual(self.run_it("served.lua", None, 1, f"order={self.order()}", f"push={push}"), done)
                self.assertEqual(sum(kind == "push" for kind, *_ in arrivals(self.log)), pushes)

    def test_a_replay_follows_the_log(self):
        again = self.folder / "again"
        for options, servers in ((ASYNC, 1), (f"{ASYNC}, servers = 2", 2), (f"{ASYNC}, push = 3, pull = 2", 1),
                                 (f"{ASYNC}, dedicated = 1", 1), (f"{STALE}, bound = 2, servers = 2", 2)):
            with self.subTest(options=options):
                first = self.run_it("served.lua", f'{options}, log = "{self.log}"', RANKS, "slow=1")
                replay = f'{options}, log = "{again}", replay = "{self.log}"'
                self.assertEqual(self.run_it("served.lua", replay, RANKS, "slow=2"), first)
                for s in range(servers):
                    suffix = f".{s}" if s else ""
                    self.assertEqual(pathlib.Path(f"{again}{suffix}").read_text(),
                                     pathlib.Path(f"{self.log}{suffix}").read_text())
                self.run_it("served.lua", f'{options}, log = "{again}"', RANKS, "slow=2")
                self.assertNotEqual(self.order(again), self.order())  # without it, it is another order

    def test_the_bound_holds_and_is_reached(self):
        for bound in (0, 1, 3):
            with self.subTest(bound=bound):
                self.run_it("served.lua", f'{STALE}, bound = {bound}, log = "{self.log}"', RANKS, "slow=1", "pause=0.1",
                            "steps=12")
                pushed, ahead = collections.Counter(), collections.Counter()
                for kind, worker, clock, version in arrivals(self.log):
                    if kind != "end":
                        self.assertEqual(version, min(pushed[w] for w in range(RANKS)))
                    if kind == "pull":
                        ahead[clock - version] += 1
                    pushed[worker] += kind == "push"
                self.assertEqual(max(ahead), bound)
                self.assertGreater(ahead[bound], 5)

    def test_metrics_count_how_stale_gradients_were(self):
        self.run_it("served.lua", f'{ASYNC}, log = "{self.log}"', RANKS)
        done = orrery("run", "-n", RANKS, "--dir", self.folder / "run", self.folder / "served.lua", "slow=1")
        self.assertEqual(done.code, 0, done.err)
        read, expected = collections.Counter(), collections.Counter()
        for kind, worker, _, version in arrivals(self.log):
            if kind == "push":
                expected[f"staleness.{version - read[worker]}"] += 1
            read[worker] = version
        lines = map(json.loads, (self.folder / "run/metrics.jsonl").read_text().splitlines())
        found = {key: value for line in lines for key, value in line.items() if key.startswith("staleness.")}
        self.assertEqual(found, expected)
        self.assertGreater(len(found), 1)


class Refusals(Served):
    def test_options(self):
        for options, why in (
                ("push = 2", 'push = 2 means nothing where every step waits for all: give mode = "async"'),
                ("bound = 2", 'bound = 2 means nothing where every step waits for all: give mode = "stale"'),
                ('log = "x"', 'log = "x" means nothing where every step waits for all'),
                (f"{ASYNC}, push = 0", "push = 0: give at least 1"),
                (f"{ASYNC}, pull = -1", "pull = -1: give at least 1"),
                (f"{ASYNC}, bound = 1", 'bound = 1 is for mode = "stale"'),
                (f"{STALE}, bound = -1", "bound = -1: give at least 0"),
                (f"{STALE}, push = 2", 'push = 2 is for mode = "async"'),
                ('mode = "asynk"', "there is no mode 'asynk' (did you mean 'async'?): give sync or async or stale"),
                (f"{ASYNC}, servers = 4", "4 servers among 3 ranks: give from 1 to 3"),
                ("servers = 3, dedicated = 1", "3 dedicated servers leave none of the 3 ranks to work: give dedicated = 0 or servers = 2"),
                ("dedicated = 2", "dedicated = 2: give 0 or 1"),
                (f'{ASYNC}, log = "/nowhere/x"', "cannot write the log of arrivals '/nowhere/x'"),
                (f'{ASYNC}, replay = "/nowhere/x"', "the log of arrivals '/nowhere/x': cannot be read: No such file")):
            with self.subTest(options=options):
                self.assertRegex(self.refused(options), r"served.lua:\d+: .*" + re.escape(why))

    def test_buffers_with_a_bound(self):
        self.assertRegex(self.refused(STALE, RANKS, "served.lua", "buffer=true"),
                         r"served.lua:\d+: .*served.lua:\d+: 'seen' is updated from the samples, and each worker would keep its own: ")
        for options, ranks in ((STALE, 1), (f"{STALE}, dedicated = 1", 2), (ASYNC, RANKS)):
            self.assertTrue(self.run_it("served.lua", options, ranks, "buffer=true"))

    def test_stacks(self):
        for stack in (f"strategy.server{{ {ASYNC} }}, strategy.accumulate{{}}",
                      f"strategy.accumulate{{}}, strategy.server{{ {STALE} }}",
                      f"strategy.pipeline{{ size = 3 }}, strategy.server{{ {ASYNC} }}"):
            path = self.folder / "strategies.lua"
            path.write_text((HERE / "strategies.lua").read_text().replace("STACK", f"{{ {stack} }}"))
            done = orrery("run", "-n", RANKS, path, "model=mlp")
            with self.subTest(stack=stack):
                self.assertEqual(done.code, 1)
                self.assertRegex(done.err, r"strategies.lua:\d+: strategy.server without a common step .*or give mode = \"sync\"")

    def test_logs(self):
        logged = f'{ASYNC}, log = "{self.log}"'
        self.run_it("served.lua", logged, RANKS)
        whole = self.log.read_text()
        lines = whole.splitlines(keepends=True)
        replay = f'{ASYNC}, replay = "{self.log}"'
        for text, why in (
                (whole.replace("push 1 3", "push 2 3", 1), r"is damaged at line \d+"),
                ("".join(lines[:6] + lines[7:]), "is damaged at line 7"),
                (whole[:-4], f"is damaged at line {len(lines)}"),
                ("".join(lines[:-1]), "is cut short: not all 3 workers end"),
                ("", "is empty")):
            self.log.write_text(text)
            with self.subTest(why=why):
                self.assertRegex(self.refused(replay), rf"log of arrivals '{self.log}' {why}")
        self.log.write_text(whole)
        for other in (f"{replay}, push = 2", f"{replay}, dedicated = 1", f'{STALE}, replay = "{self.log}"'):
            with self.subTest(other=other):
                self.assertRegex(self.refused(other), rf"log of arrivals '{self.log}' is of another run")
        self.longer(replay)

    def longer(self, replay, *words):
        longer = self.start("served.lua", replay, RANKS, "steps=7", *words).finish()
        self.assertEqual(longer.code, 1, longer.err)
        self.assertRegex(longer.err, rf"log of arrivals '{self.log}' has 'end \d 6 \d+' where rank \d comes with 'pull \d 6")

    def test_a_log_that_fails_while_others_await_their_turn(self):
        self.run_it("served.lua", f'{ASYNC}, log = "{self.log}"', RANKS, "slow=1")
        began = time.monotonic()
        self.longer(f'{ASYNC}, replay = "{self.log}"', "slow=0")
        self.assertLess(time.monotonic() - began, 15)  # half a deadline: nobody has waited for one


class Failures(Served):
    def rank(self, job, rank):
        mark = f"ORRERY_RANK={rank}".encode()
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.getsid(int(entry.name)) == job.process.pid \
                        and mark in (entry / "environ").read_bytes().split(b"\0"):
                    return int(entry.name)
            except OSError:
                continue  # it has ended
        return None

    def test_a_killed_or_frozen_rank_is_named_by_all(self):
        # The launcher ends who is frozen for longer than the deadline: others may see that first.
        frozen = "(?:died|(?:has not answered|has not reached server 0) for 2 s)"
        for options in (ASYNC, f"{STALE}, bound = 1, dedicated = 1"):
            for victim in range(RANKS):
                for number, why in ((signal.SIGKILL, "died"), (signal.SIGSTOP, frozen)):
                    with self.subTest(options=options, victim=victim, signal=number.name):
                        job = self.start("served.lua", f'{options}, log = "{self.log}"', RANKS, "steps=1000000",
                                         ORRERY_DEADLINE="2")
                        self.addCleanup(job.end)
                        wait_for(lambda: self.log.exists() and len(self.log.read_text()) > 2000, 20)
                        os.kill(self.rank(job, victim), number)
                        job.finish(60)
                        self.log.unlink()
                        self.assertNotEqual(job.code, 0)
                        named = re.findall(rf"^(?:\[rank \d\] )?error: .*rank {victim} {why}", job.err, re.MULTILINE)
                        self.assertEqual(len(named), RANKS - 1, job.err)

    def test_ranks_of_unequal_steps(self):
        path = self.folder / "served.lua"
        for options, code in ((ASYNC, 0), (f"{STALE}, bound = 1", 1)):
            path.write_text((HERE / "served.lua").read_text().replace("STACK", f"{{ strategy.server{{ {options} }} }}")
                            .replace("= 1, args.steps do", "= 1, args.steps - orrery.world.rank do")
                            .replace("used.predicted_bytes_sent ~= used.bytes_sent", "false"))
            done = orrery("run", "-n", RANKS, path)
            with self.subTest(options=options):
                self.assertEqual(done.code, code, done.err)
                if code:
                    self.assertIn("rank 2 has ended after 4 steps", done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
