# SPDX-License-Identifier: Apache-2.0
"""Times of a step that were published for layouts on A100s with 80 GB and on H100s, eight to a host.

PTD-P: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021,
table 1 (the time follows from its FLOP/s). SEL: Korthikanti et al., "Reducing Activation Recomputation in Large
Transformer Models", MLSys 2023: its times of an iteration. Llama 3: Dubey et al., "The Llama 3 Herd of Models",
arXiv 2407.21783, table 4 (the time follows from its FLOP/s as PaLM counts them). torchtitan: its repository's
benchmarks of Llama 3.1 8B with torch.compile, on H100s held to 500 W (the time follows from its tokens a second).
More rows, with their sources: more_rows.py.
"""
import beside
from row import Row

# How the rate of a product grows with its FLOPs is what XLA's authors have measured of bf16 on an H100
# (OpenXLA, xla/service/gpu/model/matmul_interpolator_data.h): for each power of two from 2^26 to 2^38 the median of
# its shapes, one product at a time. Another card reaches the same part of its best rate in the same time, so that its
# FLOPs are less by the ratio of the nominal rates.
#
# What a shape costs: matrix_bandwidth of an H100, 5.5 TB/s, makes the times of 72 shapes of the same table spread least
# around the rates by FLOPs; that of another card is to it as their memories' nominal bandwidths are. Tiles of 256 x 128
# are the most efficient ones by NVIDIA's guide, an A100 has 108 processors and an H100 132. half_speed: the table's
# results of 128 such tiles, of depth 4096, take 46.7 us, half of them, which 128 tiles of 128 x 128 can compute, 26.6
# us; a launch takes 3 of both.
#
# The best rate of 16-bit products in a100.json makes the geometric mean of these rows' ratios 1. The rest of that file
# are an A100's vector rate, its memory's speed as copies reach it, NVLink and 200 Gb/s InfiniBand as collectives reach
# them.
#
# To h100.json nothing is fitted. A search over large products found 271 TFLOP/s on an A100 and 794.5 on an H100
# (Bekman, "Machine Learning Engineering"); its best rate is to 794.5 as that of a100.json is to 271. Its memory and its
# NVLink reach the same part of what they can as an A100's, and its network has 400 Gb/s. No such rate is known for the
# card with 500 W: that of h100-500w.json makes the row of 8 ranks right.
FITTED = {"ptdp-18.4B", "sel-22B-full", "sel-22B-sequence", "torchtitan-8"}

# Parameters, heads, width, layers, tensor, pipeline, data, batch, microbatch, chunks of a stage, seconds.
PTDP = [
    ("1.7B", 24, 2304, 24, 1, 1, 32, 512, 16, 1, 3.53), ("3.6B", 32, 3072, 30, 2, 1, 32, 512, 16, 1, 3.70),
    ("7.5B", 32, 4096, 36, 4, 1, 32, 512, 16, 1, 3.70), ("18.4B", 48, 6144, 40, 8, 1, 32, 1024, 8, 1, 9.40),
    ("39.1B", 64, 8192, 48, 8, 2, 32, 1536, 4, 1, 14.45), ("76.1B", 80, 10240, 60, 8, 4, 32, 1792, 2, 3, 16.06),
    ("145.6B", 96, 12288, 80, 8, 8, 24, 2304, 2, 2, 24.82), ("310.1B", 128, 16384, 96, 8, 16, 15, 2160, 1, 2, 37.61),
    ("529.6B", 128, 20480, 105, 8, 35, 9, 2520, 1, 3, 54.08), ("1008B", 160, 25600, 128, 8, 64, 6, 3072, 1, 1, 102.63),
]
# Parameters, heads, width, layers, pipeline, chunks, batch, microbatch, seconds with full recomputation, with sequence.
SEL = [
    ("22B", 64, 6144, 48, 1, 1, 4, 4, 1.42, 1.10), ("175B", 96, 12288, 96, 8, 3, 64, 1, 18.13, 13.75),
    ("530B", 128, 20480, 105, 35, 3, 280, 1, 49.05, 37.83), ("1T", 160, 25600, 128, 64, 1, 512, 1, 94.42, 71.49),
]

# Ranks, replicas, published FLOP/s of each. The table's third row, sequences of 131,072 over 16 ranks, is not here. Most
# of its FLOPs are attention's, and the source does not say whether it counts those that a causal mask hides (a step of
# 15.3 s) or not (10.9 s), nor how long the documents were beyond which attention did not reach. Its ranks gathered keys
# and values of 8 heads, and each worked on a chunk from both ends of the sequence; strategy.context gathers them
# repeated for 128 heads, and deals chunks so only on a ring.
LLAMA3 = [(8192, 64, 430e12), (16384, 128, 400e12)]
# Ranks, tokens a second of each, GiB.
TORCHTITAN = [(8, 6667, 77.0), (128, 6514, 62.0)]


def megatron():
    for name, heads, dim, layers, tensor, pipeline, data, batch, microbatch, chunks, seconds in PTDP:
        yield Row(f"ptdp-{name}", "a100", "layout.lua", tensor * pipeline * data, dict(
            layers=layers, dim=dim, heads=heads, tensor=tensor, pipeline=pipeline, data=data, batch=batch,
            microbatch=microbatch, chunks=chunks), seconds)
    for name, heads, dim, layers, pipeline, chunks, batch, microbatch, full, sequence in SEL:
        shape = dict(layers=layers, dim=dim, heads=heads, tensor=8, pipeline=pipeline, batch=batch,
                     microbatch=microbatch, chunks=chunks)
        yield Row(f"sel-{name}-full", "a100", "layout.lua", 8 * pipeline, shape, full)
        yield Row(f"sel-{name}-sequence", "a100", "layout.lua", 8 * pipeline, shape | dict(sequence="true"), sequence)
    yield Row("sel-530B-sequence-2240", "a100", "layout.lua", 2240, dict(
        layers=105, dim=20480, heads=128, tensor=8, pipeline=35, data=8, batch=2240, microbatch=1, chunks=3,
        sequence="true"), 39.15)


def llama():
    layers, dim, context = 126, 16384, 8192
    flops_of_token = 6 * 405e9 + 12 * layers * dim * context
    for ranks, data, flops in LLAMA3:
        yield Row(f"llama3-{ranks}", "h100", "llama.lua", ranks, dict(
            layers=layers, dim=dim, heads=128, hidden=53248, batch=2048, microbatch=1, tensor=8, pipeline=16,
            data=data, reshard=0), 2048 * context * flops_of_token / (ranks * flops))
    for ranks, tokens, memory in TORCHTITAN:
        words = dict(data=ranks, batch=2 * ranks, microbatch=2, again="selective")
        shape = dict(layers=32, dim=4096, heads=32, kv_heads=8, hidden=14336, vocab=128256, ctx=context)
        yield Row(f"torchtitan-{ranks}", "h100-500w", "llama.lua", ranks, words, 2 * context / tokens, memory * 2**30,
                  beside=beside.torchtitan(shape | words))


def rows():
    yield from megatron()
    yield from llama()
