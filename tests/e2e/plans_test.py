# SPDX-License-Identifier: Apache-2.0
"""What is planned for random models under random stacks of strategies has the digests of plans.json: a change that is
to leave plans as they are is seen to do so.

Arguments: the build tree; a number of seeds, if others than the suite's are wanted; and "record", which writes the
digests of that many seeds to plans.json, or a file, with which another build is compared.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from program import orrery

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from expressions import Dice  # noqa: E402
from random_runs import model_of  # noqa: E402
from random_stacks import stack_of  # noqa: E402

CASES = int(sys.argv[2]) if len(sys.argv) > 2 else 60
RECORDS = pathlib.Path(__file__).resolve().parent / "plans.json"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
# Of each: ranks and words. Kernels are the reference's, whose plans are alike on all machines.
WRITTEN = {"gpt-3d": (8, "gpt-3d.lua"), "zero": (4, "zero.lua"), "pipeline": (4, "pipeline.lua"), "switch": (4, "switch.lua"),
           "server": (4, "server.lua"), "context": (4, "context.lua"), "compressed": (3, "compressed.lua")}


def digest(ranks, *words):
    """The whole; "refused" if the stack is."""
    done = orrery("plan", "-n", ranks, "--kernels", "reference", "--digest", *words)
    if done.code != 0:
        if done.code != 1:
            raise AssertionError(f"{words}: exit code {done.code}: {done.err}")
        return "refused"
    return re.search(r"^plan digest ([0-9a-f]{16})$", done.out, re.MULTILINE)[1]


def of_seed(seed, folder):
    model = model_of(seed)
    _, ranks, strategy = stack_of(Dice(7 * 10**6 + seed), model)
    script = pathlib.Path(folder) / f"{seed}.lua"
    script.write_text(model.script(strategy))
    return digest(ranks, script)


def found(cases):
    """Digests by name."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        # The examples would read the sources, of which the characters are their vocabulary.
        text = pathlib.Path(folder) / "text.txt"
        text.write_text("".join(map(chr, range(32, 127))) * 200)
        seeds = {str(seed): pool.submit(of_seed, seed, folder) for seed in range(cases)}
        return ({name: digest(ranks, EXAMPLES / word, f"data={text}") for name, (ranks, word) in WRITTEN.items()}
                | {seed: one.result() for seed, one in seeds.items()})


class Plans(unittest.TestCase):
    def test_they_are_as_recorded(self):
        want, got = json.loads(RECORDS.read_text()), found(CASES)
        self.assertEqual({n: d for n, d in got.items() if n in want and d != want[n]}, {})
        self.assertGreater(sum(d != "refused" for d in got.values()), len(got) * 0.5)


# A digest that is alike whatever changes would say nothing.
class Digest(unittest.TestCase):
    def test_it_tells_ranks_stacks_sizes_and_microbatches_apart(self):
        mlp = EXAMPLES / "mlp.lua"
        all_of = [digest(1, mlp), digest(2, mlp), digest(2, mlp, "hidden=40"), digest(2, EXAMPLES / "zero.lua"),
                  digest(4, EXAMPLES / "zero.lua")]
        self.assertEqual(len(set(all_of)), len(all_of), all_of)
        self.assertEqual(digest(2, mlp), all_of[1])

    def test_each_kind_of_rank_has_a_line(self):
        out = orrery("plan", "-n", 4, "--digest", EXAMPLES / "pipeline.lua").out
        kinds = re.findall(r"^  launches [0-9a-f]{16}  exchanges [0-9a-f]{16}  memory [0-9a-f]{16}  states ([0-9a-f]{16})  ranks? (.*)$",
                           out, re.MULTILINE)
        self.assertGreater(len(kinds), 1, out)
        self.assertGreater(len({states for states, _ in kinds}), 1, out)


if __name__ == "__main__":
    if sys.argv[3:4] == ["record"]:
        pathlib.Path(sys.argv[4] if len(sys.argv) > 4 else RECORDS).write_text(json.dumps(found(CASES), indent=0) + "\n")
    else:
        unittest.main(argv=sys.argv[:1])
