# SPDX-License-Identifier: Apache-2.0
"""Times of a step, and memory, of FSDP, context parallelism and mixtures of experts, on A100s, H100s and H200s.

This list was made, with its sources and with the rows to which constants may be fitted, before any of it was planned.
A time follows from published tokens a second of each card and the tokens of a step. Sources, each read in full at the
commit that is named; what a source leaves open is said where the rows are:

Addresses begin with https://github.com/.

MPT: mosaicml/llm-foundry at 061f2c7, the README in scripts/train/benchmarking: all rows of its tables "H100 80GB BF16"
and "A100 80GB with 1600 Gbps" of models from 7b on. PyTorch's FSDP, FULL_SHARD; attention of these models was Triton's
flash attention (scripts/train/yamls/pretrain/mpt-7b.yaml at 15fb4ff). For H100s the table does not name the network.
TORCHTITAN-A100: pytorch/torchtitan at 0413364, page "performance" in docs, all rows: FSDP2 on 64 A100s of 80 GB. The
network is not named.
TORCHTITAN: pytorch/torchtitan at 31a17bf, benchmarks/llama3_h100_202412_torchtitan, table 2 (context parallelism), the
two rows whose FLOPs are mostly attention's: linear layers ran in float8, which the plan takes for bf16. The two rows
with tensor parallelism are of assets/images/async-tp-perf-06-14-2025.png of the same repository, an image that another
reader read for us: vanilla TP, bf16 (its commands: benchmarks/asyncTP_llama3_h100_2025-06_torchtitan at 5ecb74e).
IBM: foundation-model-stack/fms-fsdp at 0d31998, the README, and pytorch/pytorch.github.io at 2ad1005, the post
2024-03-13-maximizing-training, table 1; shapes: fms_fsdp/utils/config_utils.py at 08d8ae7. 128 A100s whose hosts have
400 Gb/s, 96 H100s whose hosts have 800. The post's 13B (every so many blocks computed again, not said how many) is left
out.
KEMPNER: KempnerInstitute/KempnerForge at 9f3f03a, benchmarks/mfu_scaling: all 14 rows of its report of 2026-04-05, and
mfu_bench.sh; KEMPNER-WEAK: at e9f9189, benchmarks/weak_scaling_160gpu, the README: all 11 rows. H200s, four to a host;
parameters and states are bf16 (kempnerforge/distributed/parallel.py at 01b461a), blocks are computed again, tensor
ranks cut sequences (tensor_parallel.py at 0c4eba1). The network is "InfiniBand".
INTERNLM: InternLM/InternLM at 20fe5ac, page "train_performance" in doc/en, the row (tp=1, zero1=-1): ZeRO-1 over all
ranks, hosts with 4 x 100 Gb/s; shape: configs/7B_sft.py at 0047876.
EASYCONTEXT: jzhang38/EasyContext at 1729d4f, the README, "Speed": ring attention, zigzag, on 8 A100s. Parameters and
states lay in host memory (accelerate_configs/zero3_offload.json at 0ce2fba), in the plan only where ranks share
batches; how many microbatches a step had is not said, here as in train_scripts/EasyContext-1M-Llama-2-7B.sh at 4c453b8
at the length.
AUTOMODEL: NVIDIA-NeMo/Automodel at 01926a5, page "performance-summary" in docs, Qwen3 MoE 30B: balanced routing,
experts of eight ranks, all computed again (examples/benchmark/configs/qwen3_moe_30b_te_deepep.yaml at 092af93); the
other rows have latent attention or windows, which llama.lua lacks. Shape: zyzshishui/slime,
scripts/models/qwen3-30B-A3B.sh.
MCORE: NVIDIA/Megatron-LM at 022bcb5, megatron/core/transformer/moe, the README: Mixtral 8x7B, 468 TFLOP/s ("MCore
v0.9") and its reference mapping ("v0.8") on 64 H100s.

Left out before planning, too: whatever ran in fp8 but attention's long rows (NeMo's and Megatron Bridge's tables), and
KempnerForge's mixtures, which reached 1.5 % of their cards' peak.
"""
import beside
from row import Row

# One row of each stack and card: what the others' errors are once a stack has been run on a card.
FITTED_OF_STACKS = {
    "mpt-h100-7b-2048", "mpt-a100-7b-2048", "torchtitan-a100-8b-op", "ibm-a100-7b", "ibm-h100-7b", "kempner-7b-fsdp4",
    "internlm-8", "easycontext-64k-data",
}

