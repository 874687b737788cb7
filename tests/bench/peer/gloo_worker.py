# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch's Gloo backend on loopback, as a contestant: what bench_comm does, in the same sizes.

gloo_worker.py PIPES RANK RANKS
"""
import os
import sys
import time

import torch
import torch.distributed as dist

MOST = 64 << 20


class Bench:
    def __init__(self, rank, ranks):
        self.rank, self.ranks = rank, ranks
        self.mine, self.other = torch.zeros(MOST // 4 + ranks), torch.zeros(MOST // 4 + ranks)

    def call(self, op, n):
        share = -(-n // self.ranks)  # Gloo has only equal ones
        if op == "all_reduce":
            return lambda: dist.all_reduce(self.mine[:n])
        if op == "reduce_scatter":
            return lambda: dist.reduce_scatter_tensor(self.other[:share], self.mine[:share * self.ranks])
        if op == "all_gather":
            return lambda: dist.all_gather_into_tensor(self.other[:share * self.ranks], self.mine[:share])
        to, of = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        return lambda: [r.wait() for r in dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, self.mine[:n], to), dist.P2POp(dist.irecv, self.other[:n], of)])]

    def microseconds(self, op, size, calls):
        call = self.call(op, size // 4)
        call()
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        dist.barrier()
        return (time.perf_counter() - begin) / calls * 1e6


def main():
    pipes, rank, ranks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{pipes}/store", rank=rank, world_size=ranks)
    bench = Bench(rank, ranks)
    with open(f"{pipes}/requests.{rank}") as requests, open(f"{pipes}/replies", "w") as replies:
        for line in requests:
            op, size, calls = line.split()
            figure = bench.microseconds(op, int(size), int(calls))
            if rank == 0:
                print(f"{figure:.3f}", file=replies, flush=True)


if __name__ == "__main__":
    main()
