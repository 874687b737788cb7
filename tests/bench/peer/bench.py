# SPDX-License-Identifier: Apache-2.0
"""Races Orrery against PyTorch on this machine; see docs/benchmarks.md. Run by scripts/bench."""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import machine
from contestants import CPUS, HERE, Failed, orrery_contestant, pinned, torch_contestant, \
    torch_environment
from cpu_share import reason
from floor import Floor
from race import Race
from workloads import WORKLOADS

RACES = ("gpt2", "char-gpt", "mlp", "gpt2-bf16", "resnet", "resnet50", "mobilenet", "convnext", "lstm", "bert",
         "microbatches", "ranks", "overlap", "bubbles", "bubbles4", "strategies", "strategies4")


def prepare(work):
    """Weights, batches and the losses to agree on, made pinned as PyTorch's contestants are."""
    done = subprocess.run(pinned(CPUS, [sys.executable, HERE / "prepare.py", work.name]),
                          env=os.environ | torch_environment(len(CPUS)))
    if done.returncode:
        raise Failed(f"prepare.py {work.name} ended with {done.returncode}")


def against_torch(work, build):
    """Orrery and PyTorch in its ways; the ratio is to the best of these. With bf16 also to our own f32; with bf16 and
    convolutions also of fast numerics to PyTorch's best."""
    images = len(work.larger) > 0 and len(work.larger[2]) > 1
    peers = ["eager", "compile"] + (["eager-last", "compile-last"] if images else [])
    f32, fast = ["orrery f32"] * work.half, ["orrery fast"] * (work.half or images)
    race = Race(work, [orrery_contestant("orrery", work, build)] +
                [orrery_contestant(name, work, build, compute="f32") for name in f32] +
                [orrery_contestant(name, work, build, numerics="fast") for name in fast] +
                [torch_contestant(kind, work, kind) for kind in peers])
    floor = Floor(work, build) if work.linears() and not work.half else None
    try:
        race.run(each_round=floor.take_turn if floor else lambda: None)
    finally:
        if floor:
            floor.close()
    peer = min(peers, key=race.best)
    report = race.report() | {"ratios": [race.ratio(slow, "orrery") for slow in [peer] + f32] +
                              [race.ratio(peer, name) for name in fast]}
    if floor:
        report["floor"] = floor.report()
        report["orrery_over_floor"] = race.best("orrery") / sum(report["floor"].values())
    return report


def microbatches(work, build):
    race = Race(work, [orrery_contestant("microbatches=1", work, build),
                       orrery_contestant("microbatches=4", work, build, microbatches=4)])
    race.run()
    return race.report() | {"ratios": [race.ratio("microbatches=1", "microbatches=4")]}


def ranks(work, build):
    two = dict(ranks=2, microbatches=0)
    race = Race(work, [orrery_contestant("1 rank x 2 threads", work, build, microbatches=0),
                       orrery_contestant("2 ranks x 1 thread", work, build, **two),
                       orrery_contestant("the same, zero 1", work, build, stack="zero1", **two),
                       orrery_contestant("the same, tensor", work, build, stack="tensor", ranks=2),
                       torch_contestant("DDP over Gloo", work, "ddp", ranks=2)])
    race.run()
    return race.report() | {"ratios": [race.ratio("1 rank x 2 threads", "2 ranks x 1 thread"),
                                       race.ratio("1 rank x 2 threads", "the same, zero 1"),
                                       race.ratio("1 rank x 2 threads", "the same, tensor"),
                                       race.ratio("DDP over Gloo", "2 ranks x 1 thread")]}


def strategies(work, build, ranks):
    ours = [orrery_contestant(name, work, build, ranks=ranks, microbatches=0, stack=name.replace(" ", ""))
            for name in ("data", "zero 1", "zero 3")]
    race = Race(work, ours + [torch_contestant("DDP over Gloo", work, "ddp", ranks=ranks),
                              torch_contestant("FSDP2 over Gloo", work, "fsdp", ranks=ranks)])
    race.run()
    return race.report() | {"ratios": [race.ratio("data", "zero 1"), race.ratio("data", "zero 3"),
                                       race.ratio("DDP over Gloo", "FSDP2 over Gloo"),
                                       race.ratio("DDP over Gloo", "data"),
                                       race.ratio("FSDP2 over Gloo", "zero 3")]}


# Races of other models than GPT-2.
SMALLER = {"overlap": "wide-gpt", "bubbles": "wide-gpt", "bubbles4": "deep-gpt", "strategies4": "wide-gpt"}
LINK, NO_LINK = 400_000_000, 10**12  # bytes a second; over any link nothing is shared in memory


def overlap(work, build):
    """The same step over links as fast as memory and over slow ones: how much of what these take is hidden."""
    names = {"data": "data", "zero 3": "zero3"}
    all_of = {(name, link): orrery_contestant(name + (", slow links" if link == LINK else ""), work, build, ranks=2,
                                              microbatches=0, stack=stack, link=link)
              for name, stack in names.items() for link in (NO_LINK, LINK)}
    link_ms = {}
    race = Race(work, list(all_of.values()))
    race.run(lambda: link_ms.update((name, all_of[name, LINK].ask("bytes", 1, 1)[0] / LINK * 1000) for name in names))
    hidden = {name: 1 - (race.median(name + ", slow links") - race.median(name)) / link_ms[name] for name in names}
    return race.report() | {"ratios": [], "link": LINK, "link_ms": link_ms, "hidden": hidden}


