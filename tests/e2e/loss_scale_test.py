# SPDX-License-Identifier: Apache-2.0
"""Loss scales of strategy.precision: no bits change while nothing overflows, a step that does changes
nothing on any rank, and the scale follows its rule.

Arguments: the build tree.
"""
import json
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery

F16 = 'strategy.precision{ compute = "f16", growth_interval = 3 }'
STACKS = [
    (2, f"{{ strategy.data{{}}, {F16} }}"),
    (3, f"{{ strategy.data{{}}, {F16} }}"),
    (3, f"{{ strategy.data{{}}, strategy.zero{{}}, {F16} }}"),
    (3, f"{{ strategy.data{{}}, strategy.zero{{ stage = 3 }}, {F16} }}"),
    (2, f'{{ strategy.data{{}}, strategy.zero{{ stage = 2, cut = "tensor" }}, {F16} }}'),
    (3, f"{{ strategy.server{{ servers = 2 }}, {F16} }}"),
    (4, f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{}}, {F16} }}"),
    (4, f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{}}, strategy.zero{{ stage = 3 }}, {F16} }}"),
    (3, f'{{ strategy.pipeline{{ schedule = "zb1" }}, {F16} }}'),
    (1, f"{{ {F16}, strategy.accumulate{{}} }}"),
]
MINE = " ".join("""strategy.define{ name = "mine", class = "approx",
  transform_forward = function(draft)
    if draft:trains() then draft:cotangent(draft:own_state("scale", { init = 4096 })) end
  end,
  transform = function(draft)
    if not draft:trains() then return end
    draft:complete(function(step, loss, norm)
      local scale, skipped = step:own_state("scale", { init = 4096 }), step:own_state("skipped", { dtype = "i64" })
      local good = step:op("total", { loss }):isfinite():logical_and(norm:isfinite())
      for _, role in ipairs { "param", "state" } do
        for _, value in ipairs(step:values(role)) do
          local state = step:tensor(value)
          step:update(state, orrery.where(good, step:updated(state), state))
        end
      end
      local now = orrery.where(good, skipped, skipped + 1)
      step:update(skipped, now)
      step:output("loss_scale", scale * 1)
      step:output("skipped_steps", now)
    end, "loss scale")
  end }{}""".split())
STEP = re.compile(r"^step (\d+) loss (\S+) scale (\S+) skipped (\d+) digest (\w+)", re.MULTILINE)


def schedule(scale, interval, good):
    """Scales and numbers of skipped steps of a run whose steps are good or not."""
    skipped = since = 0
    for ok in good:
        now = scale
        if ok:
            since += 1
            if since == interval:
                scale, since = min(scale * 2, 2.0**24), 0
        else:
            scale, since, skipped = max(scale / 2, 2.0**-24), 0, skipped + 1
        yield now, skipped


