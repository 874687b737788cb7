# SPDX-License-Identifier: Apache-2.0
"""The folder for GPU machines is whole: all of it that needs no GPU runs, by the folder alone.

Arguments: the build tree, the folder of the fake libraries (fake_cuda), and "all" for every stack over NCCL and every
race, of which a third is tried else; then tests, if not all are wanted.
"""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BUILD, FAKE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
EVERY = 1 if "all" in sys.argv else 3  # of the stacks over NCCL, and of the races
SOURCE = pathlib.Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/gpu"))
import kernels  # noqa: E402
import nccl  # noqa: E402
import races  # noqa: E402
import runs  # noqa: E402
from stand_ins import in_place_of_pytorch  # noqa: E402

PROFILE = """\
       ms     %   calls   us/call  GFLOP/s     GB/s  op
    10.00  50.0      20    500.00   4000.0     10.0  matmul bf16 [1,8,16]' [1,16,40]
     8.00  40.0       2   4000.00              25.0  pointwise [64] 1 in, 1 out, 2 instructions
     2.00  10.0       1   2000.00                    between launches
"""


class Kernels(unittest.TestCase):
    """The table of a step's time beside the floor."""

    def test_the_floor_is_the_fastest_product_or_a_copy(self):
        floors = kernels.floors("copy 1e11\nbf16:8:40:16:a 0.25\n")
        product, pointwise, rest, whole = kernels.table(PROFILE, *floors)
        self.assertIn("4.00 TFLOP/s     10.0 GB/s   2.00 x floor  matmul bf16", product)
        self.assertIn("25.0 GB/s   4.00 x floor  pointwise", pointwise)
        self.assertNotIn("x floor", rest)
        self.assertEqual(whole.split(), "20.00 ms in all, floor 7.00 ms".split())

    def test_products_by_their_shapes(self):
        self.assertEqual(kernels.product("matmul bf16 [1,64,768] [1,768,50257]'  by cuda (100)"), "bf16:64:50264:768:b")
        self.assertEqual(kernels.product("matmul_pointwise [1,64,768] [1,768,50257] [64]  by cuda (100)"), "f32:64:50257:768:n")
        self.assertEqual(kernels.product("matmul bf16 [1,8,4,4,3,24] [1,72,16]'  by cuda (100)"), "bf16:128:16:72:b")
        self.assertEqual(kernels.product("matmul bf16 [1,16,128]' [1,8,4,4,3,9]  by cuda (100)"), "bf16:16:32:128:a")
        self.assertEqual(kernels.product("pointwise [64] 1 in"), "")

    def test_every_op_of_a_real_profile_is_read(self):
        for script, words in (("gpt2.lua", ("ctx=16", "vocab=64", "dim=32", "heads=2", "layers=2")),
                              ("resnet.lua", ("width=8", "blocks=1"))):
            with self.subTest(script=script):
                self.read_all(script, *words, "batch=2", "steps=3")

    def read_all(self, script, *words):
        done = subprocess.run([BUILD / "orrery", "run", "-n", "1", "--profile", SOURCE / "tests/gpu" / script, *words], text=True,
                              capture_output=True, env=os.environ | {"ORRERY_LUA_PATH": str(SOURCE / "tests")})
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.partition("  op\n")[2].splitlines()
        rows = list(kernels.parse(done.stdout))
        self.assertEqual(len(rows), len(lines), done.stdout)
        self.assertTrue(any(op.startswith("matmul bf16") and flops > 0 for op, _, _, flops, _ in rows), rows)


class Nccl(unittest.TestCase):
    """Rows of a stack over NCCL beside the same over local."""
    LOCAL = ([5.5, 5.25], "aa")

    def row(self, losses, digest, code=0, same=True):
        done = subprocess.CompletedProcess((), code, "", "error: why")
        return nccl.compared(nccl.Case("data", 4, same=same), "cuda", self.LOCAL, (losses, digest), done)

    def test_digests_are_those_of_local(self):
        self.assertEqual(self.row([5.5, 5.25], "aa")["verdict"], "passed")
        self.assertEqual(self.row([5.5, 5.25], "bb"), {"name": "data on 4 ranks, device buffers", "verdict": "failed",
                                                       "text": "digest bb, with local aa"})
        self.assertIn("exit 75: error: why", self.row([], "", 75)["text"])

    def test_losses_are_near_where_nccl_adds_in_its_order(self):
        self.assertEqual(self.row([5.5, 5.25001], "bb", same=False)["verdict"], "passed")
        self.assertEqual(self.row([5.5, 5.2502], "bb", same=False)["verdict"], "failed")

    def test_a_job_that_hangs_takes_its_own_time_alone(self):
        began = time.monotonic()
        jobs = [("sleep", 60)] + [("sleep", 0.1)] * 6
        codes = [done.returncode for done in runs.at_once(2, [lambda j=job: runs.run(*j, timeout=2) for job in jobs])]
        self.assertEqual(codes, [0] * 6 + [124])
        self.assertLess(time.monotonic() - began, 30)


