-- SPDX-License-Identifier: Apache-2.0
--
-- What nn.switch costs beside a dense layer of as many multiplications a token: one block of a GPT, dense
-- (experts=0) or with a mixture (capacity=0: without one). Instructions of a step are those of two steps less those of one:
--
--   valgrind --tool=callgrind build/orrery run --threads 1 tests/bench/switch.lua experts=8 steps=2
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args {
  experts = 8, top = 1, group = 64, capacity = 1.0, dim = 128, time = 128, batch = 8, vocab = 96, steps = 2,
}
orrery.seed(3)

local Block = nn.module("Block", function(m, dim)
  m.ln1, m.ln2 = nn.layernorm(dim), nn.layernorm(dim)
  m.qkv, m.proj = nn.linear(dim, { dim, dim, dim }), nn.linear(dim, dim)
  if args.experts > 0 then
    local capacity = args.capacity > 0 and args.capacity
    m.mlp = nn.switch(dim, { experts = args.experts, top = args.top, capacity = capacity, group = args.group })
  else
    m.mlp = nn.sequential { nn.linear(dim, 4 * dim, { bias = false }), nn.gelu, nn.linear(4 * dim, dim, { bias = false }) }
  end
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = 4, causal = true }))
    local y, aux = m.mlp(m.ln2(x))
    return x + y, aux and aux.loss or 0
  end
end)

local GPT = nn.module("GPT", function(m)
  m.tok, m.pos = nn.embedding(args.vocab, args.dim), nn.embedding(args.time, args.dim)
  m.block, m.norm = Block(args.dim), nn.layernorm(args.dim)
  m.head = nn.linear(args.dim, args.vocab, { bias = false, tie = m.tok.weight })
  return function(ids)
    local x, loss = m.block(m.tok(ids) + m.pos(orrery.iota(ids.shape[-1])))
    return m.head(m.norm(x)), loss
  end
end)

local model = GPT()
local run = orrery.compile(function(b)
  local logits, loss = model(b.x)
  return nn.cross_entropy(logits, b.y) + loss
end, { params = model, optimizer = optim.sgd { lr = 0.01 } })
for step = 1, args.steps do
  local x, y = {}, {}
  for i = 1, args.batch do
    x[i], y[i] = {}, {}
    for j = 1, args.time do
      x[i][j] = (step * 31 + i * 17 + j * (i + 3)) % args.vocab
      y[i][j] = (x[i][j] * 5 + 7) % args.vocab
    end
  end
  run:step { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
end