# Model, tokens of a sample, ranks, samples of a microbatch, microbatches, whether blocks are computed again, tokens a
# second of a card.
MPT_H100 = [
    ("70b", 2048, 64, 8, 4, 1, 1039), ("70b", 2048, 32, 2, 16, 1, 882), ("30b", 8192, 8, 1, 21, 1, 1384),
    ("30b", 4096, 8, 1, 21, 1, 1802), ("30b", 2048, 32, 14, 3, 1, 2308), ("30b", 2048, 16, 10, 3, 1, 2263),
    ("30b", 2048, 8, 3, 21, 1, 2002), ("30b", 1024, 8, 6, 21, 1, 2084), ("13b", 32768, 8, 1, 3, 1, 1976),
    ("13b", 16384, 8, 3, 3, 1, 2985), ("13b", 4096, 8, 10, 3, 1, 4717), ("13b", 2048, 64, 2, 1, 0, 4800),
    ("13b", 2048, 32, 2, 1, 0, 4811), ("13b", 2048, 16, 2, 1, 0, 4767), ("13b", 2048, 8, 2, 1, 0, 4792),
    ("13b", 1024, 8, 40, 3, 1, 5502), ("7b", 65536, 8, 1, 2, 1, 1956), ("7b", 32768, 8, 2, 2, 1, 3318),
    ("7b", 8192, 8, 8, 2, 1, 6935), ("7b", 4096, 8, 16, 2, 1, 8611), ("7b", 2048, 8, 6, 1, 0, 10643),
    ("7b", 1024, 8, 64, 2, 1, 10203),
]
MPT_A100 = [
    ("70b", 2048, 64, 8, 4, 1, 410), ("70b", 2048, 32, 2, 16, 1, 373), ("30b", 8192, 8, 1, 21, 1, 574),
    ("30b", 4096, 8, 1, 21, 1, 814), ("30b", 2048, 8, 3, 21, 1, 916), ("30b", 1024, 8, 6, 21, 1, 946),
    ("30b", 512, 8, 12, 21, 1, 967), ("13b", 32768, 8, 1, 3, 1, 1016), ("13b", 16384, 8, 3, 3, 1, 1431),
    ("13b", 8192, 8, 5, 3, 1, 1795), ("13b", 4096, 8, 10, 3, 1, 2060), ("13b", 2048, 8, 2, 3, 0, 2262),
    ("13b", 1024, 8, 40, 3, 1, 2330), ("7b", 65536, 8, 1, 2, 1, 1013), ("7b", 32768, 8, 2, 2, 1, 1672),
    ("7b", 16384, 8, 4, 2, 1, 2453), ("7b", 8192, 8, 8, 2, 1, 3206), ("7b", 4096, 8, 16, 2, 1, 3684),
    ("7b", 2048, 8, 6, 2, 0, 4641), ("7b", 1024, 8, 64, 2, 1, 4357),
]
# FLOP/s of that attention: FlashAttention reached 25 to 40 % of an A100's peak (abstract of arXiv 2307.08691), whose
# middle this is; a kernel for A100s is as much faster on an H100 as that has more processors and a higher clock.
TRITON = {"a100": 0.325 * 312e12, "h100": 0.325 * 312e12 * (67e12 / 128) / (19.5e12 / 64)}
MPT_SHAPES = {"7b": (32, 4096, 32), "13b": (40, 5120, 40), "30b": (48, 7168, 56), "70b": (80, 8192, 64)}

LLAMA2 = dict(vocab=32000, ctx=4096)
LLAMA = {
    "llama2-7b": LLAMA2 | dict(layers=32, dim=4096, heads=32, kv_heads=32, hidden=11008),
    "llama2-13b": LLAMA2 | dict(layers=40, dim=5120, heads=40, kv_heads=40, hidden=13824),
    "llama2-34b": LLAMA2 | dict(layers=48, dim=8192, heads=64, kv_heads=8, hidden=22016),
    "llama2-70b": LLAMA2 | dict(layers=80, dim=8192, heads=64, kv_heads=8, hidden=28672),
    "8b": dict(layers=32, dim=4096, heads=32, kv_heads=8, hidden=14336),
    "13b": dict(layers=40, dim=5120, heads=40, kv_heads=8, hidden=17920),
    "70b": dict(layers=80, dim=8192, heads=64, kv_heads=8, hidden=28672),
}