SCHEDULES = ("gpipe", "1f1b", "interleaved", "looped", "zb1", "zbv")


def bubbles(work, build, ranks, microbatches):
    """Stages of one thread: the idle share that a schedule has by its paper, and the one measured."""
    share = min(1, len(CPUS) / ranks)
    if share < 1 and reason():
        raise Failed(f"{ranks} ranks on {len(CPUS)} CPUs need a share of a CPU each: {reason()}")
    all_of = {name: orrery_contestant(name, work, build, ranks=ranks, microbatches=microbatches, stack="pipeline",
                                      schedule=name, cpu=share) for name in SCHEDULES}
    idle = {}

    def measure():
        for name, contestant in all_of.items():
            if share < 1:
                contestant.share_cpus(share)
            idle[name] = min(contestant.ask("idle", 1, 8))

    race = Race(work, list(all_of.values()))
    race.run(measure)
    counted = {name: bubble_of(name, build, ranks, microbatches) for name in SCHEDULES}
    return race.report() | {"ratios": [], "idle": idle, "counted": counted}


def bubble_of(schedule, build, ranks, microbatches):
    words = [build / "orrery", "plan", "--details", "-n", ranks, HERE.parents[2] / "examples/pipeline.lua", f"schedule={schedule}",
             f"microbatches={microbatches}", "data=" + str(HERE / "bench.py")]
    text = subprocess.run(list(map(str, words)), text=True, stdout=subprocess.PIPE, check=True).stdout
    return float(re.search(r"bubble ([\d.]+) % of the step", text)[1]) / 100


def run(name, build, rounds):
    work = WORKLOADS.get(name, WORKLOADS[SMALLER.get(name, "gpt2")])
    prepare(work)
    if rounds:
        work = dataclasses.replace(work, rounds=rounds)
    special = {"microbatches": microbatches, "ranks": ranks, "overlap": overlap,
               "bubbles": lambda *of: bubbles(*of, ranks=2, microbatches=4),
               "bubbles4": lambda *of: bubbles(*of, ranks=4, microbatches=8),
               "strategies": lambda *of: strategies(*of, ranks=2),
               "strategies4": lambda *of: strategies(*of, ranks=4)}
    return special.get(name, against_torch)(work, build)


def show(name, report):
    print(f"{name}: {report['workload']}, {report['rounds']} rounds")
    for who, ms in report["ms"].items():
        print(f"  {who:<20} {ms['best']:10.3f} ms/step best {ms['median']:10.3f} median")
    if "floor" in report:
        floor = report["floor"]
        print(f"  {'floor':<20} {sum(floor.values()):10.3f} = products {floor['products_ms']:.3f} + "
              f"AdamW {floor['adamw_ms']:.3f}; orrery is at {report['orrery_over_floor']:.2f} of it")
    for who, share in report.get("hidden", {}).items():
        print(f"  {who}: links of {report['link'] / 1e6:.0f} MB/s take {report['link_ms'][who]:.0f} ms a step, "
              f"{share:.0%} of them hidden")
    for who, share in report.get("idle", {}).items():
        print(f"  {who:<12} idle {share:.1%} of the step, {report['counted'][who]:.1%} by its schedule")
    for ratio in report["ratios"]:
        print(f"  {ratio['of']}: {ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f}), "
              f"of the bests {ratio['best']:.2f}")
    if report["others_busy"] > 0.1:
        print(f"  VOID: other programs took up to {report['others_busy']:.0%} of the CPUs meanwhile")
    sys.stdout.flush()


def options():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.split(";")[0])
    parser.add_argument("--only", metavar="RACE,...", default=",".join(RACES),
                        help=f"some of {', '.join(RACES)}")
    parser.add_argument("--rounds", type=int, default=0, help="turns of each contestant")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[2] / "build")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the figures here")
    chosen = parser.parse_args()
    chosen.only = chosen.only.split(",")
    for name in chosen.only:
        if name not in RACES:
            parser.error(f"there is no race '{name}'; there are: {', '.join(RACES)}")
    if not (chosen.build / "orrery").exists():
        parser.error(f"{chosen.build}/orrery does not exist: build it first (ninja -C {chosen.build})")
    return chosen


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # contestants are closed on the way out
    chosen = options()
    about, reports, failed = machine.describe(), {}, False
    print(", ".join(f"{key}: {value}" for key, value in about.items()))
    for name in chosen.only:
        try:
            reports[name] = run(name, chosen.build.resolve(), chosen.rounds)
            show(name, reports[name])
        except Failed as failure:
            failed = True
            reports[name] = {"error": str(failure)}
            print(f"{name}: {failure}", file=sys.stderr)
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": about, "races": reports}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
