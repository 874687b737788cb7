# SPDX-License-Identifier: Apache-2.0
"""What a user can get wrong ends with one clear sentence: place, value, remedy, exit code.

A fragment "HERE" stands for the script's line that is marked "-- here". Arguments: the build tree.
"""
import os
import pathlib
import re
import resource
import shutil
import sys
import tempfile
import unittest

from program import BUILD, HERE, SOURCE, orrery

BAD = HERE / "bad"
REGRESSION, GPT = SOURCE / "examples/regression.lua", SOURCE / "examples/gpt.lua"


def place(path, text):
    """name:line: of the first line that holds a text."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if text in line:
            return f"{path.name}:{number}:"
    raise AssertionError(f"{path} has no line with {text}")


def marked(script, mark="here"):
    return place(BAD / script, f"-- {mark}")


# Words after `orrery`, the exit code, what stderr must hold.
USAGE = [
    (["run", "nosuch.lua"], 2, ["nosuch.lua: there is no such script"]),
    (["run", "-n", "2", "nosuch.lua"], 2, ["nosuch.lua: there is no such script"]),
    (["run", "syntax.lua"], 1, ["HERE", "<name> expected near '='"]),
    (["run", "global.lua"], 1, ["HERE", "undeclared variable 'undeclared_name'"]),
    (["run", "-n", "0", REGRESSION], 2, ["-n 0", "at least 1"]),
    (["run", "-n", "-3", REGRESSION], 2, ["-n -3", "at least 1"]),
    (["plan", "-n", "0", REGRESSION], 2, ["-n 0", "at least 1"]),
    (["run", "-n", "two", REGRESSION], 2, ["two"]),
    (["run", "-n", "100000", REGRESSION], 2, ["-n 100000", "1 to 1024"]),
    (["run", "--thread", "2", REGRESSION], 2, ["'--thread'", "did you mean '--threads'?"]),
    (["run", "--threads", "-1", REGRESSION], 2, ["--threads -1", "at least 1"]),
    (["run", "--kernels", "cup", REGRESSION], 2, ["kernel 'cup'", "did you mean 'cpu'?"]),
    (["run", "--kernels", "local", REGRESSION], 2, ["kernel 'local'", "it is a comm plugin", "name one of"]),
    (["run", "-n", "3", "--kernels", "cup", REGRESSION], 2, ["did you mean 'cpu'?"]),
    (["plan", "--kernels", "refrence", REGRESSION], 2, ["did you mean 'reference'?"]),
    (["run", "--comm", "lcoal", REGRESSION], 2, ["comm 'lcoal'", "did you mean 'local'?"]),
    (["run", "-n", "2", "--comm", "lcoal", REGRESSION], 2, ["did you mean 'local'?"]),
    (["run", "init_comm.lua"], 1, ["HERE", "comm 'lcoal'", "did you mean 'local'?"]),
    (["run", "strategy_name.lua"], 1, ["HERE", "'dtaa'", "did you mean 'data'?"]),
    (["run", "strategy_option.lua"], 1, ["HERE", "'siez'", "did you mean 'size'?"]),
    (["run", "strategy_unnamed.lua"], 1, ["HERE", "strategy.zero: option 1 has no name: write { name = value }"]),
    (["run", "op_unnamed.lua"], 1, ["HERE", "op: option 1 of 'scaled' has no name: write options = { name = default }"]),
    (["run", "compile_option.lua"], 1, ["HERE", "'microbatch'", "did you mean 'microbatches'?"]),
    (["run", REGRESSION, "step=3"], 2, ["'step'", "did you mean 'steps'?"]),
    (["run", REGRESSION, "batch=abc"], 2, ["batch=abc", "an integer"]),
    (["run", REGRESSION, "batch=0"], 1, ["regression.lua:", "size 0", "at least 1"]),
]

MODEL = [
    (["run", "inner_sizes.lua"], 1, ["HERE", "matmul", "inner sizes differ: [8,2] x [8,2]"]),
    (["run", "dtype.lua"], 1, ["HERE", "cross_entropy", "f32"]),
    (["run", "label.lua"], 1, ["HERE", "label 3", "the 3 classes (0..2)"]),
    (["run", "-n", "2", "label.lua"], 1, ["HERE", "label 3", "the 3 classes (0..2)", "rank 1"]),
    (["run", "upvalue.lua"], 1, ["HERE", "'scale'", "was 1", "is 2 now", "orrery.input"]),
    (["run", "not_finite.lua"], 1, ["HERE", "the loss of step 1 is", "learning rate"]),
    (["run", "-n", "4", REGRESSION, "microbatches=2"], 1,
     ["regression.lua:", "microbatches = 2 are too few to deal to 4 ranks"]),
    (["plan", "-n", "4", REGRESSION, "microbatches=2"], 1, ["microbatches = 2", "at least 4"]),
    *[(["run", "-n", "2", "part_of_classes.lua", f"label={label}"], 1, ["HERE", f"label {label} in row 0"])
      for label in (-100, 6, 99)],
    *[(["run", "-n", str(ranks), "part_of_classes.lua", "ignore=0"], 1,
       [marked("part_of_classes.lua", "compile"), "the loss of step 1 is nan", "every label is ignored"])
      for ranks in (1, 2)],
    (["run", GPT, "dim=32", "heads=3", "data=lib.lua", "ctx=8"], 1,
     [place(GPT, "nn.attention(") + " GPT.blocks.1: attention", "32", "3 heads"]),
]

def stack(case, *fragments, ranks=2, code=1):
    return (["run", "-n", str(ranks), "strategy_stack.lua", f"case={case}"], code,
            ["strategy_stack.lua:", *fragments])


STACKS = [
    stack("unmatched", "'nosuch' matches no module", "a, b, c, d"),
    stack("left_out", "module 'd' belongs to no chunk"),
    stack("twice", "module 'b' is named in chunks 1 and 2"),
    stack("order", "needs what chunk 2 computes", "in the order of their use"),
    stack("plain", "no modules to divide", "make the model one by nn.sequential or nn.module"),
    stack("too_many", "4 modules (a, b, c, d), too few for 6 chunks", ranks=6),
    stack("size", "axis 'pipe' of size 3 does not fit: 2 of 2 ranks are left"),
    stack("schedule", "there is no schedule '1f2b'", "1f1b"),
    stack("chunks", "chunks = 2 does not go with schedule '1f1b'"),
    stack("both", "strategy.accumulate cannot join a stack", "an order of microbatches"),
    stack("no_data", "strategy.zero needs a strategy before it that provides shares of the batch: add strategy.data before it"),
    stack("exchanged", "strategy.topk exchanges the gradients of axis 'topk' by a rule of its own", "put a strategy that deals the batch before this one"),
    stack("exchanged_groups", "strategy.topk exchanges the gradients of axis 'topk'", "put a strategy that deals the batch"),
    stack("apart", "the ranks of axis 'average' train apart", "put a strategy that deals the batch"),
    stack("stage", "there is no stage 4", "1, 2, 3"),
    stack("units", "units 'nosuch' matches no parameter; there are modules a, b, c, d"),
    stack("ranks", "ranks has 4 entries for 3 parts"),
    stack("hole", "rank 1 gets no part"),
    stack("cell", "returned 'G0'", "F, B or W"),
    stack("waits", "microbatch 0 is due"),
    stack("own_class", "class 'exactly'", "exact, stale and approx"),
    stack("own_field", "unknown field 'transfrom'"),
    stack("own_option", "strategy.own: unknown option 'wide'", "did you mean 'wyde'?"),
    stack("own_type", "strategy.own: wide is 4, expected a value like all"),
    stack("own_axis", "there is no axis 'nowhere'"),
    stack("own_role", "there is no role 'parameters'", "param"),
    stack("own_kept", "this program is closed"),
    stack("own_stages", "deals the model to stages but defines no schedule"),
]

RANKS = [
    (["run", "-n", "2", "differ.lua"], 1, ["HERE", "different programs", "rank 1", "world.rank"]),
    *((["run", "-n", "2", "batch_size.lua", *options], 1,
       ["HERE", "batches of different sizes (rank 0: 2 rows of 'x', f32[2,2], 2 rows of 'y', i32[2]; rank 1: 3 rows of 'x', "
        "f32[3,2], 3 rows of 'y', i32[3]): every rank names the whole batch"])
      for options in ((), ("before=2",), ("before=2", "known=true"), ("eval=true",))),
    (["run", "-n", "2", "differ_in_words.lua"], 1,
     ["HERE", "ranks post different operations", "allreduce", "barrier"]),
    (["run", "-n", "2", "leaves_early.lua"], 75, ["HERE", "rank 1 died"]),
    (["run", "-n", "2", "raises_on_one.lua"], 1,
     ["HERE", "cheese", "orrery: rank 1 failed with exit code 1"]),
]


class Refused(unittest.TestCase):
    def check(self, words, code, fragments, **options):
        with self.subTest(words=words):
            script = next((str(w) for w in words if str(w).endswith(".lua")), "")
            done = orrery(*words, cwd=BAD, timeout=60, ORRERY_DEADLINE="5", **options)
            self.assertEqual(done.code, code, done.err)
            for fragment in fragments:
                self.assertIn(marked(script) if fragment == "HERE" else fragment, done.err)
            self.assertNotIn("stack traceback", done.err)
            self.assertEqual(done.orphans(), [])
            self.assertEqual([n for n in os.listdir("/dev/shm") if "orrery" in n], [])

    def test_usage(self):
        for case in USAGE:
            self.check(*case)

    def test_model(self):
        for case in MODEL:
            self.check(*case)

    def test_stacks(self):
        for case in STACKS:
            self.check(*case)

    def test_ranks_that_disagree(self):
        for case in RANKS:
            self.check(*case)

    def test_data_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("empty", ""), ("short", "hi\n")):
                (pathlib.Path(folder) / name).write_text(text)
            for name, why in (("missing", "cannot be read: No such file"), ("empty", "is empty"),
                              ("short", "there are 3 tokens, windows of 64 need at least 65")):
                path = f"{folder}/{name}"
                self.check(["run", GPT, f"data={path}"], 1, [place(GPT, "data.text("), path, why])

    def test_plugins(self):
        whole = (BUILD / "kernels/cpu/orrery-kernel-cpu.so").read_bytes()
        files = {"truncated": whole[:5000], "text": b"text",
                 "symbolless": (BUILD / "orrery").read_bytes()}
        with tempfile.TemporaryDirectory() as folder:
            for name, data in files.items():
                path = pathlib.Path(folder) / f"orrery-kernel-{name}.so"
                path.write_bytes(data)
                self.check(["run", "--kernels", name, REGRESSION], 69, [str(path)],
                           ORRERY_PLUGIN_PATH=folder)


    # Whatever needs the memory first: a reader, the script, the arena, the memory that ranks share.
    def test_a_limit_of_memory_is_named(self):
        text = SOURCE / "README.md"
        seen = set()
        for mebibytes in range(24, 200, 8):
            limit = mebibytes << 20
            done = orrery("run", GPT, f"data={text}", "dim=256", "steps=1", "sample=0",
                          limit=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            with self.subTest(mebibytes=mebibytes):
                if done.code == 0:
                    break
                self.assertNotIn("bad_alloc", done.err)
                if "gpt.lua" in done.err:  # else the program itself could not start
                    self.assertRegex(done.err, rf"the limit of this process is {mebibytes}(\.0)? MiB \(ulimit -v\)")
                    seen.add(re.sub(r"[0-9.]+", "N", done.err))
        self.assertEqual(done.code, 0, done.err)
        self.assertGreaterEqual(len(seen), 2, seen)


class Accepted(unittest.TestCase):
    # The remedies of `exchanged` and `apart`.
    def test_zero_beside_gradients_that_are_exchanged(self):
        for case in ("exchanged_data", "apart_data"):
            done = orrery("run", "-n", 4, "strategy_stack.lua", f"case={case}", cwd=BAD)
            self.assertEqual(done.code, 0, done.err)

    def test_unused_and_shared_parameters(self):
        for ranks in (1, 2):
            done = orrery("run", "-n", ranks, "unused.lua", cwd=BAD)
            self.assertEqual((done.code, done.out), (0, "unused unchanged\n"), done.err)


SHARD = "1/shard-00001-model-00001-of-00001.safetensors"


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.saved = self.folder / "saved"
        done = orrery("run", "save.lua", f"save={self.saved}", cwd=BAD)
        self.assertEqual(done.code, 0, done.err)

    def refused(self, fragment, *words):
        done = orrery("run", "save.lua", f"load={self.saved}", *words, cwd=BAD)
        self.assertEqual(done.code, 1, done.err)
        for text in (marked("save.lua", "load"), str(self.saved), fragment):
            self.assertIn(text, done.err)

    # Another number of microbatches would change bits, so that the script has to say it.
    def test_more_ranks_than_microbatches(self):
        one = self.folder / "one"
        done = orrery("run", "save.lua", f"save={one}", "microbatches=0", cwd=BAD)
        self.assertEqual(done.code, 0, done.err)
        done = orrery("run", "-n", 2, "save.lua", f"load={one}", "microbatches=0", cwd=BAD)
        self.assertEqual(done.code, 1, done.err)
        for text in (marked("save.lua", "compile"), "the checkpoint's steps have 1 microbatch, too few to deal to 2 ranks",
                     "write microbatches = 2"):
            self.assertIn(text, done.err)
        done = orrery("run", "-n", 2, "save.lua", f"load={one}", "microbatches=2", cwd=BAD)
        self.assertEqual((done.code, done.out), (0, "steps 2\n"), done.err)

    def test_each_file_truncated_or_altered(self):
        for name in ("checkpoint.json", SHARD):
            path = self.saved / name
            whole = path.read_bytes()
            for how, damaged in (("truncated", whole[:len(whole) // 2]),
                                 ("altered", whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])):
                with self.subTest(name=name, how=how):
                    path.write_bytes(damaged)
                    self.refused(name)
            path.write_bytes(whole)

    def test_a_file_or_all_of_it_missing(self):
        (self.saved / SHARD).unlink()
        self.refused(SHARD)
        shutil.rmtree(self.saved)
        self.refused("No such file")

    def test_another_model(self):
        self.refused("f32[64]", "width=32")

    def test_disk_full_keeps_the_old_one(self):
        before = {p: p.read_bytes() for p in self.saved.rglob("*") if p.is_file()}

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        # One rank: the limit would also stop the memory that several ranks share.
        done = orrery("run", "save.lua", f"load={self.saved}", f"save={self.saved}", cwd=BAD,
                      limit=limit)
        self.assertEqual(done.code, 1, done.err)
        for text in (marked("save.lua", "save"), str(self.saved), "File too large"):
            self.assertIn(text, done.err)
        self.assertEqual({p: p.read_bytes() for p in self.saved.rglob("*") if p.is_file()}, before)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["saved"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
