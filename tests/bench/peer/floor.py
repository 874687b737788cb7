# SPDX-License-Identifier: Apache-2.0
"""floor.py WORKLOAD [BENCH_MATMUL]: milliseconds below which no step of these products can get on this
machine: every matrix product at the best speed that any library shows here, and one AdamW pass."""
import json
import re
import subprocess
import sys
import time

import torch

import training
from workloads import WORKLOADS

LINE = re.compile(r"(\d+) x (\d+) x (\d+) (forward|dgrad|wgrad) +(.*)")


def best_ms(run, seconds=0.4, least=3):
    best, end, count = float("inf"), time.perf_counter() + seconds, 0
    while count < least or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        count += 1
    return best * 1000


def torch_products(rows, outputs, inputs):
    """{kind: ms} of the three products of a linear layer in PyTorch's layouts."""
    x, w, dy = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(rows, outputs)
    y, dx, dw = torch.empty_like(dy), torch.empty_like(x), torch.empty_like(w)
    return {"forward": best_ms(lambda: torch.mm(x, w.t(), out=y)),
            "dgrad": best_ms(lambda: torch.mm(dy, w, out=dx)),
            "wgrad": best_ms(lambda: torch.mm(dy.t(), x, out=dw))}


def library_products(program):
    """{(m, n, k, kind): ms} from the lines of bench_matmul, the best of its contestants."""
    found = {}
    text = subprocess.run([program, "2"], capture_output=True, text=True).stdout if program else ""
    for m, n, k, kind, rates in LINE.findall(text):
        if "leaves" in rates:
            continue
        speeds = [float(rate) for rate in re.findall(r"[A-Za-z]+ +([\d.]+)", rates.split("ratio")[0])]
        found[int(m), int(n), int(k), kind] = 2 * int(m) * int(n) * int(k) / max(speeds) / 1e6
    return found


def layer_ms(rows, outputs, inputs, with_dgrad, library):
    shapes = {"forward": (rows, outputs, inputs), "dgrad": (rows, inputs, outputs),
              "wgrad": (outputs, inputs, rows)}
    total = 0.0
    for kind, ms in torch_products(rows, outputs, inputs).items():
        if kind != "dgrad" or with_dgrad:
            total += min(ms, library.get((*shapes[kind], kind), ms))
    return total


def adamw_ms(work):
    count = sum(p.numel() for p in training.make_model(work).parameters())
    p = torch.nn.Parameter(torch.randn(count))
    p.grad = torch.randn(count)
    optimizer = torch.optim.AdamW([p], fused=True)
    return best_ms(optimizer.step, seconds=1.0)


def main():
    torch.set_num_threads(2)
    work = WORKLOADS[sys.argv[1]]
    library = library_products(sys.argv[2] if len(sys.argv) > 2 else "")
    products = sum(layer_ms(rows, o, i, dgrad, library) * times
                   for rows, o, i, times, dgrad in work.linears())
    print(json.dumps({"products_ms": products, "adamw_ms": adamw_ms(work)}))


if __name__ == "__main__":
    main()
