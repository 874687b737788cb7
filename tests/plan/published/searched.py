# SPDX-License-Identifier: Apache-2.0
"""What `orrery plan --search` finds where a layout was published, and what that layout is planned to take.

Arguments: the build tree, and names of rows (none: five of several axes).
"""
import os
import re
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import json

from more_rows import more_rows
from row import HERE, ROOT, facts_of, planned
from rows import rows

FIVE = ["sel-175B-sequence", "torchtitan-context-128k", "mcore-mixtral-8x7b", "torchtitan-tensor-70b",
        "kempner-70b-tp4-fsdp8"]
SECONDS = 75  # of the search; with what comes before and after it some 100 s of CPU


def searched(build, row, memory):
    """The search's text, and its seconds of CPU. It varies the strategies of the row's own stack.

    A rank has at least `memory` bytes: some published layouts ran though their plans say that they do not fit.
    """
    facts = facts_of(row)
    memory = max(int(facts["memory_bytes"]), memory + int(facts["reserved_bytes"]))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(facts, file)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [f"{build}/orrery", "plan", "-n", str(row.ranks), "--search", "--seconds", str(SECONDS), "--memory", str(memory),
             "--machine", file.name, HERE / row.script, *(f"{name}={value}" for name, value in row.words.items())],
            env=os.environ | {"ORRERY_LUA_PATH": f"{ROOT / 'examples'}:{HERE}"}, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(build, names):
    known = {row.name: row for row in [*rows(), *more_rows()]}
    for name in names or FIVE:
        row = known[name]
        plan = planned(build, row)
        text, cpu = searched(build, row, plan.memory)
        first = re.search(r"^ +1  (.*)$", text, re.MULTILINE)[1]
        print(f"{name}: published layout planned {plan.seconds:.4g} s, {plan.memory / 2**30:.1f} GiB\n"
              f"  found in {cpu:.0f} s of CPU: {first}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
