# SPDX-License-Identifier: Apache-2.0
"""floor_worker.py WORKLOAD PIPES [BENCH_MATMUL]: times the parts of a step's floor when asked; speaks the
protocol of contestants.py. "time 0 1" is answered by the milliseconds of every product of a step in PyTorch
and, last, of one AdamW pass, "time 1 1" by those of the products in the libraries of BENCH_MATMUL.
"""
import itertools
import re
import subprocess
import sys
import time

import torch

import training
from workloads import WORKLOADS

LINE = re.compile(r"(\d+) x (\d+) x (\d+) (forward|dgrad|wgrad) +(.*)")
SLICE = 0.02  # seconds of a turn for each part


def best_ms(run):
    best, end = float("inf"), time.perf_counter() + SLICE
    for count in itertools.count():
        if count > 2 and time.perf_counter() > end:
            return best * 1000
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)


class Product:
    """One of the three products of a linear layer, in PyTorch's layouts; `times` of them are in a step."""

    def __init__(self, kind, rows, outputs, inputs, times):
        self.times = times
        m, n, k = {"forward": (rows, outputs, inputs), "dgrad": (rows, inputs, outputs),
                   "wgrad": (outputs, inputs, rows)}[kind]
        self.flop, self.key = 2 * m * n * k, (m, n, k, kind)
        a, b, self.out = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
        self.a = a.t().contiguous().t() if kind == "wgrad" else a
        self.b = b.t().contiguous().t() if kind == "forward" else b

    def torch_ms(self):
        return self.times * best_ms(lambda: torch.mm(self.a, self.b, out=self.out))

    def library_ms(self, rates):
        """`rates`: {key: GFLOP/s}."""
        return self.times * self.flop / rates[self.key] / 1e6 if self.key in rates else float("inf")


def products(work):
    return [Product(kind, rows, outputs, inputs, times)
            for rows, outputs, inputs, times, dgrad in work.linears()
            for kind in ("forward", "dgrad", "wgrad") if dgrad or kind != "dgrad"]


def library_rates(program):
    """The best of each line's contestants; lines of leaves tell of other products."""
    text = subprocess.run([program, "2", str(SLICE)], capture_output=True, text=True, check=True).stdout
    return {(int(m), int(n), int(k), kind): max(map(float, re.findall(r"[A-Za-z]+ +([\d.]+)", rates.split("ratio")[0])))
            for m, n, k, kind, rates in LINE.findall(text) if "leaves" not in rates}


def adamw(work):
    count = sum(p.numel() for p in training.make_model(work).parameters())
    p = torch.nn.Parameter(torch.randn(count))
    p.grad = torch.randn(count)
    return torch.optim.AdamW([p], fused=True).step


def main():
    name, pipes, *program = sys.argv[1:]
    torch.set_num_threads(2)
    work = WORKLOADS[name]
    parts, update = products(work), adamw(work)
    with open(f"{pipes}/requests.0") as requests, open(f"{pipes}/replies", "w") as replies:
        for line in requests:
            if line.split()[1] == "0":
                found = [part.torch_ms() for part in parts] + [best_ms(update)]
            else:
                rates = library_rates(*program) if program else {}
                found = [part.library_ms(rates) for part in parts] + [float("inf")]
            print(*found, file=replies, flush=True)


if __name__ == "__main__":
    main()
