# SPDX-License-Identifier: Apache-2.0
#
# PyTorch twins of transformers.lua, and the figures of their training: run by itself it writes, as make.py does,
# weights (*.safetensors), batches (*.npy) and losses and gradient norms (transformers.json) beside itself.
import copy
import json
import math

import torch
from torch import nn
from torch.nn import functional as F

from make import BATCH, HERE, STEPS, save_arrays, save_safetensors
from models import numbered

IGNORED = -100


def split_heads(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, dim, heads, kv_heads=None, inner=None, bias=False):
        super().__init__()
        self.heads, self.kv_heads, inner = heads, kv_heads or heads, inner or dim
        kv = inner // heads * self.kv_heads
        self.q, self.k = nn.Linear(dim, inner, bias=bias), nn.Linear(dim, kv, bias=bias)
        self.v, self.o = nn.Linear(dim, kv, bias=bias), nn.Linear(inner, dim, bias=bias)

    def forward(self, x, memory=None, turn=lambda t: t, **how):
        memory = x if memory is None else memory
        q = turn(split_heads(self.q(x), self.heads))
        k, v = turn(split_heads(self.k(memory), self.kv_heads)), split_heads(self.v(memory), self.kv_heads)
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, **how)
        return self.o(y.transpose(1, 2).flatten(2))


class BertBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn, self.ln1 = Attention(dim, heads, bias=True), nn.LayerNorm(dim, 1e-12)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.ln2 = nn.LayerNorm(dim, 1e-12)

    def forward(self, x, mask):
        x = self.ln1(x + self.attn(x, attn_mask=mask))
        return self.ln2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, vocab, positions, dim, heads, layers):
        super().__init__()
        self.decode = nn.Linear(dim, vocab)
        self.tok, self.pos, self.kind = nn.Embedding(vocab, dim), nn.Embedding(positions, dim), nn.Embedding(2, dim)
        self.tok.weight = self.decode.weight
        self.norm = nn.LayerNorm(dim, 1e-12)
        self.blocks = numbered([(i + 1, BertBlock(dim, heads)) for i in range(layers)])
        self.dense, self.ln = nn.Linear(dim, dim), nn.LayerNorm(dim, 1e-12)

    def forward(self, ids, kinds):
        x = self.norm(self.tok(ids) + self.pos(torch.arange(ids.shape[1])) + self.kind(kinds))
        for block in self.blocks.values():
            x = block(x, ids.ne(0)[:, None, None, :])
        return self.decode(self.ln(F.gelu(self.dense(x))))


def bucket(distance, buckets, furthest, causal):
    """That of keys so far behind their query, as T5 numbers them."""
    first = 0
    if not causal:
        buckets //= 2
        first, distance = (distance < 0).long() * buckets, distance.abs()
    distance = distance.clamp(min=0)
    exact = buckets // 2
    far = torch.log(distance.double().clamp(min=1) / exact) / math.log(furthest / exact) * (buckets - exact)
    far = (exact + (far + 1e-9).long()).clamp(max=buckets - 1)
    return first + torch.where(distance < exact, distance, far)


class RelativeBias(nn.Module):
    def __init__(self, heads, buckets, distance, causal):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(buckets, heads))
        self.how = buckets, distance, causal

    def forward(self, queries, keys):
        distance = torch.arange(queries)[:, None] - torch.arange(keys)
        return self.weight[bucket(distance, *self.how)].permute(2, 0, 1)[None]


class T5Block(nn.Module):
    def __init__(self, dim, heads, inner, cross):
        super().__init__()
        self.ln1, self.attn = nn.RMSNorm(dim, 1e-6), Attention(dim, heads, inner=inner)
        if cross:
            self.ln2, self.cross = nn.RMSNorm(dim, 1e-6), Attention(dim, heads, inner=inner)
        self.ln3 = nn.RMSNorm(dim, 1e-6)
        self.up, self.down = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x, bias, memory=None, seen=None):
        x = x + self.attn(self.ln1(x), attn_mask=bias, scale=1.0)
        if memory is not None:
            x = x + self.cross(self.ln2(x), memory, attn_mask=seen, scale=1.0)
        return x + self.down(F.relu(self.up(self.ln3(x))))


class T5(nn.Module):
    def __init__(self, vocab, dim, heads, inner, layers, buckets, distance):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.near, self.behind = (RelativeBias(heads, buckets, distance, causal) for causal in (False, True))
        self.encoder, self.decoder = (numbered([(i + 1, T5Block(dim, heads, inner, cross)) for i in range(layers)])
                                      for cross in (False, True))
        self.norm1, self.norm2 = nn.RMSNorm(dim, 1e-6), nn.RMSNorm(dim, 1e-6)

    def forward(self, ids, labels):
        hidden = torch.zeros(ids.shape[0], 1, 1, ids.shape[1]).masked_fill(ids.eq(0)[:, None, None], -math.inf)
        x, places = self.tok(ids), labels.shape[1]
        for block in self.encoder.values():
            x = block(x, self.near(ids.shape[1], ids.shape[1]) + hidden)
        memory = self.norm1(x)
        later = torch.full((places, places), -math.inf).triu(1)
        x = self.tok(F.pad(labels.clamp(min=0), (1, -1)))
        for block in self.decoder.values():
            x = block(x, self.behind(places, places) + later, memory, hidden)
        return self.norm2(x) * self.tok.embedding_dim ** -0.5 @ self.tok.weight.T


