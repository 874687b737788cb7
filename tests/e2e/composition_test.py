# SPDX-License-Identifier: Apache-2.0
"""Strategies of different kinds in one stack, on four to eight ranks: each has the bits of the part of it whose
arithmetic is not one process', on the fewest ranks; the scripts fail on a rank that sends other bytes than planned.
The same stacks are planned on 512 ranks.

Arguments: the build tree.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from program import HERE, orrery
from sweep import Sweep, Training

GPT = ("strategies.lua", "model=gpt", "steps=3", "eval=false")
PLAIN = (*GPT, "drop=0")
SWITCH = ("switch.lua", "steps=2")
EIGHT = (*SWITCH, "microbatches=8")
FOUR = "chunks = 4"
OVER = 'strategy.expert{ over = "batch" }'

# (stack, ranks, the same arithmetic, its ranks, script and words)
ROWS = [
    (f"{{ strategy.pipeline{{ size = 2 }}, strategy.tensor{{ size = 2, {FOUR} }}, strategy.topk{{}} }}", 8,
     f"{{ strategy.tensor{{ size = 1, {FOUR} }}, strategy.topk{{}} }}", 2, GPT),
    ("{ strategy.diloco{ size = 2, every = 2 }, strategy.data{}, strategy.zero{ stage = 3 } }", 4,
     "{ strategy.diloco{ every = 2 } }", 2, GPT),
    ("{ strategy.diloco{ size = 2, every = 2 }, strategy.data{}, strategy.zero{ stage = 3, group = 2 } }", 8,
     "{ strategy.diloco{ every = 2 } }", 2, GPT),
    (f"{{ strategy.data{{ size = 2 }}, strategy.zero{{}}, strategy.expert{{ {FOUR} }} }}", 4,
     f"strategy.expert{{ {FOUR} }}", 1, SWITCH),
    (f"{{ strategy.expert{{ size = 2, {FOUR} }}, strategy.data{{}}, strategy.zero{{}} }}", 8,
     f"strategy.expert{{ {FOUR} }}", 1, SWITCH),
    (f"{{ strategy.data{{ size = 2 }}, {OVER}, strategy.zero{{}} }}", 8, "nil", 1, EIGHT),
    (f"{{ strategy.pipeline{{ size = 2 }}, strategy.data{{ size = 2 }}, {OVER}, strategy.zero{{}} }}", 8, "nil", 1, EIGHT),
    (f"{{ strategy.diloco{{ size = 2, every = 2 }}, strategy.data{{ size = 2 }}, {OVER}, strategy.zero{{}} }}", 8,
     "{ strategy.diloco{ size = 2, every = 2 } }", 2, EIGHT),
    *((f"{{ {hook}{{ size = 2 }}, strategy.data{{ size = 2 }}, {OVER} }}", 8, f"{hook}{{}}", 2, EIGHT)
      for hook in ("strategy.topk", "strategy.powersgd")),
    *((f"{{ strategy.data{{ size = 2 }}, strategy.context{{ {kind} size = 2, {FOUR} }}, strategy.tensor{{ size = 2, {FOUR} }} }}", 8,
       f"{{ strategy.context{{ {kind} size = 1, {FOUR} }}, strategy.tensor{{ size = 1, {FOUR} }} }}", 1, PLAIN)
      for kind in ("", "kind = 'ulysses',")),
    (f"{{ strategy.data{{ size = 2 }}, strategy.context{{ kind = 'ring', size = 2 }}, strategy.tensor{{ size = 2, {FOUR} }} }}", 8,
     f"{{ strategy.context{{ kind = 'ring', size = 2 }}, strategy.tensor{{ size = 1, {FOUR} }} }}", 2, PLAIN),
]

# (stack on 512 ranks, script and words)
LARGE = [
    ("{ strategy.pipeline{ size = 4 }, strategy.tensor{ size = 4 }, strategy.topk{} }", GPT),
    ("{ strategy.diloco{ size = 8 }, strategy.data{}, strategy.zero{ stage = 3 } }", GPT),
    ("{ strategy.data{ size = 64 }, strategy.zero{}, strategy.expert{} }", SWITCH),
    (f"{{ strategy.data{{ size = 64 }}, {OVER}, strategy.zero{{}} }}", SWITCH),
    *((f"{{ strategy.data{{ size = 32 }}, strategy.context{{ {kind} size = 4 }}, strategy.tensor{{}} }}", PLAIN)
      for kind in ("", "kind = 'ring',")),
]


class Composition(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def test_trained(self):
        sweep = Sweep(pathlib.Path(self.folder.name))
        pairs = [(Training(stack, ranks, tuple(words), script), Training(same, fewer, tuple(words), script))
                 for stack, ranks, same, fewer, (script, *words) in ROWS]
        sweep.run(one for pair in pairs for one in pair)
        for training, same in pairs:
            with self.subTest(stack=training.stack, ranks=training.ranks):
                expected = sweep.lines(same)
                self.assertRegex(expected[-1], r"^digest \w{32}$")
                self.assertEqual(sweep.lines(training), expected)

    def test_planned_on_512(self):
        for stack, (script, *words) in LARGE:
            with self.subTest(stack=stack):
                path = pathlib.Path(self.folder.name) / script
                path.write_text((HERE / script).read_text().replace("strategy = STACK", f"strategy = {stack}"))
                done = orrery("plan", "--details", "-n", 512, path, *words, "batch=1024", "microbatches=512")
                self.assertEqual((done.code, done.err), (0, ""))
                self.assertRegex(done.out, r"predicted by \w+: \d+ bytes sent")
                self.assertNotIn("but counted", done.out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
