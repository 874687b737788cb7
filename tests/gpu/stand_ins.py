# SPDX-License-Identifier: Apache-2.0
"""Stand-ins with which a bundle holds its races where there is neither a card nor PyTorch: small workloads, and Orrery's
own CPU kernels in PyTorch's place. What they show is that a race is held, not who is fast.
"""
import contextlib

TORCH = '''
__version__ = "a stand-in"


class cuda:
    def is_available():
        return True
'''
SMALL = '''
import dataclasses
for name, work in WORKLOADS.items():
    if name.startswith("cuda-"):
        small = dict(vocab=64, positions=16, dim=16, heads=2, kv_heads=1, layers=1, hidden=24, width=8, blocks=1, experts=4)
        def shrunk(words):
            return {key: small.get(key, value) for key, value in words.items()}
        larger = work.larger
        if larger:
            shape = (16,) if len(larger[2]) == 1 else (3, 32, 32)
            larger = (larger[0], shrunk(larger[1]), shape, min(larger[3], 64))
        WORKLOADS[name] = dataclasses.replace(work, batch=4, ctx=work.ctx and 16, turn=(1, 1), rounds=1, compared=1,
                                              gpt=work.gpt and shrunk(work.gpt), larger=larger)
'''
PREPARE = '''
import dataclasses, json, os, pathlib, subprocess, sys
import contestants
from workloads import STEPS, WORKLOADS
work = WORKLOADS[sys.argv[1]]
work.directory.mkdir(parents=True, exist_ok=True)
shape, classes = (work.larger[2], work.larger[3]) if work.larger else ((work.ctx,), work.gpt["vocab"])
subprocess.run(["orrery", "run", pathlib.Path(__file__).with_name("fill.lua"), f"dir={work.directory}", f"rows={STEPS * work.batch}",
                "shape=" + "-".join(map(str, shape)), f"labels={classes}", *work.script_arguments()], check=True,
               env=os.environ | {"ORRERY_LUA_PATH": contestants.LUA_PATH})
[orrery] = [p for p in os.environ["PATH"].split(":") if pathlib.Path(p, "orrery").exists()]
peer = contestants.orrery_contestant("CPU", dataclasses.replace(work, device="cpu"), pathlib.Path(orrery))
losses = [loss * float(os.environ.get("STAND_IN_OFF", 1)) for loss in peer.ask("losses", 0, STEPS)]
peer.close()
(work.directory / "losses.json").write_text(json.dumps({"losses": losses}))
'''
FILL = '''
local orrery = require "orrery"
local args = orrery.args {
  dir = "", rows = 0, shape = "", labels = 0, batch = 0, compute = "", widths = "", model = "", vocab = 0, positions = 0, dim = 0,
  heads = 0, layers = 0, width = 0, hidden = 0, blocks = 0, classes = 0, kv_heads = 0, experts = 0,
}
orrery.seed(1)
for _, parameter in ipairs(orrery.parameters(require "bench.peer.model" (args))) do
  parameter:read():save(("%s/%s.npy"):format(args.dir, parameter.name))
end
local dims = {}
for n in args.shape:gmatch "%d+" do dims[#dims + 1] = tonumber(n) end
local images = #dims > 1
local function filled(depth, i)
  if depth > #dims then return images and math.sin(i * i) or 1 + (i * 7 + i // 3) % (args.labels - 1) end
  local rows = {}
  for j = 1, dims[depth] do rows[j] = filled(depth + 1, i * 31 + j) end
  return rows
end
local x, y = {}, {}
for i = 1, args.rows do x[i], y[i] = filled(1, i), images and i % args.labels or filled(1, i + 5) end
orrery.tensor(x, images and "f32" or "i32"):save(args.dir .. "/x.npy")
orrery.tensor(y, "i32"):save(args.dir .. "/y.npy")
'''
WORKER = '''
import os, sys
import contestants
from workloads import WORKLOADS
work = WORKLOADS[sys.argv[1]]
os.environ["ORRERY_LUA_PATH"] = contestants.LUA_PATH
words = ["orrery", "run", "--threads", "1", *contestants.worker_words(work, sys.argv[4])]
os.execvp("orrery", list(map(str, words)))
'''


@contextlib.contextmanager
def in_place_of_pytorch(bundle, packages):
    """The bundle's races are held with the stand-ins, and a Python with these packages has PyTorch's."""
    peer = bundle / "tests/bench/peer"
    before = {peer / name: (peer / name).read_text() for name in ("workloads.py", "prepare.py", "torch_worker.py")}
    new = {packages / "torch.py": TORCH, peer / "fill.lua": FILL, peer / "prepare.py": PREPARE, peer / "torch_worker.py": WORKER,
           peer / "workloads.py": before[peer / "workloads.py"] + SMALL}
    for path, text in new.items():
        path.write_text(text.lstrip("\n"))
    try:
        yield
    finally:
        for path in new:
            path.write_text(before[path]) if path in before else path.unlink()
