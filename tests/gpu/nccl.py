# SPDX-License-Identifier: Apache-2.0
"""NCCL with all ranks on one card, which they share (docs/nccl.md): every stack beside comm `local`, ranks that are
lost, sums in NCCL's order, other types, and the judge's tests of the backend.

A row for each fact. They are found several at once, so that one that hangs takes no more than its own time.
"""
import os
import re
from dataclasses import dataclass

from checks import verdicts
from lost import lost_ranks
from machine_facts import has_gpu
from runs import at_once, last_line, row, run, verdict_of, without_gpu

AT_ONCE = 4  # jobs that share the GPU
LIMIT = 45  # seconds that one job may take
DEADLINE = os.environ.get("ORRERY_DEADLINE", "15")
SETTINGS = {"ORRERY_NCCL_SHARE_GPU": "1", "ORRERY_PIN": "none", "ORRERY_NO_DIR": "1", "ORRERY_DEADLINE": DEADLINE}
NEAR = 1e-5  # relative: losses of f32 where NCCL adds in an order of its own


@dataclass(frozen=True)
class Case:
    stack: str
    ranks: int
    words: tuple = ()  # of stacks.lua
    same: bool = True  # the bits of `local`; otherwise NCCL adds, more than two terms in an order of its own

    def name(self, kernels):
        words = "".join(f", {word}" for word in self.words)
        return f"{self.stack} on {self.ranks} ranks{words}, {'device' if kernels == 'cuda' else 'host'} buffers"


STACKS = (
    Case("data", 4), Case("zero1", 2), Case("zero2", 3), Case("zero3", 4), Case("tensor", 2), Case("pipeline", 2),
    Case("server", 3), Case("expert", 2), Case("context", 4, same=False), Case("3d", 8), Case("topk", 2, ("dim=32", "layers=1")),
    Case("diloco", 2), Case("gather", 4),
)
# Sums that NCCL does, and elements of 2 and of 8 bytes.
MORE = (
    Case("data", 2, ("reduce=fast",)), Case("data", 4, ("reduce=fast",), same=False), Case("tensor", 4, same=False),
    Case("tensor", 2, ("compute=bf16",)), Case("zero3", 3, ("compute=bf16",)), Case("tensor", 2, ("compute=f16",)),
    Case("gather", 2, ("dtype=bf16",)), Case("gather", 2, ("dtype=f64",)),
)
# Of the judge, on buffers of the host; 1 to 5 ranks each.
JUDGED = ("comm.several_at_once", "comm.collectives", "comm.splits", "comm.siblings", "comm.messages", "comm.shared",
          "comm.mismatch", "comm.deadlock", "comm.deadline", "comm.peer_dies", "comm.peer_freezes", "comm.abort")


def job(root, kernels, comm, ranks, *words):
    """What starts ranks on the card."""
    return ["orrery", "run", "-n", ranks, "--threads", 1, "--kernels", kernels, "--comm", comm, root / "tests/gpu/stacks.lua", *words]


def settings(root):
    return SETTINGS | {"ORRERY_LUA_PATH": str(root / "tests")}


def said(done):
    """(losses, digest) of what stacks.lua printed."""
    found = re.search(r"^digest (\w+)", done.stdout, re.M)
    return [float(x) for x in re.findall(r"^step \d+ loss (\S+)", done.stdout, re.M)], found[1] if found else ""


def compared(case, kernels, wanted, found, done):
    """The row of a run with these losses and this digest, beside those that are wanted."""
    name, (losses, digest), (theirs, other) = case.name(kernels), wanted, found
    if done.returncode or not other:
        return verdict_of(name, False, done)
    if digest == other:
        return row(name, "passed", f"digest {other}, as with local")
    if case.same:
        return row(name, "failed", f"digest {other}, with local {digest}")
    off = max(abs(x - y) / abs(y) for x, y in zip(theirs, losses, strict=True))
    return row(name, "passed" if off <= NEAR else "failed", f"losses off by {off:.1e} of local's at most; NCCL adds in its own order")


def stack(root, kernels, case):
    """One stack, over `local` and over NCCL."""
    words = (f"stack={case.stack}", *case.words)
    local, nccl = (run(*job(root, kernels, comm, case.ranks, *words), timeout=LIMIT, **settings(root)) for comm in ("local", "nccl"))
    if local.returncode or not said(local)[1]:
        return [row(case.name(kernels), "failed", f"over local: exit {local.returncode}: {last_line(local)}")]
    return [compared(case, kernels, said(local), said(nccl), nccl)]


def judged(root, name):
    plugin = next(root.glob("prefix/lib/**/orrery-comm-nccl.so"))
    return verdicts(name, run("orrery", "check", plugin, "--json", "--only", name, timeout=2 * LIMIT, **settings(root)))


def why_off():
    """Why the backend does not work here, or ""."""
    found = re.search(r"^comm +nccl +\S+ +off .*\n +(.*)", run("orrery", "plugins").stdout, re.M)
    return found[1] if found else ""


def on_one_card(root, facts):
    if not has_gpu(facts):
        yield without_gpu("NCCL")
        return
    if why := why_off():
        yield row("NCCL", "skipped", why)
        return
    tasks = [lambda c=case: stack(root, "cuda", c) for case in STACKS]
    tasks += [lambda f=fact: [f(lambda *words: job(root, "cuda", "nccl", *words), settings(root))] for fact in lost_ranks]
    tasks += [lambda c=case: stack(root, "cuda", c) for case in MORE]
    tasks += [lambda n=name: judged(root, n) for name in JUDGED]
    tasks += [lambda c=case: stack(root, "cpu", c) for case in STACKS]
    for rows in at_once(AT_ONCE, tasks):
        yield from rows