def rotary(x, base=10000.0):
    """The convention of halves, of [batch, heads, time, depth]."""
    half = x.shape[-1] // 2
    speed = base ** (-torch.arange(half) / half)
    angle = torch.arange(x.shape[-2])[:, None] * torch.cat([speed, speed])
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * angle.cos() + turned * angle.sin()


class LlamaBlock(nn.Module):
    def __init__(self, dim, heads, kv_heads, hidden):
        super().__init__()
        self.norm1, self.attn = nn.RMSNorm(dim, 1e-5), Attention(dim, heads, kv_heads)
        self.norm2, self.gate = nn.RMSNorm(dim, 1e-5), nn.Linear(dim, hidden, bias=False)
        self.up, self.down = nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        x = x + self.attn(self.norm1(x), turn=rotary, is_causal=True)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, vocab, dim, heads, kv_heads, hidden, layers):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.blocks = numbered([(i + 1, LlamaBlock(dim, heads, kv_heads, hidden)) for i in range(layers)])
        self.norm, self.head = nn.RMSNorm(dim, 1e-5), nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x = self.tok(ids)
        for block in self.blocks.values():
            x = block(x)
        return self.head(self.norm(x))


class Lora(nn.Module):
    """What a low-rank pair adds to a linear layer."""
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.a = nn.Parameter(torch.empty(rank, linear.in_features))
        self.b = nn.Parameter(torch.empty(linear.out_features, rank))
        scale = alpha / rank
        linear.register_forward_hook(lambda _, x, y: y + scale * (x[0] @ self.a.T) @ self.b.T)


def adapters(model):
    """{Orrery's path: adapter} of the queries and values of every layer."""
    return nn.ModuleDict({place: nn.ModuleDict({name: Lora(getattr(block.attn, name), 2, 4.0) for name in "qv"})
                          for place, block in model.blocks.items()})


def initialise(model, generator):
    """Normal weights; norms near 1; biases that are not 0, so that none is untested."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            norm = name.endswith("weight") and p.dim() == 1
            p.copy_(torch.randn(p.shape, generator=generator) * (0.1 if p.dim() == 1 else 0.2) + norm)


def save(stem, model):
    save_safetensors(HERE / f"{stem}.safetensors", model.named_parameters())


def train(model, rate, batches, loss_of):
    """STEPS steps of AdamW over consecutive batches: losses, and gradient norms before clipping."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(*(t[step * BATCH:(step + 1) * BATCH] for t in batches))
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimizer.step()
        losses.append(loss.item())
    return {"loss": losses, "grad_norm": norms}


def cross_entropy(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten().long(), ignore_index=IGNORED)


def tokens(generator, places, vocab=31):
    """Ids from 1 on, with zeros behind the end of sequences of many lengths."""
    ids = torch.randint(1, vocab, (STEPS * BATCH, places), generator=generator, dtype=torch.int32)
    lengths = torch.randint(places // 2, places + 1, (STEPS * BATCH, 1), generator=generator)
    return ids.masked_fill(torch.arange(places) >= lengths, 0)


def bert(generator):
    model = Bert(31, 12, 16, 2, 2)
    initialise(model, generator)
    save("bert", model)
    ids = tokens(generator, 12)
    kinds = (torch.arange(12) >= 5).int().expand(ids.shape).contiguous()
    chosen = torch.rand(ids.shape, generator=generator).lt(0.3) & ids.ne(0)
    labels, x = ids.masked_fill(~chosen, IGNORED), ids.masked_fill(chosen, 1)
    save_arrays(bert_x=x, bert_y=labels, bert_kind=kinds)
    return train(model, 1e-2, (x, labels, kinds), lambda x, y, kind: cross_entropy(model(x, kind), y))


def t5(generator):
    model = T5(31, 16, 4, 24, 2, buckets=8, distance=16)
    initialise(model, generator)
    save("t5", model)
    x, y = tokens(generator, 20), tokens(generator, 10)
    y = y.masked_fill(y.eq(0), IGNORED)
    save_arrays(t5_x=x, t5_y=y)
    return train(model, 1e-2, (x, y), lambda x, y: cross_entropy(model(x, y), y))


def llama(generator):
    model = Llama(31, 32, 4, 2, 48, 2)
    initialise(model, generator)
    save("llama", model)
    x = torch.randint(0, 31, (STEPS * BATCH, 12), generator=generator, dtype=torch.int32)
    y = (3 * x + 7) % 31
    save_arrays(llama_x=x, llama_y=y)
    base = copy.deepcopy(model)
    figures = {"llama": train(model, 1e-2, (x, y), lambda x, y: cross_entropy(model(x), y))}
    pairs = adapters(base)
    initialise(pairs, generator)
    save("lora", pairs)
    figures["lora"] = train(pairs, 2e-2, (x, y), lambda x, y: cross_entropy(base(x), y))
    return figures


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    generator = torch.Generator().manual_seed(21)
    figures = {"framework": f"PyTorch {torch.__version__.split('+')[0]}, CPU, f32",
               "bert": bert(generator), "t5": t5(generator), **llama(generator)}
    (HERE / "transformers.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
