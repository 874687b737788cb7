# SPDX-License-Identifier: Apache-2.0
"""Bytes of a rank that a framework holds when it holds most, and the plan of the same layout does not.

They follow from the framework's source; none is measured or fitted. PyTorch computes a cross entropy op by op, on each
rank from whole logits: log_softmax, its gradient and that of the logits are as large as the logits. The plan has the
logits in 16 bits, of which a tensor rank has its part, and of several microbatches their gradient beside them.

KempnerForge at 01b461a: `F.cross_entropy` on 16-bit logits that stay alive (scripts/train.py), gathered from the tensor
ranks like the embedding, which each has whole (distributed/tensor_parallel.py). All microbatches but the last leave out
FSDP's exchange of gradients (training/grad.py), so that whole gradients wait for it, in the f32 that they are summed in
(distributed/parallel.py; PyTorch's `to_accumulated_grad_if_needed`). Its "GB" are 2^30 bytes of
torch.cuda.max_memory_allocated, so without NCCL and without what the allocator keeps (metrics/memory.py).
torchtitan in December 2024: `F.cross_entropy` on logits cast to f32, not compiled, which are gone before backward
(train.py); weights, gradients and states lie in pieces over all ranks, also those that share a sequence
(parallel_dims.py), in f32. With selective recomputation every second product of a block is computed again, of seven those
of the keys, of attention's output and of the gate's other half, and the last one is kept (parallelize_llama.py); the plan
keeps all but the last. Its GiB are what the allocator keeps, in use or not (`reserved_bytes.all.peak`, metrics.py).
"""


def logits(words, rows):
    """Elements of `rows` samples."""
    return rows * words["ctx"] * words["vocab"]


def parameters(words):
    """Of an embedding, and of the rest."""
    dim, width = words["dim"], words["dim"] // words["heads"]
    of_block = dim * (2 * dim + 2 * words["kv_heads"] * width + 3 * words["hidden"] + 2)
    embedding = words["vocab"] * dim
    return embedding, words["layers"] * of_block + dim + embedding


def kempner(words):
    tensor, pieces = words["tensor"], words["data"]
    embedding, rest = parameters(words)
    copies = 4 - 2 / tensor
    held = copies * 2 * logits(words, words["microbatch"])
    whole_embedding = embedding * (1 - 1 / tensor)
    if pieces == 1:  # no FSDP: weights, gradients and two states in 16 bits, here and there
        return held + 8 * whole_embedding
    whole_gradients = 4 * (embedding + rest / tensor)
    pieces_of_gradients = 4 * (embedding + rest) / tensor / pieces  # in f32, which the plan has instead
    return held + 6 * whole_embedding / pieces + whole_gradients - pieces_of_gradients


def torchtitan(words):
    held = (3 * 4 - 2) * logits(words, words["microbatch"])
    held += 2 * sum(parameters(words)) / words["data"]  # of gradients, which the plan has in 16 bits
    if words["again"] == "selective":
        keys = words["kv_heads"] * words["dim"] // words["heads"]
        held -= 2 * words["microbatch"] * words["ctx"] * words["layers"] * (keys + words["hidden"])
    return held
