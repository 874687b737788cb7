#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults of one line in a copy of the tree and says which test sees each: the tests tested.

    tests/faults/plant.py DIR [FAULT...]

DIR gets a copy of the last commit and its build, and may be used again. All faults are built together; the environment variable
PLANTED_FAULT chooses one, none by default. A test has to be green without a fault and red with its own. Not part
of the suite: run it after tests have been made fewer or faster. The exit code is 1 if a fault stays unseen.
"""
import os
import pathlib
import subprocess
import sys
from dataclasses import dataclass

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TARGETS = ("orrery", "orrery-check", "kernels/cpu/orrery-kernel-cpu.so", "kernels/reference/orrery-kernel-reference.so",
           "plugins/orrery-comm-local.so", "tests/comm/comm_test", "tests/kernels/kernels_test")
STRATEGIES = ("data", "server", "zero", "pipeline", "precision", "recompute", "tensor")
# Known to every file that has a fault; of internal linkage, so that no two files share it.
HEAD = """#include <stdlib.h>
static const int planted_fault = getenv("PLANTED_FAULT") ? atoi(getenv("PLANTED_FAULT")) : 0;
#define PLANTED(number) (planted_fault == (number))
"""


@dataclass(frozen=True)
class EndToEnd:
    """A test of tests/e2e; of a sweep one case of so many."""
    module: str
    name: str
    stride: int = 8

    def command(self, build):
        program = ("import sys, unittest; sys.argv[1:] = sys.argv[1:2]; sys.path.insert(0, 'tests/e2e'); "
                   f"import {self.module} as m; unittest.main(module=m, argv=['test', '-f', '{self.name}'])")
        return [sys.executable, "-c", program, build]

    def __str__(self):
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Judge:
    """A test of `orrery check`."""
    plugin: str
    name: str
    stride: int = 1

    def command(self, build):
        return [f"{build}/orrery", "check", f"{build}/{self.plugin}", "--only", self.name]

    def __str__(self):
        return f"orrery check {pathlib.Path(self.plugin).name} --only {self.name}"


@dataclass(frozen=True)
class Cases:
    """Cases of a GoogleTest program."""
    program: str
    filter: str
    stride: int = 1

    def command(self, build):
        return [f"{build}/{self.program}", f"--gtest_filter={self.filter}"]

    def __str__(self):
        return f"{self.program} {self.filter}"


CPU, LOCAL = "kernels/cpu/orrery-kernel-cpu.so", "plugins/orrery-comm-local.so"
ROWS = EndToEnd("strategies_test", "Equality.test_every_row")

# What it is, the file, the text there, what stands in its place, the test that has to see it.
FAULTS = [
    ("members of a bucket overlap", "core/lower/kernels/bucket.cpp",
     "b.count += aligned(plan_.local.program.type(t.partial).elements());",
     "b.count += aligned(plan_.local.program.type(t.partial).elements()) - (PLANTED(1) ? kAlign : 0);", ROWS),
    ("a scattered piece loses its last element", "core/lower/kernels/bucket.cpp",
     "b.counts.push_back(end - begin);", "b.counts.push_back(end - begin - (PLANTED(2) && end > begin));", ROWS),
    ("shards of zero overlap by one", "core/partition/shard/units.cpp", "return {cuts[i], cuts[i + 1]};",
     "return {cuts[i] - (PLANTED(3) && cuts[i] > 0), cuts[i + 1]};", ROWS),
    ("scalars of stages arrive in reverse", "core/partition/stage/split.cpp", "{row.each[k]}, {scalars[k].v});",
     "{row.each[PLANTED(4) ? scalars.size() - 1 - k : k]}, {scalars[k].v});", ROWS),
    ("a slot too few: a stage takes the wrong microbatch", "core/lower/schedule/memory.cpp",
     "static_cast<int64_t>(microbatch - oldest + 1)",
     "static_cast<int64_t>(microbatch - oldest + !PLANTED(5))", ROWS),
    ("blocks of a cut sum are added in another order", "core/partition/shared/blocks.cpp", "if (adds_up(op))\n",
     "if (adds_up(op) && !PLANTED(6))\n", ROWS),
    ("tree sums are folded from left to right", "core/include/orrery/sdk/fold.hpp",
     "if (is_tree() && k > 1) {", "if (is_tree() && k > 1 && !PLANTED(7)) {",
     Judge(LOCAL, "comm.collectives")),
    ("a small all_reduce drops the last element", "plugins/comm/local/small.cpp",
     "(address_of(c.recv), in, size_, n);", "(address_of(c.recv), in, size_, n - PLANTED(8));",
     Judge(LOCAL, "comm.collectives")),
    ("a gather drops the last element of a piece", "plugins/comm/local/small.cpp", "std::memcpy(to, notice(r).data, n);",
     "std::memcpy(to, notice(r).data, n - (PLANTED(9) && r > 0 && n > 0 ? unit : 0));", Judge(LOCAL, "comm.collectives")),
    ("a receive takes the message of another tag", "plugins/comm/local/messages.h",
     "kind == other.kind && tag == other.tag;", "kind == other.kind && (PLANTED(10) || tag == other.tag);",
     Judge(LOCAL, "comm.messages")),
    ("a sum composed of messages drops the last element", "core/include/orrery/sdk/exchange.hpp",
     "hands_.fold(in, recv_, total_);", "hands_.fold(in, recv_, total_ - PLANTED(11));",
     Cases("tests/comm/comm_test", "*Composed.CollectivesEqualTheScalarModel/local*")),
    ("a maximum ignores the tail of a row", "kernels/cpu/reduce.cpp",
     "acc = F::join(acc, keep_first(load(x + i, k), start, k));",
     "acc = PLANTED(12) ? acc : F::join(acc, keep_first(load(x + i, k), start, k));",
     Judge(CPU, "kernel.values.reduce")),
    ("nodes of the tree over the leaves join late", "kernels/cpu/leaves.h", "for (int64_t i = k; i & 1; i >>= 1)",
     "for (int64_t i = k; i & 1 && (i == k || !PLANTED(13)); i >>= 1)", Judge(CPU, "kernel.leaves.reduce")),
    ("a softmax's sum misses the last element", "kernels/cpu/softmax.cpp",
     "row_sum<Vec<T>>(columns, [&](int64_t i, auto n) { return exp",
     "row_sum<Vec<T>>(columns - PLANTED(14), [&](int64_t i, auto n) { return exp", Judge(CPU, "kernel.values.softmax")),
    ("the reference's trees are cut in the middle", "kernels/reference/sums.h",
     "return int64_t(std::bit_floor(uint64_t(n - 1)));",
     "return PLANTED(15) ? n / 2 : int64_t(std::bit_floor(uint64_t(n - 1)));",
     Cases("tests/kernels/kernels_test", "*Order.*")),
    ("each rank draws the random numbers of the first", "core/partition/samples/random_keys.cpp",
     'if (op.attrs.has("rng_id")) copy',
     'if (op.attrs.has("rng_id") && !PLANTED(16)) copy', ROWS),
    ("segments of a cut layer overlap by one", "core/program/layout.cpp", "    at += n;\n  }\n  return ranges;",
     "    at += n - PLANTED(17);\n  }\n  return ranges;",
     EndToEnd("tensor_test", "Tensor.test_chunks_have_the_bits_of_one_process", 1)),
    ("groups of shards deal pieces wrongly", "core/partition/shard/units.cpp",
     "mesh.coordinate(replicas, rank));",
     "(PLANTED(18) ? 0 : mesh.coordinate(replicas, rank)));", ROWS),
    ("every other round of a composed sum goes to the wrong place", "core/include/orrery/sdk/exchange.hpp",
     "{q, recv_ + (begin(q) + (k - 1) * width_) * unit_, part(k - 1, q) * unit_, true}",
     "{q, recv_ + (begin(q) + (PLANTED(19) ? 0 : k - 1) * width_) * unit_, part(k - 1, q) * unit_, true}",
     Cases("tests/comm/comm_test", "*Composed.CollectivesEqualTheScalarModel/local*")),
    ("what waits on a disk comes back shifted", "core/store/spill_file.cpp",
     "::pwrite(fd_, at, std::min(count, kMostPerCall), static_cast<off_t>(offset))",
     "::pwrite(fd_, at, std::min(count, kMostPerCall), static_cast<off_t>(offset + 4 * PLANTED(20)))", ROWS),
    ("a rank's microbatches have one mean", "core/partition/samples/localize.cpp",
     "const int64_t here = rows_ / microbatches_.rows * ranks;",
     "const int64_t here = PLANTED(21) ? 1 : rows_ / microbatches_.rows * ranks;",
     EndToEnd("convolution_test", "Statistics.test_running_ones_are_those_of_microbatches", 1)),
    ("windows are added in reverse", "kernels/cpu/fold.cpp", "load(x + c + *i + *j + *k, n);",
     "load(x + c + *i + (PLANTED(22) ? inner.end[inner.begin - j - 1] : *j) + *k, n);",
     Cases("tests/kernels/kernels_test", "*Order.OfWindows*")),
]


def planted(path, text, fault, content):
    """The content of a file with a fault."""
    if content.count(text) != 1:
        raise ValueError(f"{path}: '{text}' is there {content.count(text)} times, not once: mend the fault")
    return content.replace(text, fault)


def plant(copy):
    """Writes the files with faults; those that are so already keep their age."""
    changed = {}
    for _, path, text, fault, _ in FAULTS:
        content = changed.get(path) or HEAD + (SOURCE / path).read_text()
        changed[path] = planted(path, text, fault, content)
    for path, content in changed.items():
        if content.find("#pragma once") > 0:
            content = "#pragma once\n" + content
        guarded = content.replace(HEAD, f"#ifndef PLANTED\n{HEAD}#endif\n", 1)
        if (copy / path).read_text() != guarded:
            (copy / path).write_text(guarded)


def build(copy):
    copy.mkdir(parents=True, exist_ok=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=SOURCE, stdout=subprocess.PIPE, check=True).stdout
    made_of = copy / "commit"
    if not made_of.exists() or made_of.read_bytes() != head:
        files = subprocess.run(["git", "archive", "HEAD"], cwd=SOURCE, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x", "-C", copy], input=files, check=True)
        made_of.write_bytes(head)
    plant(copy)
    targets = [*TARGETS, *(f"plugins/orrery-strategy-{name}.so" for name in STRATEGIES)]
    subprocess.run(["bash", "-c", '. scripts/lib.sh; build_tree build "$@"', "build", *targets], cwd=copy, check=True)


def passes(copy, test, fault):
    """The copy's tests, of the copy's program."""
    env = os.environ | {"PLANTED_FAULT": str(fault), "ORRERY_TEST_STRIDE": str(test.stride), "ORRERY_DEADLINE": "10"}
    done = subprocess.run(test.command("build"), cwd=copy, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    (copy / f"fault-{fault}.log").write_bytes(done.stdout)
    return done.returncode == 0


def main():
    if len(sys.argv) < 2:
        sys.exit("error: name the directory of the copy: tests/faults/plant.py DIR [FAULT...]")
    copy = pathlib.Path(sys.argv[1]).resolve()
    chosen = [int(number) for number in sys.argv[2:]] or range(1, len(FAULTS) + 1)
    build(copy)
    green, unseen = {}, []
    for number in chosen:
        what, path, _, _, test = FAULTS[number - 1]
        if test not in green:
            green[test] = passes(copy, test, 0)
        seen = green[test] and not passes(copy, test, number)
        verdict = "red" if seen else "UNSEEN" if green[test] else "red without any fault"
        print(f"{number:2}  {verdict:6}  {what} ({path}): {test}", flush=True)
        if not seen:
            unseen.append(number)
    print(f"{len(chosen) - len(unseen)} of {len(chosen)} faults seen")
    sys.exit(1 if unseen else 0)


if __name__ == "__main__":
    main()
