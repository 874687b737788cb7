# SPDX-License-Identifier: Apache-2.0
"""Races against the PyTorch found here, in turns, losses equal first (tests/bench/peer)."""
import json
import pathlib
import subprocess
import sys

from checks import last_line, row, run
from machine_facts import has_gpu, said_by

# name -> (what is wanted: times as fast as PyTorch; tokens a second or None)
GOALS = {"cuda-gpt2": (1.2, 600_000), "cuda-gpt2-xl": (1.1, None), "cuda-mlp": (3.0, None),
         "cuda-char-gpt": (3.0, None)}


def run_races(root, facts):
    if not has_gpu(facts) or not facts["python"]:
        yield row("against compiled PyTorch", "skipped",
                  "no PyTorch that finds a GPU" if has_gpu(facts) else "no NVIDIA device here")
        return
    for name in GOALS:
        done = run(facts["python"], root / "tests/gpu/races.py", name, timeout=3000)
        if done.returncode:
            yield row(name, "failed", last_line(done))
            continue
        yield from rows_of(name, json.loads(done.stdout.splitlines()[-1]))


def rows_of(name, report):
    wanted, tokens_wanted = GOALS[name]
    ratio, tokens = report["ratio"], report["tokens_per_s"]
    text = (f"{report['ms']['orrery']['best']:.3f} ms, compiled PyTorch {report['ms']['compile']['best']:.3f}; "
            f"{ratio['best']:.2f} times as fast (turns {ratio['min']:.2f} to {ratio['max']:.2f}), wanted {wanted}")
    if tokens:
        text += f"; {tokens:,.0f} tokens/s" + (f", wanted {tokens_wanted:,}" if tokens_wanted else "")
    good = ratio["best"] >= wanted and (not tokens_wanted or tokens >= tokens_wanted)
    yield row(name, "passed" if good else "failed", text)
    ours, theirs = report["memory"]["orrery"], report["memory"]["compile"]
    yield row(f"{name}: memory", "passed" if ours <= theirs else "failed", f"{ours} MiB, PyTorch {theirs} MiB")


def memory_of(contestant):
    """MiB that the driver counts for a contestant's process."""
    table = said_by("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
    used = {int(pid): int(mib) for pid, mib in (line.split(",") for line in table.splitlines() if "N/A" not in line)}
    return sum(used.get(p.pid, 0) for p in contestant.processes)


def race(name):
    """In the Python that has PyTorch: prints the report as JSON."""
    root = pathlib.Path(__file__).resolve().parents[2]
    sys.path.insert(0, str(root / "tests/bench/peer"))
    from contestants import HERE, orrery_contestant, torch_contestant
    from race import Race
    from workloads import WORKLOADS
    work = WORKLOADS[name]
    subprocess.run([sys.executable, HERE / "prepare.py", name], check=True)
    contestants = [orrery_contestant("orrery", work, root / "prefix/bin"),
                   torch_contestant("compile", work, "compile")]
    held = Race(work, contestants)
    memory = {}
    held.run(lambda: memory.update((c.name, memory_of(c)) for c in contestants))
    tokens = work.batch * work.ctx / held.best("orrery") * 1000
    print(json.dumps(held.report() | {"ratio": held.ratio("compile", "orrery"), "memory": memory,
                                      "tokens_per_s": tokens}))


if __name__ == "__main__":
    race(sys.argv[1])
