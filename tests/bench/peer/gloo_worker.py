# SPDX-License-Identifier: Apache-2.0
"""One of two ranks of PyTorch's Gloo backend on loopback: what `bench_comm tcp` does, in the same sizes.
Rank 0 prints one line of JSON with microseconds by operation and bytes.

Arguments: rank, port, rounds.
"""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

rank, port, rounds = map(int, sys.argv[1:])
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
MOST = 64 << 20
mine, other = torch.zeros(MOST // 4), torch.zeros(MOST // 4)


def exchange(n):
    for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine[:n], 1 - rank),
                                           dist.P2POp(dist.irecv, other[:n], 1 - rank)]):
        request.wait()


OPERATIONS = {
    "all_reduce": lambda n: dist.all_reduce(mine[:n]),
    "all_gather": lambda n: dist.all_gather_into_tensor(other[:n], mine[:n // 2]),
    "exchange": exchange,
}


def block(call, n, calls):
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(calls):
        call(n)
    dist.barrier()
    return (time.perf_counter() - begin) / calls * 1e6


figures = {}
for name, call in OPERATIONS.items():
    size = 8
    while size <= MOST:
        calls = min(max((64 << 20) // (size + 65536), 3), 400)
        block(call, size // 4, calls // 4 + 1)
        figures[f"{name} {size}"] = statistics.median(block(call, size // 4, calls) for _ in range(rounds))
        size *= 512 if size < 4096 else 4
if rank == 0:
    print(json.dumps(figures))
dist.destroy_process_group()
