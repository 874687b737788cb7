# SPDX-License-Identifier: Apache-2.0
"""Races against the PyTorch found here, in turns, losses equal first (tests/bench/peer)."""
import json
import pathlib
import subprocess
import sys

from libraries import pythons
from machine_facts import has_gpu, said_by
from runs import last_line, row, run, without_gpu

# name -> (what is wanted: times as fast as PyTorch; tokens a second or None)
GOALS = {"cuda-gpt2": (1.2, 600_000), "cuda-gpt2-xl": (1.1, None), "cuda-mlp": (3.0, None),
         "cuda-char-gpt": (3.0, None)}


def python_with_torch():
    """A Python of this machine whose PyTorch finds the GPU, and that version."""
    for python in pythons():
        done = run(python, "-c", "import torch; print(torch.__version__ if torch.cuda.is_available() else '')")
        if done.returncode == 0 and done.stdout.strip():
            return python, done.stdout.strip()
    return "", ""


def races(root, facts, names, peer):
    if not has_gpu(facts):
        yield without_gpu("against compiled PyTorch")
        return
    python, version = python_with_torch()
    if not python:
        yield row("against compiled PyTorch", "skipped", "no PyTorch that finds a GPU in any Python on the PATH")
        return
    yield row("PyTorch", "passed", f"{version} of {python}")
    for name in names:
        done = run(python, root / "tests/gpu/races.py", name, peer, timeout=3000)
        if done.returncode:
            yield row(name, "failed", last_line(done))
            continue
        yield from rows_of(name, peer, json.loads(done.stdout.splitlines()[-1]))


def gpt2(root, facts):
    yield from races(root, facts, ["cuda-gpt2"], "compile")


def against_autotune(root, facts):
    """PyTorch tries kernels for minutes first."""
    yield from races(root, facts, GOALS, "compile-max")


def rows_of(name, peer, report):
    wanted, tokens_wanted = GOALS[name]
    for ours in report["ours"]:
        ratio, tokens = ours["ratio"], ours["tokens_per_s"]
        text = (f"{report['ms'][ours['name']]['best']:.3f} ms, PyTorch ({peer}) {report['ms'][peer]['best']:.3f}; "
                f"{ratio['best']:.2f} times as fast (turns {ratio['min']:.2f} to {ratio['max']:.2f}), wanted {wanted}")
        if tokens:
            text += f"; {tokens:,.0f} tokens/s" + (f", wanted {tokens_wanted:,}" if tokens_wanted else "")
        good = ratio["best"] >= wanted and (not tokens_wanted or tokens >= tokens_wanted)
        yield row(f"{name}: {ours['name']}", "passed" if good else "failed", text)
    memory = report["memory"]
    most = max(memory[ours["name"]] for ours in report["ours"])
    yield row(f"{name}: memory", "passed" if most <= memory[peer] else "failed", f"{most} MiB, PyTorch {memory[peer]} MiB")


def memory_of(contestant):
    """MiB that the driver counts for a contestant's process."""
    table = said_by("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
    used = {int(pid): int(mib) for pid, mib in (line.split(",") for line in table.splitlines() if "N/A" not in line)}
    return sum(used.get(p.pid, 0) for p in contestant.processes)


def race(name, peer):
    """In the Python that has PyTorch: prints the report as JSON."""
    root = pathlib.Path(__file__).resolve().parents[2]
    sys.path.insert(0, str(root / "tests/bench/peer"))
    from contestants import HERE, orrery_contestant, torch_contestant
    from race import Race
    from workloads import WORKLOADS
    work = WORKLOADS[name]
    subprocess.run([sys.executable, HERE / "prepare.py", name], check=True)
    contestants = [orrery_contestant(numerics, work, root / "prefix/bin", numerics=numerics) for numerics in ("exact", "fast")]
    contestants.append(torch_contestant(peer, work, peer))
    held = Race(work, contestants)
    memory = {}
    held.run(lambda: memory.update((c.name, memory_of(c)) for c in contestants))
    ours = [{"name": numerics, "ratio": held.ratio(peer, numerics),
             "tokens_per_s": work.batch * work.ctx / held.best(numerics) * 1000} for numerics in ("exact", "fast")]
    print(json.dumps(held.report() | {"ours": ours, "memory": memory}))


if __name__ == "__main__":
    race(*sys.argv[1:])