# What, model, samples of a rank, what is computed again, tokens a second of a card.
TORCHTITAN_A100 = [
    ("8b-layer", "8b", 1, "half", 2904), ("8b-op", "8b", 1, "selective", 2973), ("70b", "70b", 1, "blocks", 331),
    ("llama2-13b", "llama2-13b", 2, "none", 2162), ("llama2-13b-layer", "llama2-13b", 2, "half", 1914),
    ("llama2-13b-op", "llama2-13b", 2, "selective", 1904), ("llama2-70b-op", "llama2-70b", 1, "selective", 355),
    ("llama2-70b", "llama2-70b", 2, "blocks", 353),
]
# What, card, model, ranks, samples of a rank, computed again, ranks that hold one set of pieces, tokens a second of a
# card, bits a second of a host.
IBM = [
    ("7b", "a100", "llama2-7b", 128, 2, "none", 8, 3760, 400e9),
    ("13b", "a100", "llama2-13b", 128, 1, "none", 8, 1700, 400e9),
    ("34b-8", "a100", "llama2-34b", 128, 8, "blocks", 0, 772, 400e9),
    ("34b-2", "a100", "llama2-34b", 128, 2, "blocks", 0, 700, 400e9),
    ("70b-6", "a100", "llama2-70b", 128, 6, "blocks", 0, 380, 400e9),
    ("70b-2", "a100", "llama2-70b", 128, 2, "blocks", 0, 370, 400e9),
    ("7b", "h100", "llama2-7b", 96, 2, "none", 8, 7500, 800e9),
    ("34b-2", "h100", "llama2-34b", 96, 2, "blocks", 0, 1550, 800e9),
    ("70b-2", "h100", "llama2-70b", 96, 2, "blocks", 0, 800, 800e9),
]
# What, model, ranks of pieces, tensor ranks, samples of a microbatch, microbatches, tokens a second of all cards, GiB.
KEMPNER = [
    ("7b-1", "8b", 1, 1, 2, 4, 10471, 80.7), ("7b-fsdp2", "8b", 2, 1, 2, 4, 18728, 62.4),
    ("7b-tp2", "8b", 1, 2, 4, 2, 13163, 57.8), ("7b-fsdp4", "8b", 4, 1, 4, 2, 38983, 61.1),
    ("7b-tp4", "8b", 1, 4, 4, 2, 25135, 39.4), ("7b-tp2-fsdp2", "8b", 2, 2, 4, 2, 25980, 45.9),
    ("7b-tp4-fsdp2", "8b", 2, 4, 4, 2, 44299, 32.7), ("13b-fsdp8", "13b", 8, 1, 4, 4, 35405, 88.5),
    ("13b-tp4-fsdp2", "13b", 2, 4, 4, 4, 27345, 45.1), ("7b-tp4-fsdp4", "8b", 4, 4, 4, 2, 82988, 29.4),
    ("13b-tp4-fsdp4", "13b", 4, 4, 4, 4, 53814, 39.2), ("7b-tp4-fsdp8", "8b", 8, 4, 4, 2, 155917, 27.6),
    ("13b-tp4-fsdp8", "13b", 8, 4, 4, 4, 104309, 36.3), ("70b-tp4-fsdp8", "70b", 8, 4, 2, 4, 17657, 93.2),
    ("weak-13b-8", "13b", 2, 4, 4, 4, 29860, 45.0), ("weak-13b-32", "13b", 8, 4, 4, 4, 110373, 36.2),
    ("weak-13b-64", "13b", 16, 4, 4, 4, 216507, 34.8), ("weak-13b-128", "13b", 32, 4, 4, 4, 423306, 34.0),
    ("weak-13b-160", "13b", 40, 4, 4, 4, 534644, 33.9), ("weak-70b-8", "70b", 2, 4, 2, 4, 3623, 128.5),
    ("weak-70b-32", "70b", 8, 4, 2, 4, 18688, 93.2), ("weak-70b-64", "70b", 16, 4, 2, 4, 35824, 86.8),
    ("weak-70b-96", "70b", 24, 4, 2, 4, 52190, 84.6), ("weak-70b-128", "70b", 32, 4, 2, 4, 69985, 83.6),
    ("weak-70b-160", "70b", 40, 4, 2, 4, 85571, 82.9),
]
# Ranks, tokens a second of a card.
INTERNLM = [(8, 4062), (16, 3842), (32, 3752), (64, 3690), (128, 3571), (256, 3209), (512, 2861), (1024, 2271)]
# What, tokens of a sample, ranks that share a sequence, microbatches, tokens a second of all eight cards.
EASYCONTEXT = [
    ("64k-data", 65536, 1, 2, 10240), ("64k", 65536, 8, 4, 7816), ("128k", 131072, 8, 4, 4266),
    ("512k", 524288, 8, 2, 2133), ("700k", 700 * 1024, 8, 2, 1603),
]


def mpt(card, table):
    for model, ctx, ranks, microbatch, count, again, tokens in table:
        layers, dim, heads = MPT_SHAPES[model]
        at = f"-{ranks}" if ranks > 8 else ""
        yield Row(f"mpt-{card}-{model}-{ctx}{at}", card, "mpt.lua", ranks, dict(
            layers=layers, dim=dim, heads=heads, ctx=ctx,
            batch=ranks * microbatch * count, microbatch=microbatch,
            recompute="true" if again else "false", several="true" if count > 1 else "false"),
            microbatch * count * ctx / tokens, facts=dict(attention=TRITON[card]))


