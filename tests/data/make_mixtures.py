# SPDX-License-Identifier: Apache-2.0
#
# What the mixtures of experts of Hugging Face's transformers compute, and Grok-1's by its definition: writes
# files/mixtures.safetensors, for each kind the weights as nn.switch has them, x, the cotangent `by`, y, the gradients
# ("d.NAME") of the sum of y * by, of Mixtral with its loss of balance, and the choices of each expert (`load`). Takes
# torch and transformers.
import pathlib

import numpy
import torch
from safetensors.torch import save_file
from torch.nn import functional as F
from transformers import DeepseekV3Config, MixtralConfig, Qwen2MoeConfig, Qwen3MoeConfig
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock, load_balancing_loss_func
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeSparseMoeBlock
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

FILE = pathlib.Path(__file__).parent / "files/mixtures.safetensors"
DIM, HIDDEN, BATCH, TIME = 6, 5, 2, 8
EAGER = {"attn_implementation": "eager", "experts_implementation": "eager"}


class Grok(torch.nn.Module):
    """Two of the experts by their probabilities, which are not made to sum to 1; gated by GELU."""
    def __init__(self, experts):
        super().__init__()
        self.gate = torch.nn.Linear(DIM, experts, bias=False)
        self.experts = torch.nn.Module()
        self.experts.gate_up_proj = torch.nn.Parameter(torch.empty(experts, 2 * HIDDEN, DIM))
        self.experts.down_proj = torch.nn.Parameter(torch.empty(experts, DIM, HIDDEN))

    def forward(self, x):
        probability = self.gate(x).softmax(-1)
        value, index = probability.topk(2)
        y = torch.zeros_like(x)
        for place in numpy.ndindex(x.shape[:2]):
            for p, e in zip(value[place], index[place]):
                gate, up = (self.experts.gate_up_proj[e] @ x[place]).chunk(2)
                y[place] = y[place] + p * (self.experts.down_proj[e] @ (F.gelu(gate, approximate="tanh") * up))
        return y


def kinds():
    sizes = {"hidden_size": DIM, "moe_intermediate_size": HIDDEN, "hidden_act": "silu", **EAGER}
    yield "mixtral", 2, MixtralSparseMoeBlock(MixtralConfig(
        hidden_size=DIM, intermediate_size=HIDDEN, num_local_experts=4, num_experts_per_tok=2, **EAGER))
    yield "qwen3", 3, Qwen3MoeSparseMoeBlock(Qwen3MoeConfig(
        num_experts=8, num_experts_per_tok=3, norm_topk_prob=True, **sizes))
    yield "qwen2", 4, Qwen2MoeSparseMoeBlock(Qwen2MoeConfig(
        num_experts=8, num_experts_per_tok=4, norm_topk_prob=False, shared_expert_intermediate_size=2 * HIDDEN, **sizes))
    yield "deepseek", 3, DeepseekV3MoE(DeepseekV3Config(
        n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2, norm_topk_prob=True, n_shared_experts=2,
        routed_scaling_factor=2.5, **sizes))
    yield "grok", 2, Grok(8)


def as_ours(named):
    """Tensors by the names and in the layout of nn.switch."""
    for name, t in named:
        name = name.replace("shared_experts", "shared_expert")
        if name == "gate.e_score_correction_bias":
            yield "router.bias", t
        elif name == "gate.weight":
            yield "router.weight", t
        elif name == "experts.gate_up_proj":
            yield from zip(("gate", "up"), t.transpose(1, 2).chunk(2, -1))
        elif name == "experts.down_proj":
            yield "down", t.transpose(1, 2)
        elif name == "shared_expert_gate.weight":
            yield "shared_gate.weight", t
        else:
            yield name.replace("shared_expert.", "shared.").replace("_proj", ""), t


def choices(kind, top, block, x):
    """How many places choose each expert."""
    found = block.gate(x)
    index = found.softmax(-1).topk(top)[1] if kind == "grok" else found[2]
    return torch.bincount(index.flatten(), minlength=block.gate.weight.shape[0]).float()


def figures(kind, top, block, generator):
    def random(like, size):
        return torch.randn(like.shape, generator=generator) * size
    with torch.no_grad():
        for p in block.parameters():
            p.copy_(random(p, 0.6))
        for b in block.buffers():
            b.copy_(random(b, 0.3))
    x = torch.randn(BATCH, TIME, DIM, generator=generator).requires_grad_()
    by = torch.randn(BATCH, TIME, DIM, generator=generator)
    y = block(x.clone())
    loss = (y * by).sum()
    if kind == "mixtral":  # of each sample by itself
        loss = loss + sum(load_balancing_loss_func((block.gate(each)[0],), 4, top) for each in x) / BATCH * 0.02
    loss.backward()
    yield from (("x", x), ("by", by), ("y", y), ("loss", loss), ("d.x", x.grad), ("load", choices(kind, top, block, x)))
    yield from as_ours((*block.named_parameters(), *block.named_buffers()))
    yield from ((f"d.{name}", t) for name, t in as_ours((name, p.grad) for name, p in block.named_parameters()))


torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
generator = torch.Generator().manual_seed(23)
save_file({f"{kind}.{name}": t.detach().contiguous() for kind, top, block in kinds()
           for name, t in figures(kind, top, block, generator)}, FILE)
