# SPDX-License-Identifier: Apache-2.0
"""A published row, and what `orrery plan` says of it."""
import json
import os
import pathlib
import subprocess
import tempfile
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# The share of what a network's cards can do that collectives reach; `between` of the machine files has it, too.
REACHED = 0.88


class Row(NamedTuple):
    name: str  # STACK-what
    machine: str  # of scripts/orrery/machines
    script: str
    ranks: int
    words: dict  # arguments of the script
    seconds: float  # published, of a step
    memory: float = 0  # published bytes of the fullest rank; 0: none
    # Instead of the machine's: ranks_per_host, bits_of_host (a second), attention (FLOP/s of the stack's kernel).
    facts: dict = {}
    beside: int = 0  # bytes that the stack holds and the plan does not (beside.py), where memory was published
    memory_words: dict = {}  # arguments with which memory is planned, where the program has no such layout

    @property
    def stack(self):
        return self.name.split("-")[0]


def facts_of(row, faster=1):
    """The machine's file as JSON for this row. `faster`: how many times its rate of 16-bit products."""
    facts = json.loads((ROOT / f"scripts/orrery/machines/{row.machine}.json").read_text())
    for dtype in ("bf16", "f16"):
        facts["matrix_flops"][dtype] = [[flops, rate * faster] for flops, rate in facts["matrix_flops"][dtype]]
    facts["ranks_per_host"] = row.facts.get("ranks_per_host", facts["ranks_per_host"])
    if "attention" in row.facts:
        facts["attention_flops"] = dict.fromkeys(("bf16", "f16"), row.facts["attention"])
    if "bits_of_host" in row.facts:
        facts["between"]["bandwidth"] = REACHED * row.facts["bits_of_host"] / 8 / facts["ranks_per_host"]
    return facts


class Plan(NamedTuple):
    seconds: float  # of a step
    memory: int  # bytes of the fullest rank
    flops: float  # of a step, by convention: attention to all keys, backward as twice forward, nothing twice
    peak: float  # of all cards, by their maker


def planned(build, row, faster=1, **words):
    facts = facts_of(row, faster)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(facts, file)
        file.flush()
        arguments = (f"{name}={value}" for name, value in (row.words | words).items())
        done = subprocess.run(
            [pathlib.Path(build) / "orrery", "plan", "--json", "-n", str(row.ranks), "--machine", file.name,
             HERE / row.script, *arguments],
            env=os.environ | {"ORRERY_LUA_PATH": f"{ROOT / 'examples'}:{HERE}"}, stdout=subprocess.PIPE, check=True)
    step = json.loads(done.stdout)
    peak = facts["nominal_flops"]["bf16"] * row.ranks
    return Plan(step["step_seconds"], step["peak_bytes"], step["nominal_mfu"] * peak * step["step_seconds"], peak)


def planned_memory(build, row):
    """Bytes of the fullest rank of the stack that was timed."""
    return planned(build, row, **row.memory_words).memory + row.beside
