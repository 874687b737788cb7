# SPDX-License-Identifier: Apache-2.0
"""What must hold on the GPU: every op against `reference`, losses of the CPU, the same bits again.

Each function yields rows (runs.py).
"""
import json
import math
import re
import shutil

from machine_facts import has_gpu
from runs import OutOfTime, at_once, last_line, row, run, verdict_of, without_gpu

STEPS = 20
LOSS_TOLERANCE = 1e-4  # relative, after 20 steps in f32
RUNS = 10
UNAVAILABLE = 69  # exit code: a library or a device is not here
AT_ONCE = 8  # processes that share the GPU
SANITIZED = "kernel.values"  # of the judge's tests


def bundle(root, facts):
    """The program starts here, and says about the GPU what is so."""
    done = run("orrery", "--version")
    yield verdict_of("the program starts", done.returncode == 0, done, done.stdout.strip())
    done = run("orrery", "plugins")
    line = next((x.strip() for x in done.stdout.splitlines() if re.search(r"\bcuda\b", x)), "")
    yield verdict_of("the plugin cuda is listed", bool(line), done, line[:120])
    if not has_gpu(facts):
        done = run("orrery", "run", "--kernels", "cuda", root / "examples/regression.lua")
        good = done.returncode == UNAVAILABLE and "no NVIDIA driver here" in done.stderr
        yield verdict_of("--kernels cuda without a driver", good, done, last_line(done) if good else "")
    done = run("orrery", "plan", "--kernels", "cuda", root / "examples/gpt2.lua")
    yield verdict_of("orrery plan --kernels cuda", done.returncode == 0, done)


def plugin_file(root):
    return next(root.glob("prefix/lib/**/orrery-kernel-cuda.so"))


def ops(root, facts, only=""):
    """The judge's tests of the plugin, or those whose names begin so, several at once; each is a process."""
    if not has_gpu(facts):
        yield without_gpu("every op against reference")
        return
    listed = run("orrery", "check", plugin_file(root), "--list")
    names = [name for name in listed.stdout.split() if name.startswith(only)]
    passed = skipped = 0
    tasks = [lambda n=name: verdicts(n, run("orrery", "check", plugin_file(root), "--json", "--only", n)) for name in names]
    try:
        for found in at_once(AT_ONCE, tasks):
            yield from (r for r in found if r["verdict"] == "failed")
            passed += sum(r["verdict"] == "passed" for r in found)
            skipped += sum(r["verdict"] == "skipped" for r in found)
    except OutOfTime:
        yield row(f"tests of the judge: {only or 'all'}", "late", f"{passed} of {len(names)} passed so far")
        raise
    good = passed > 0 and passed + skipped == len(names)
    yield verdict_of(f"tests of the judge: {only or 'all'}", good, listed, f"{passed} of {len(names)} passed, {skipped} skipped")


def verdicts(name, done):
    """Rows of the tests that one call of the judge was asked for."""
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return [verdict_of(name, False, done)]
    words = {"ok": "passed", "skipped": "skipped"}
    return [row(t["test"], words.get(t["state"], "failed"),
                " ".join(str(v) for k, v in t.items() if k not in ("test", "state", "seconds"))[:400]) for t in report["tests"]]


def values(root, facts):
    yield from ops(root, facts, "kernel.values")


def train(root, kernels, model):
    script = "tests/gpu/chain.lua" if model == "chain" else "tests/golden/train.lua"
    words = [] if model == "chain" else [f"dir={root / 'tests/golden'}", f"model={model}"]
    done = run("orrery", "run", "--kernels", kernels, root / script, *words)
    return done, [float(x.split()[0]) for x in re.findall(r"^\s*(\S+ \S+)$", done.stdout, re.M)]


def losses(root, facts):
    """Losses of twenty steps beside those of the CPU's kernels."""
    for model in ("mlp", "gpt", "chain"):
        name = f"{STEPS} losses of {model}"
        done, wanted = train(root, "cpu", model)
        if len(wanted) != STEPS:
            yield row(name, "failed", f"on the CPU: {last_line(done)}")
            continue
        if not has_gpu(facts):
            yield row(name, "skipped", f"no NVIDIA device here; on the CPU {wanted[0]:.4f} to {wanted[-1]:.4f}")
            continue
        done, found = train(root, "cuda", model)
        off = max((abs(x - y) / abs(y) for x, y in zip(found, wanted)), default=math.nan)
        yield verdict_of(name, len(found) == STEPS and off <= LOSS_TOLERANCE, done, f"off by {off:.1e} of the CPU's at most")


def digest(root, ranks, comm="local"):
    words = ["-n", ranks, "--comm", comm] if ranks > 1 else []
    done = run("orrery", "run", "--kernels", "cuda", *words, root / "examples/gpt.lua", "steps=20", "microbatches=6")
    found = re.search(r"^digest (\w+)", done.stdout, re.M)
    return done, found[1] if found else ""


def same_bits(root, facts):
    """From run to run, and on any number of ranks; these share the GPU."""
    if not has_gpu(facts):
        yield without_gpu("ten runs, one digest")
        return
    found = [digest(root, 1) for _ in range(RUNS)]
    digests = {d for _, d in found}
    yield verdict_of("ten runs, one digest", len(digests) == 1 and "" not in digests, found[-1][0], ", ".join(digests))
    for ranks in (2, 3):
        done, other = digest(root, ranks)
        yield verdict_of(f"{ranks} ranks have it, too", {other} == digests, done, other)
    yield over_nccl(root, facts, digests)


def over_nccl(root, facts, digests):
    """Two ranks with a GPU each, whose sums stay on the GPUs."""
    name = "2 ranks over NCCL have it, too"
    if len(facts["gpu"]) < 2:
        return row(name, "skipped", "one NVIDIA device here")
    done, other = digest(root, 2, "nccl")
    if done.returncode == UNAVAILABLE:
        return row(name, "skipped", next((x for x in done.stderr.splitlines() if "error:" in x), last_line(done)))
    return verdict_of(name, {other} == digests, done, other)


def sanitizer(root, facts):
    tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if not has_gpu(facts) or not tool:
        yield row("compute-sanitizer", "skipped", "no NVIDIA device here" if tool else "compute-sanitizer is not here")
        return
    # Functions are looked for in one image after another: that they are not in all of them is no error.
    for check in (("memcheck", "--report-api-errors", "no"), ("racecheck",), ("initcheck",), ("synccheck",)):
        done = run(tool, "--tool", *check, "--target-processes", "all", "--error-exitcode", 9, "orrery", "check",
                   plugin_file(root), "--only", SANITIZED, timeout=1200)
        errors = re.findall(r"ERROR SUMMARY: .*", done.stdout)
        yield verdict_of(check[0], done.returncode == 0, done, errors[-1] if errors else "")
