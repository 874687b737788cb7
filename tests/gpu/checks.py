# SPDX-License-Identifier: Apache-2.0
"""What must hold on the GPU: every op against `reference`, losses of the CPU, the same bits again.

Each section yields rows {name, verdict, text}; a verdict is passed, failed or skipped.
"""
import json
import math
import re
import shutil
import subprocess

from machine_facts import has_gpu

STEPS = 20
LOSS_TOLERANCE = 1e-4  # relative, after 20 steps in f32
RUNS = 10
UNAVAILABLE = 69  # exit code: a library or a device is not here
SANITIZED = "kernel.values"  # of the judge's tests


def row(name, verdict, text=""):
    return {"name": name, "verdict": verdict, "text": text}


def without_gpu(name):
    return row(name, "skipped", "no NVIDIA device here")


def run(*words, timeout=600):
    try:
        return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(words, 124, "", f"no end within {late.timeout:.0f} s")


def last_line(done):
    return ((done.stderr.strip() or done.stdout.strip()).splitlines() or ["it said nothing"])[-1][:160]


def verdict_of(name, good, done, text=""):
    return row(name, "passed", text) if good else row(name, "failed", text or f"exit {done.returncode}: {last_line(done)}")


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


def ops(root, facts):
    """The judge on the plugin: values, gradients, rows, leaves, memory, streams."""
    if not has_gpu(facts):
        yield without_gpu("every op against reference")
        return
    done = run("orrery", "check", plugin_file(root), "--json", timeout=1800)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        yield verdict_of("orrery check", False, done)
        return
    for test in report["tests"]:
        if test["state"] not in ("ok", "skipped"):
            yield row(test["test"], "failed", " ".join(str(v) for k, v in test.items() if k not in ("test", "state", "seconds"))[:300])
    text = f"{report['passed']} passed, {report['failed']} failed, {report['skipped']} skipped of the judge's tests"
    yield verdict_of("every op against reference", report["failed"] == 0 and report["passed"] > 0, done, text)


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
    if len(facts["gpu"].splitlines()) < 2:
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
    for check in ("memcheck", "racecheck", "initcheck", "synccheck"):
        done = run(tool, "--tool", check, "--target-processes", "all", "--error-exitcode", 9, "orrery", "check",
                   plugin_file(root), "--only", SANITIZED, timeout=1200)
        errors = re.findall(r"ERROR SUMMARY: .*", done.stdout)
        yield verdict_of(check, done.returncode == 0, done, errors[-1] if errors else "")
