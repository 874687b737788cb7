# SPDX-License-Identifier: Apache-2.0
"""Communication, in turns: `local` on registered and on private memory and by TCP, the `mpi` plugin, and the
calls of Open MPI, MPICH and Gloo in a plain loop, each library at its best. Run by scripts/bench comm.

Microseconds are medians of all turns; a ratio is the median of neighbouring turns, with its spread: how many
times `local` is faster than the best MPI library, and so on. The best is the library and setting with the least
median: the least of several in each round would be the luckiest. All start anew several times, for a start may be
fast or slow as long as it runs. "barrier" is one of `local`, beside each row: a host that moves virtual CPUs makes
them near or far without notice.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import types

import machine
from contestants import HERE, Contestant, Failed

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "exchange")
# Open MPI's choices for shared memory that have won somewhere: no copies by the kernel, and algorithms of
# all_reduce: 3 recursive doubling, 4 ring, 6 Rabenseifner.
STAGED = "Open MPI staged"
TUNED = {"Open MPI": {}, STAGED: {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}} | {
    f"Open MPI {number}": {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
                           "OMPI_MCA_coll_tuned_allreduce_algorithm": str(number)} for number in (3, 4, 6)}


class Field:
    """The contestants of one number of ranks."""

    def __init__(self, build, ranks, rounds, most):
        self.build, self.ranks, self.rounds, self.most = build, ranks, rounds, most
        self.all = {}

    def add(self, name, words, environment=None, processes=1):
        made = Contestant(name, types.SimpleNamespace(name=f"{self.ranks} ranks"), self.ranks)
        for rank in range(processes):
            made.start([str(w).format(pipes=made.pipes, rank=rank) for w in words], os.sched_getaffinity(0),
                       ROOT | (environment or {}))
        self.all[name] = made

    def invite(self):
        bench = self.build / "tests/bench/bench_comm"
        for memory in ("registered", "private"):
            self.add(f"local {memory}", [bench, "{pipes}", self.ranks, "local", memory, self.most])
        self.add("local tcp", [bench, "{pipes}", self.ranks, "local", "private", self.most],
                 {"ORRERY_TEST_HOSTS": "abcdefgh"[:self.ranks]})
        self.add("Gloo", [sys.executable, HERE / "gloo_worker.py", "{pipes}", "{rank}", self.ranks],
                 processes=self.ranks)
        start = ["mpirun.openmpi", "--oversubscribe", *self.binding(), "-n", self.ranks]
        bare = self.build / "tests/bench/bench_mpi_openmpi"
        if shutil.which(start[0]) and bare.exists():
            self.add("mpi plugin", [*start, bench, "{pipes}", self.ranks, "mpi", "private", self.most])
            for name, settings in TUNED.items():
                self.add(name, [*start, bare, "{pipes}", self.most], settings)
        bare = self.build / "tests/bench/bench_mpi_mpich"
        if shutil.which("mpiexec.mpich") and bare.exists():
            self.add("MPICH", ["mpiexec.mpich", "-n", self.ranks, bare, "{pipes}", self.most])

    def binding(self):
        """As Orrery pins its ranks: each to a CPU where these are shared evenly. Who is moved about is fast
        or slow by the luck of its start."""
        cpus = len(os.sched_getaffinity(0))
        if self.ranks > cpus and self.ranks % cpus == 0:
            return ["--map-by", "core", "--bind-to", "core:overload-allowed"]
        return ["--bind-to", "none"]

    def names(self, op, size):
        """Who plays: an algorithm of all_reduce has nothing to say elsewhere, Gloo has small buffers."""
        names = [n for n in self.all if op == "all_reduce" or n == STAGED or not n.startswith("Open MPI ")]
        if size > 64 << 20:
            names = [n for n in names if n not in ("Gloo", "local tcp")]
        return names + (["limit"] if op == "all_reduce" and self.ranks == 2 else [])

    def turn(self, name, op, size):
        calls = max(3, min(2000, (64 << 20) // (size + 32768)))
        who, what = ("local private", "limit") if name == "limit" else (name, op)
        crowded = name == "MPICH" and self.ranks > len(os.sched_getaffinity(0))  # it waits without yielding
        slow = 8 if (crowded or name in ("Gloo", "local tcp")) and size < 1 << 20 else 1
        return self.all[who].ask(what, size, max(3, calls // slow))[0]

    def measure(self, op, size, turns):
        names = self.names(op, size)
        for name in [*names, "barrier"]:
            turns.setdefault(name, [])
        for _ in range(self.rounds):
            for name in names:
                turns[name].append(self.turn(name, op, size))
            turns["barrier"].append(self.all["local private"].ask("barrier", 0, 200)[0])

    def close(self):
        for contestant in self.all.values():
            contestant.close()


def ratio(slow, fast):
    pairs = [a / b for a, b in zip(slow, fast)]
    return {"median": statistics.median(pairs), "min": min(pairs), "max": max(pairs)}


def report(turns):
    libraries = [t for name, t in turns.items() if name.startswith(("Open MPI", "MPICH"))]
    found = {"us": {name: statistics.median(t) for name, t in turns.items()}, "ratios": {}}
    if libraries:
        best = min(libraries, key=statistics.median)
        for memory in ("registered", "private"):
            found["ratios"][f"MPI / {memory}"] = ratio(best, turns[f"local {memory}"])
        found["ratios"]["bare / plugin"] = ratio(turns["Open MPI"], turns["mpi plugin"])
    if "Gloo" in turns:
        found["ratios"]["Gloo / tcp"] = ratio(turns["Gloo"], turns["local tcp"])
    if "limit" in turns:
        for memory in ("registered", "private"):
            found["ratios"][f"limit / {memory}"] = ratio(turns["limit"], turns[f"local {memory}"])
    return found


def show(op, size, found):
    amount = f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB" if size >= 1024 else f"{size} B"
    print(f"{op:<15}{amount:>8}  " + "  ".join(f"{name} {us:.1f}" for name, us in found["us"].items()))
    print(" " * 25 + "  ".join(f"{name} {r['median']:.2f} ({r['min']:.2f}-{r['max']:.2f})"
                               for name, r in found["ratios"].items()))
    sys.stdout.flush()


def options():
    parser = argparse.ArgumentParser(prog="scripts/bench comm", description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--only", metavar="OPERATION,...", default=",".join(OPERATIONS))
    parser.add_argument("--sizes", default="8,512,4096,32768,262144,2097152,16777216,67108864,268435456",
                        help="bytes")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2, help="of each start")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[2] / "build")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the figures here")
    return parser.parse_args()


def play(field, turns):
    """One start of all; adds to the turns, and shows what they come to so far."""
    try:
        field.invite()
        (op, size), *_ = turns
        for name in field.all:
            field.turn(name, op, size)  # all have started and sleep
        for (op, size), taken in turns.items():
            field.measure(op, size, taken)
            show(op, size, report(taken))
    except Failed as failure:
        sys.exit(f"error: {failure}")
    finally:
        field.close()


def main():
    chosen = options()
    if not (chosen.build / "tests/bench/bench_comm").exists():
        sys.exit(f"error: build the contestants first: ninja -C {chosen.build} bench")
    sizes = list(map(int, chosen.sizes.split(",")))
    figures = {"machine": machine.describe(), "ranks": {}}
    print(", ".join(f"{key}: {value}" for key, value in figures["machine"].items()))
    for ranks in map(int, chosen.ranks.split(",")):
        turns = {(op, size): {} for op in chosen.only.split(",") for size in sizes}
        for start in range(1, chosen.starts + 1):
            print(f"\n{ranks} ranks, microseconds, start {start} of {chosen.starts}; "
                  f"others used {machine.busy_share(0.5):.0%} of the CPUs")
            play(Field(chosen.build.resolve(), ranks, chosen.rounds, max(sizes)), turns)
        figures["ranks"][ranks] = {f"{op} {size}": report(taken) for (op, size), taken in turns.items()}
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