def setUpModule():
    global FOLDER, BUNDLE
    FOLDER = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(FOLDER.cleanup)
    BUNDLE = pathlib.Path(FOLDER.name) / "bundle"
    made = subprocess.run([SOURCE / "scripts/gpu-bundle", BUNDLE, BUILD], text=True, capture_output=True)
    if made.returncode:
        raise AssertionError(made.stdout + made.stderr)


# Hides the toolkit of this machine, whose libraries the loader would find.
HIDDEN = [folder for folder in glob.glob("/usr/local/cuda*") if not os.path.islink(folder)]
BARE = [shutil.which("unshare"), "--map-root-user", "--mount", "/bin/sh", "-c",
        f'for f in {" ".join(HIDDEN)}; do {shutil.which("mount")} -t tmpfs none $f || exit; done; exec "$@"', "sh"]


def judge(*words, path="/usr/bin:/bin", **variables):
    """Exit code and rows of tests/gpu/run in the bundle, where nothing of this machine is known but the path."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*BARE, BUNDLE / "tests/gpu/run", "--out", folder, *words], text=True, capture_output=True, cwd="/",
                              env={"PATH": str(path), "HOME": folder} | {k: str(v) for k, v in variables.items()}, timeout=600)
        if "Traceback" in done.stderr:
            raise AssertionError(done.stderr)
        return done.returncode, [json.loads(line) for line in pathlib.Path(folder, "result.jsonl").read_text().splitlines()]


def row_named(rows, name):
    found = [row for row in rows if row["name"] == name]
    if not found:
        raise AssertionError(f"there is no row '{name}' in {rows}")
    return found[0]


class WithoutDriver(unittest.TestCase):
    def test_what_needs_none_is_done(self):
        code, rows = judge()
        self.assertEqual(code, 0, rows)
        for name in ("the plugin cuda is listed", "--kernels cuda without a driver", "orrery plan --kernels cuda"):
            self.assertEqual(row_named(rows, name)["verdict"], "passed", rows)
        self.assertIn("no NVIDIA driver here", row_named(rows, "driver")["text"])
        self.assertEqual({row["stage"] for row in rows if row["verdict"] == "skipped"}, set("01234"))

    def test_without_any_python(self):
        code, rows = judge("--stage", "0", path="/no-python-here")
        self.assertEqual(code, 0, rows)


class OnAFakeGpu(unittest.TestCase):
    """A machine that has a driver, and of CUDA only the wheels that a Python of an environment has; faults planted in
    the fakes. Every stage reports, and none hangs."""

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(FOLDER.name)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", cls.root / "env"], check=True)
        [packages] = (cls.root / "env/lib").glob("python3*/site-packages")
        cls.packages = packages
        cls.wheel, cls.driver = packages / "nvidia/cu13/lib", cls.root / "driver"
        for folder, names in ((cls.wheel, ("libcublasLt.so.13", "libnvrtc.so.13", "libnccl.so.2")), (cls.driver, ("libcuda.so.1",))):
            folder.mkdir(parents=True)
            for name in names:
                shutil.copy(FAKE / name, folder / name)

    def judge(self, *words, **variables):
        return judge(*words, path=f"{self.root}/env/bin:/usr/bin:/bin", LD_LIBRARY_PATH=self.driver,
                     FAKE_NVRTC_FOLDER=BUILD / "tests/gpu/compiled", **variables)

    def test_libraries_are_found_in_a_wheel_and_the_first_kernels_run(self):
        code, rows = self.judge("--stage", "0", "--budget", "0=120")
        self.assertEqual(code, 0, rows)
        for name in ("cuBLASLt", "NVRTC", "NCCL"):
            self.assertIn(str(self.wheel), row_named(rows, name)["text"])
        for name in ("copies", "a pointwise kernel", "a product in f32", "a product in bf16", "a graph", "a graph, call 4"):
            self.assertEqual(row_named(rows, name)["verdict"], "passed", rows)

    def test_a_missing_library(self):
        (self.wheel / "libnvrtc.so.13").unlink()
        try:
            code, rows = self.judge("--stage", "0,1", "--budget", "0=120,1=10")
        finally:
            shutil.copy(FAKE / "libnvrtc.so.13", self.wheel)
        self.assertEqual(code, 1)
        self.assertIn("pip install nvidia-cuda-nvrtc", row_named(rows, "NVRTC")["text"])
        self.assertEqual(row_named(rows, "cuBLASLt")["verdict"], "passed")
        self.assertIn("libnvrtc.so.13 was not found", row_named(rows, "the first kernels")["text"])
        self.assertTrue(any(row["stage"] == "1" and row["verdict"] in ("failed", "late") for row in rows), rows)

    def test_an_error_in_the_midst(self):
        code, rows = self.judge("--stage", "0,2,3", "--budget", "0=120,2=10,3=10", FAKE_CUDA_FAULT="cuGraphLaunch:2")
        self.assertEqual(code, 1)
        self.assertEqual(row_named(rows, "a product in f32")["verdict"], "passed")
        self.assertIn("cuGraphLaunch", row_named(rows, "the first kernels")["text"])
        self.assertLessEqual({"2", "3"}, {row["stage"] for row in rows})

    def test_a_refused_algorithm(self):
        code, rows = self.judge("--stage", "0", "--budget", "0=120", FAKE_CUDA_FAULT="cublasLtMatmul:1")
        self.assertEqual(code, 1)
        self.assertIn("cublasLtMatmul", row_named(rows, "the first kernels")["text"])

    def test_nccl_on_one_card(self):
        places = {BUNDLE / "tests/gpu" / name: (BUNDLE / "tests/gpu" / name).read_text() for name in ("stacks.lua", "nccl.py")}
        for place, whole in places.items():
            small = whole.replace("ctx = 32, vocab = 256, dim = 64", "ctx = 16, vocab = 64, dim = 16")
            place.write_text(small + (f"STACKS, MORE, JUDGED = STACKS[::{EVERY}], MORE[::{EVERY}], JUDGED[::{EVERY}]\n"
                                      if place.suffix == ".py" else ""))
        try:
            code, rows = self.judge("--stage", "6", "--budget", "6=600", FAKE_NCCL_GPUS=1, ORRERY_DEADLINE=120)
            broken, failed = self.judge("--stage", "6", "--budget", "6=20", FAKE_NCCL_GPUS=1, FAKE_NCCL_FAIL="1:3")
        finally:
            for place, whole in places.items():
                place.write_text(whole)
        found = [row for row in rows if row["stage"] == "6"]
        self.assertEqual([row for row in found if row["verdict"] != "passed"], [])
        self.assertEqual(code, 0)
        stacks, more, judged = (len(all_of[::EVERY]) for all_of in (nccl.STACKS, nccl.MORE, nccl.JUDGED))
        self.assertEqual(len(found), 2 * stacks + more + judged + len(nccl.lost_ranks))
        self.assertEqual(broken, 1)
        self.assertIn("the fake was told to fail", row_named(failed, "data on 4 ranks, device buffers")["text"])

    def test_one_race_of_each_family(self):
        names = list(races.FAMILIES)[EVERY // 2::EVERY]
        with in_place_of_pytorch(BUNDLE, self.packages):
            code, rows = self.judge("--race", ",".join(names))
            other, off = self.judge("--race", "lstm", STAND_IN_OFF="1.5")
        for name in names:
            workload, _ = races.FAMILIES[name]
            peer = races.GOALS[workload].peers[0]
            found = row_named(rows, f"{workload}: exact")  # whoever was faster
            self.assertIn(f"ms, PyTorch ({peer})", found["text"])
            self.assertEqual(found["stage"], name)
            row_named(rows, f"{workload}: memory")
            self.assertRegex(row_named(rows, f"{workload}: start")["text"], rf"until 20 steps were done: exact [\d.]+, {peer} ")
        self.assertEqual(other, 1)
        self.assertIn("no time counts until they agree", row_named(off, "cuda-lstm")["text"])

    def test_a_race_ends_with_its_budget(self):
        with in_place_of_pytorch(BUNDLE, self.packages):
            began = time.monotonic()
            _, rows = self.judge("--race", "gpt2,values", "--budget", "gpt2=1,values=2")
            self.assertLess(time.monotonic() - began, 60)
        self.assertEqual({row["stage"]: row["verdict"] for row in rows if row["verdict"] == "late"}, {"gpt2": "late", "values": "late"},
                         rows)

    def test_a_stage_ends_with_its_budget(self):
        began = time.monotonic()
        code, rows = self.judge("--stage", "0,1,2,3", "--budget", "0=120,1=2,2=2,3=2")
        self.assertLess(time.monotonic() - began, 120)
        for stage in "123":
            self.assertTrue(any(row["stage"] == stage and row["verdict"] == "late" for row in rows), rows)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(word for word in sys.argv[3:] if word != "all")])
