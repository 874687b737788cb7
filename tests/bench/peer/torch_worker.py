# SPDX-License-Identifier: Apache-2.0
"""A PyTorch contestant; speaks the protocol of contestants.py.

torch_worker.py WORKLOAD KIND THREADS PIPES RANK RANKS

KIND: eager, compile, eager-last or compile-last (images with their channels last), compile-max (tries kernels for
minutes), ddp, fsdp.
"""
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import training
from workloads import WORKLOADS


def replicated(model):
    return torch.nn.parallel.DistributedDataParallel(
        model, gradient_as_bucket_view=True, static_graph=True)


def sharded(model):
    """FSDP2, a unit for every block and one for the rest."""
    for block in getattr(model, "blocks", {}).values():
        fully_shard(block)
    return fully_shard(model)


def make_step(work, kind, pipes, rank, ranks):
    model = training.make_model(work)
    training.load(work, model)
    if kind not in ("ddp", "fsdp"):
        mode = "" if kind.startswith("eager") else "max-autotune" if kind == "compile-max" else "default"
        return training.Step(work, model, mode=mode, channels_last=kind.endswith("-last"))
    dist.init_process_group("gloo", init_method=f"file://{pipes}/store", rank=rank, world_size=ranks)

    return training.Step(work, model, replicated if kind == "ddp" else sharded, rank, ranks)


def whole_loss(loss, ranks):
    if ranks > 1:
        dist.all_reduce(loss)
    return loss.item() / ranks


def timed(step):
    start = time.perf_counter()
    step()
    step.finish()
    return (time.perf_counter() - start) * 1000


def answer(step, ranks, word, unrecorded, recorded):
    if word == "losses":
        return [whole_loss(step(), ranks) for _ in range(recorded)]
    for _ in range(unrecorded):
        step()
    step.finish()
    return [timed(step) for _ in range(recorded)]


def main():
    name, kind, threads, pipes, rank, ranks = sys.argv[1:]
    rank, ranks = int(rank), int(ranks)
    torch.set_num_threads(int(threads))
    step = make_step(WORKLOADS[name], kind, pipes, rank, ranks)
    with open(f"{pipes}/requests.{rank}") as requests, open(f"{pipes}/replies", "w") as replies:
        for line in requests:
            word, unrecorded, recorded = line.split()
            numbers = answer(step, ranks, word, int(unrecorded), int(recorded))
            if rank == 0:
                print(*numbers, file=replies, flush=True)


if __name__ == "__main__":
    main()