def torchtitan():
    for what, model, samples, again, tokens in TORCHTITAN_A100:
        shape = dict(ctx=8192) | LLAMA[model]
        yield Row(f"torchtitan-a100-{what}", "a100", "llama.lua", 64, shape | dict(
            data=64, batch=64 * samples, microbatch=samples, again=again), samples * shape["ctx"] / tokens)
    for what, ctx, context, tokens, memory in (("128k", 131072, 4, 1071, 84.0), ("256k", 262144, 8, 548, 84.5)):
        words = LLAMA["8b"] | dict(
            ctx=ctx, vocab=128256, data=8 // context, context=context, batch=8 // context, microbatch=1, again="blocks")
        # Each rank has 32,768 tokens, and a piece of eight, as without context.
        pieces = dict(ctx=ctx // context, data=8, context=1, batch=8)
        yield Row(f"torchtitan-context-{what}", "h100-500w", "llama.lua", 8, words, ctx / context / tokens,
                  memory * 2**30, beside=beside.torchtitan(words | pieces), memory_words=pieces)
    for model, ranks, data, samples, again, tokens in (
            ("70b", 256, 32, 16, "blocks", 597), ("8b", 64, 8, 12, "selective", 4378)):
        yield Row(f"torchtitan-tensor-{model}", "h100-500w", "llama.lua", ranks, LLAMA[model] | dict(
            ctx=8192, data=data, tensor=8, batch=data * samples, microbatch=samples, again=again),
            data * samples * 8192 / ranks / tokens)


def ibm():
    for what, card, model, ranks, samples, again, group, tokens, bits in IBM:
        yield Row(f"ibm-{card}-{what}", card, "llama.lua", ranks, LLAMA[model] | dict(
            data=ranks, group=group, batch=ranks * samples, microbatch=samples, again=again),
            samples * 4096 / tokens, facts=dict(bits_of_host=bits))


def kempner():
    for what, model, pieces, tensor, samples, count, tokens, memory in KEMPNER:
        words = LLAMA[model] | dict(
            ctx=4096, vocab=128256, data=pieces, tensor=tensor, batch=pieces * samples * count, microbatch=samples,
            again="blocks", half="true")
        yield Row(f"kempner-{what}", "h200", "llama.lua", pieces * tensor, words, pieces * samples * count * 4096 / tokens,
                  memory * 2**30, facts=dict(ranks_per_host=4), beside=beside.kempner(words))


def internlm():
    for ranks, tokens in INTERNLM:
        yield Row(f"internlm-{ranks}", "a100", "llama.lua", ranks, dict(
            layers=32, dim=4096, heads=32, kv_heads=32, hidden=11008, vocab=103168, ctx=2048, stage=1, data=ranks,
            batch=ranks * 8, microbatch=2, again="none"), 8 * 2048 / tokens, facts=dict(bits_of_host=400e9))


def easycontext():
    for what, ctx, context, count, tokens in EASYCONTEXT:
        data = 8 // context
        yield Row(f"easycontext-{what}", "a100", "llama.lua", 8, LLAMA["llama2-7b"] | dict(
            ctx=ctx, data=data, context=context, batch=data * count, microbatch=1, again="blocks", offload="host"),
            data * count * ctx / tokens)


def mixtures():
    yield Row("automodel-qwen3-30b", "h100", "llama.lua", 8, dict(
        layers=48, dim=2048, heads=32, width=128, kv_heads=4, hidden=768, experts=128, top=8, vocab=151936, ctx=4096,
        data=1, expert=8, batch=512, microbatch=4, again="blocks"), 21.773)
    # Megatron's FLOPs: 6 for each weight that a token meets, and attention to all keys.
    met = 32 * (4096 * (2 * 4096 + 2 * 1024) + 2 * 3 * 4096 * 14336) + 4096 * 32000
    flops = 256 * 4096 * (6 * met + 12 * 32 * 4096 * 4096)
    yield Row("mcore-mixtral-8x7b", "h100", "llama.lua", 64, dict(
        layers=32, dim=4096, heads=32, kv_heads=8, hidden=14336, experts=8, top=2, vocab=32000, ctx=4096, pipeline=4,
        chunks=8, data=2, expert=8, batch=256, microbatch=1, stage=1, again="none"), flops / (64 * 468e12))


def more_rows():
    yield from mpt("h100", MPT_H100)
    yield from mpt("a100", MPT_A100)
    for some in (torchtitan, ibm, kempner, internlm, easycontext, mixtures):
        yield from some()
