# SPDX-License-Identifier: Apache-2.0
"""Times of a step that were published for layouts on A100s with 80 GB, eight to a host.

PTD-P: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021,
table 1 (the time follows from its FLOP/s). SEL: Korthikanti et al., "Reducing Activation Recomputation in Large
Transformer Models", MLSys 2023: its times of an iteration.
"""
# The rate of 16-bit products in a100.json makes the geometric mean of these rows' ratios 1. The rest of that file are
# an A100's vector rate, its memory's speed as copies reach it, NVLink and 200 Gb/s InfiniBand as collectives reach them.
FITTED = {"ptdp-18.4B", "sel-22B-full", "sel-22B-sequence"}

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


def rows():
    """Yields name, ranks, arguments of layout.lua, published seconds."""
    for name, heads, dim, layers, tensor, pipeline, data, batch, microbatch, chunks, seconds in PTDP:
        yield f"ptdp-{name}", tensor * pipeline * data, dict(
            layers=layers, dim=dim, heads=heads, tensor=tensor, pipeline=pipeline, data=data, batch=batch,
            microbatch=microbatch, chunks=chunks), seconds
    for name, heads, dim, layers, pipeline, chunks, batch, microbatch, full, sequence in SEL:
        shape = dict(layers=layers, dim=dim, heads=heads, tensor=8, pipeline=pipeline, batch=batch,
                     microbatch=microbatch, chunks=chunks)
        yield f"sel-{name}-full", 8 * pipeline, shape, full
        yield f"sel-{name}-sequence", 8 * pipeline, shape | dict(sequence="true"), sequence
    yield "sel-530B-sequence-2240", 2240, dict(
        layers=105, dim=20480, heads=128, tensor=8, pipeline=35, data=8, batch=2240, microbatch=1, chunks=3,
        sequence="true"), 39.15
