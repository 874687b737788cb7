# SPDX-License-Identifier: Apache-2.0
"""Races against the PyTorch found here, in turns, losses equal first (tests/bench/peer)."""
import json
import pathlib
import subprocess
import sys
from dataclasses import dataclass

from libraries import pythons
from machine_facts import has_gpu, said_by
from runs import last_line, row, run, without_gpu


@dataclass(frozen=True)
class Goal:
    ratio: float  # times as fast as PyTorch in the best of these ways
    peers: tuple = ("compile",)
    tokens: int = 0  # a second; 0: whatever comes


GOALS = {
    "cuda-gpt2": Goal(1.28, tokens=600_000), "cuda-llama-4096": Goal(1.45), "cuda-llama-1024": Goal(1.25), "cuda-bert": Goal(1.2),
    "cuda-resnet18": Goal(1.0, ("compile-last",)), "cuda-resnet50": Goal(0.95, ("compile-last",)),
    "cuda-lstm": Goal(1.1, ("eager",)),  # cuDNN's, which compiling leaves as it is
    "cuda-switch": Goal(1.0), "cuda-gpt2-xl": Goal(1.1), "cuda-mlp": Goal(3.0), "cuda-char-gpt": Goal(3.0),
}
# One race of each family, in the order of their worth: a short name, its workload and seconds.
FAMILIES = {
    "gpt2": ("cuda-gpt2", 150), "llama-4096": ("cuda-llama-4096", 210), "llama-1024": ("cuda-llama-1024", 180),
    "bert": ("cuda-bert", 120), "resnet18": ("cuda-resnet18", 120), "resnet50": ("cuda-resnet50", 180),
    "lstm": ("cuda-lstm", 90), "switch": ("cuda-switch", 180), "gpt2-1.5b": ("cuda-gpt2-xl", 270),
}


def python_with_torch():
    """A Python of this machine whose PyTorch finds the GPU, and that version."""
    for python in pythons():
        done = run(python, "-c", "import torch; print(torch.__version__ if torch.cuda.is_available() else '')")
        if done.returncode == 0 and done.stdout.strip():
            return python, done.stdout.strip()
    return "", ""


def races(root, facts, names, peers=(), numerics=("exact", "fast")):
    if not has_gpu(facts):
        yield without_gpu("against compiled PyTorch")
        return
    python, version = python_with_torch()
    if not python:
        yield row("against compiled PyTorch", "skipped", "no PyTorch that finds a GPU in any Python on the PATH")
        return
    yield row("PyTorch", "passed", f"{version} of {python}")
    for name in names:
        ways = ",".join(peers or GOALS[name].peers)
        done = run(python, root / "tests/gpu/races.py", name, ways, ",".join(numerics), timeout=3000)
        if done.returncode:
            yield row(name, "failed", last_line(done))
            continue
        yield from rows_of(name, json.loads(done.stdout.splitlines()[-1]))


def gpt2(root, facts):
    yield from races(root, facts, ["cuda-gpt2"])


def against_autotune(root, facts):
    """PyTorch tries kernels for minutes first."""
    yield from races(root, facts, ["cuda-gpt2", "cuda-gpt2-xl", "cuda-mlp", "cuda-char-gpt"], ["compile-max"])


def of_family(name):
    """The race of that name among FAMILIES, with exact numerics alone: a part of a stage."""
    def part(root, facts):
        yield from races(root, facts, [FAMILIES[name][0]], numerics=("exact",))
    part.__name__ = name
    return part


def rows_of(name, report):
    goal, peer = GOALS[name], report["peer"]
    for ours in report["ours"]:
        ratio, tokens = ours["ratio"], ours["tokens_per_s"]
        text = (f"{report['ms'][ours['name']]['best']:.3f} ms, PyTorch ({peer}) {report['ms'][peer]['best']:.3f}; "
                f"{ratio['best']:.2f} times as fast (turns {ratio['min']:.2f} to {ratio['max']:.2f}), wanted {goal.ratio}")
        if tokens:
            text += f"; {tokens:,.0f} tokens/s" + (f", wanted {goal.tokens:,}" if goal.tokens else "")
        good = ratio["best"] >= goal.ratio and tokens >= goal.tokens
        yield row(f"{name}: {ours['name']}", "passed" if good else "failed", text)
    memory = report["memory"]
    most = max(memory[ours["name"]] for ours in report["ours"])
    yield row(f"{name}: memory", "passed" if most <= memory[peer] else "failed", f"{most} MiB, PyTorch {memory[peer]} MiB")
    seconds = ", ".join(f"{who} {s:.1f}" for who, s in report["first"].items())
    yield row(f"{name}: start", "measured", f"seconds until {report['steps']} steps were done: {seconds}")


def memory_of(contestant):
    """MiB that the driver counts for a contestant's process."""
    table = said_by("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
    used = {int(pid): int(mib) for pid, mib in (line.split(",") for line in table.splitlines() if "N/A" not in line)}
    return sum(used.get(p.pid, 0) for p in contestant.processes)


def race(name, peers, numerics):
    """In the Python that has PyTorch: prints the report as JSON."""
    root = pathlib.Path(__file__).resolve().parents[2]
    sys.path.insert(0, str(root / "tests/bench/peer"))
    from contestants import HERE, orrery_contestant, torch_contestant
    from race import Race
    from workloads import STEPS, WORKLOADS
    work, peers, numerics = WORKLOADS[name], peers.split(","), numerics.split(",")
    subprocess.run([sys.executable, HERE / "prepare.py", name], check=True)
    contestants = [orrery_contestant(n, work, root / "prefix/bin", numerics=n) for n in numerics]
    contestants += [torch_contestant(peer, work, peer) for peer in peers]
    held = Race(work, contestants)
    memory = {}
    held.run(lambda: memory.update((c.name, memory_of(c)) for c in contestants))
    peer = min(peers, key=held.best)
    ours = [{"name": n, "ratio": held.ratio(peer, n), "tokens_per_s": work.tokens / held.best(n) * 1000} for n in numerics]
    first = {c.name: c.first_answer_s for c in contestants}
    print(json.dumps(held.report() | {"ours": ours, "peer": peer, "memory": memory, "first": first, "steps": STEPS}))


if __name__ == "__main__":
    race(*sys.argv[1:])