class LossScale(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def start(self, stack, ranks, *words, options=()):
        script = pathlib.Path(self.folder.name) / "loss_scale.lua"
        script.write_text((HERE / "loss_scale.lua").read_text().replace("STACK", stack))
        return orrery("run", "-n", ranks, *options, script, *words)

    def steps(self, stack, ranks, *words, options=()):
        done = self.start(stack, ranks, *words, options=options)
        self.assertEqual(done.code, 0, done.err)
        found = STEP.findall(done.out)
        self.assertGreater(len(found), 0, done.out)
        return found

    def test_changes_no_bits(self):
        """f32 has room for any scale."""
        for clip in ("clip=0", "clip=0.5"):
            plain = self.steps("nil", 1, clip)
            for how in ("loss_scale = 4096", "loss_scale = 2^-6", 'loss_scale = "dynamic", growth_interval = 2'):
                with self.subTest(clip=clip, how=how):
                    scaled = self.steps(f'strategy.precision{{ compute = "f32", {how} }}', 1, clip)
                    self.assertNotEqual(scaled[-1][2], "1")
                    self.assertEqual([(s[1], s[4]) for s in scaled], [(s[1], s[4]) for s in plain])

    def test_can_be_written_in_lua(self):
        """On the same edits: the digests, the scales and the skipped steps of the plugin."""
        words = ("bad=3,4,9", "boost=1e400")
        for ranks, before in ((1, ""), (2, "strategy.data{}, "), (3, "strategy.data{}, strategy.zero{ stage = 3 }, ")):
            mine = self.steps(f"{{ {before}{MINE} }}", ranks, *words)
            self.assertEqual(mine, self.steps('strategy.precision{ compute = "f32", loss_scale = 4096 }', 1, *words))
            self.assertEqual((mine[-1][2], mine[-1][3]), ("4096", "3"))

    def test_a_step_that_overflows_leaves_no_trace(self):
        """Parameters and momenta are those of a run that never saw its batch."""
        scaled = 'strategy.precision{ compute = "f32", loss_scale = "dynamic" }'
        for boost in ("boost=1e38", "boost=1e400"):  # the gradients alone, the loss as well
            with self.subTest(boost=boost):
                found = self.steps(scaled, 1, boost, "bad=3,4,9")
                without = self.steps("nil", 1, "left_out=3,4,9")
                self.assertEqual([s[4] for s in found if s[0] not in "349"], [s[4] for s in without])
                self.assertEqual(found[2][4], found[1][4])
                self.assertEqual(found[2][1].strip("-") in ("inf", "nan"), boost == "boost=1e400")

    def test_scale_follows_its_rule(self):
        bad = (1, 5, 6, 12, 13, 14, 19)
        words = ("steps=30", "boost=1e400", "bad=" + ",".join(map(str, bad)))
        for interval in (1, 3, 2000):
            scaled = f'strategy.precision{{ loss_scale = "dynamic", growth_interval = {interval} }}'
            for ranks, stack in ((1, scaled), (2, f"{{ strategy.data{{}}, strategy.zero{{ stage = 3 }}, {scaled} }}")):
                with self.subTest(interval=interval, ranks=ranks):
                    want = schedule(65536.0, interval, [step not in bad for step in range(1, 31)])
                    found = [(float(s[2]), int(s[3])) for s in self.steps(stack, ranks, *words)]
                    self.assertEqual(found, list(want))

    def test_all_ranks_skip(self):
        for optimizer in ("momentum", "adamw"):
            words = ("bad=3,4,9", f"optimizer={optimizer}")
            alone = self.steps(f"{{ {F16} }}", 1, *words)
            self.assertGreaterEqual(int(alone[-1][3]), 3)
            for ranks, stack in STACKS:
                with self.subTest(ranks=ranks, stack=stack, optimizer=optimizer):
                    self.assertEqual(self.steps(stack, ranks, *words), alone)

    def test_continues_with_its_scale(self):
        alone = self.steps(f"{{ {F16} }}", 1, "bad=3,4,9")
        for (ranks, stack), (after, other) in zip(STACKS, STACKS[3:]):
            saved = pathlib.Path(self.folder.name) / "checkpoint"
            with self.subTest(before=stack, after=other):
                self.steps(stack, ranks, "bad=3,4,9", "stop=5", f"save={saved}")
                self.assertEqual(self.steps(other, after, "bad=3,4,9", f"load={saved}"), alone[5:])

    def test_shows_skipped_steps(self):
        directory = pathlib.Path(self.folder.name) / "run"
        done = self.start('strategy.precision{ loss_scale = "dynamic" }', 1, "bad=2", "boost=1e400",
                          options=("--dir", directory))
        found = {}
        for line in (directory / "metrics.jsonl").read_text().splitlines():
            found.setdefault(json.loads(line)["step"], {}).update(json.loads(line))
        self.assertEqual([found[step]["skipped_steps"] for step in (1, 2, 3)], [0, 1, 1])
        self.assertEqual([found[step]["loss_scale"] for step in (1, 2, 3)], [65536, 65536, 32768])
        self.assertIsNone(found[2]["loss"])
        self.assertRegex(done.err, r"loss \d\.\d+ \(mean \d\.\d+\) skipped 1")

    def test_gives_up(self):
        every = ",".join(map(str, range(1, 80)))
        for how in ('loss_scale = "dynamic"', "loss_scale = 8"):
            done = self.start(f"strategy.precision{{ {how} }}", 1, "steps=80", "boost=1e400", f"bad={every}")
            self.assertEqual(done.code, 1)
            self.assertRegex(done.err, r"loss_scale.lua:\d+: the loss or the gradients of the last 50 steps up to 50 are "
                                       r"not finite, so that none has changed anything \(.*loss_scale \S+\): lower")

    def test_ranks_that_train_alone_are_refused(self):
        done = self.start(f"{{ strategy.average{{ every = 2 }}, {F16} }}", 2)
        self.assertEqual(done.code, 1)
        self.assertRegex(done.err, r"loss_scale.lua:\d+: axis 'average' lets ranks train alone, which would each need "
                                   r"another loss scale, that of strategy.precision being one for all: leave one")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
