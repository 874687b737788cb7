-- SPDX-License-Identifier: Apache-2.0
--
-- A small decoder whose blocks are mixtures of experts of one kind of the field, trained under the stack that the caller
-- puts where STACK stands; prints losses, norms and dropped choices in full, and a digest. Fails on a rank that sends
-- other bytes than planned.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  kind = { "mixtral", "qwen", "deepseek" }, steps = 3, batch = 8, microbatches = 4, layers = 2, time = 16, dim = 32,
  vocab = 96, hidden = 32,
}
orrery.seed(3)
local kinds = {
  mixtral = { experts = 4, top = 2, gated = true, capacity = false, balance_over = "all" },
  qwen = { experts = 8, top = 3, gated = true, capacity = 1.0, group = 8, shared = 1, shared_gate = true },
  deepseek = { experts = 8, top = 4, gated = true, capacity = 1.5, shared = 1, score = "sigmoid", bias_rate = 0.01,
    n_group = 4, topk_group = 2, group = 8 },
}
local o = kinds[args.kind]
o.hidden = args.hidden
local Block = nn.module("Block", function(m, dim)
  m.norm1, m.norm2 = nn.rmsnorm(dim), nn.rmsnorm(dim)
  m.q, m.k, m.v, m.o = nn.linear(dim, dim), nn.linear(dim, dim), nn.linear(dim, dim), nn.linear(dim, dim)
  m.experts = nn.switch(dim, o)
  return function(x)
    local h = m.norm1(x)
    x = x + m.o(nn.attention(m.q(h), m.k(h), m.v(h), { heads = 4, causal = true }))
    local y, aux = m.experts(m.norm2(x))
    return x + y, aux
  end
end)
local GPT = nn.module("GPT", function(m)
  m.tok, m.blocks = nn.embedding(args.vocab, args.dim), {}
  for i = 1, args.layers do m.blocks[i] = Block(args.dim) end
  m.norm, m.head = nn.rmsnorm(args.dim), nn.linear(args.dim, args.vocab, { bias = false })
  return function(ids)
    local x, loss, dropped = m.tok(ids), 0, 0
    for i = 1, args.layers do
      local aux
      x, aux = m.blocks[i](x)
      loss, dropped = aux.loss + loss, aux.dropped + dropped
    end
    return m.head(m.norm(x)), loss, dropped
  end
end)
local model = GPT()
local run = orrery.compile(function(b)
  local logits, loss, dropped = model(b.x)
  return nn.cross_entropy(logits, b.y) + loss, { dropped = dropped }
end, { params = model, optimizer = optim.adamw { lr = 0.01 }, clip = 0.5, microbatches = args.microbatches,
  strategy = STACK })
for step = 1, args.steps do
  local x, y = {}, {}
  for i = 1, args.batch do
    x[i], y[i] = {}, {}
    for j = 1, args.time do
      x[i][j] = (step * 31 + i * 17 + j * (i + 3)) % args.vocab
      y[i][j] = (x[i][j] * 5 + 7) % args.vocab
    end
  end
  local result = run:step { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
  orrery.log("step %d loss %.17g norm %.17g dropped %g", step, result:mean(), result:get("grad_norm"), result:get "dropped")
end
local used = run:counters()
if used.predicted_bytes_sent ~= used.bytes_sent then
  error(("rank %d sent %d bytes, predicted were %d"):format(orrery.world.rank, used.bytes_sent, used.predicted_bytes_sent))
end
orrery.log("digest %s", orrery.digest(model))
