-- SPDX-License-Identifier: Apache-2.0
--
-- Trains a small GPT for a few steps; every rank prints what it has counted.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { steps = 3, dim = 24, ctx = 8, batch = 24, microbatches = 12,
  stack = "data", stage = 1, group = 0, bucket = 8000, servers = 2, sequence = false, every = 1 }
orrery.seed(1)

local data = orrery.data.text("counters.lua", { ctx = args.ctx, tokens = "bytes" })
local embed, norm = nn.embedding(256, args.dim), nn.layernorm(args.dim)
local qkv = nn.linear(args.dim, { args.dim, args.dim, args.dim })
local GPT = nn.module("GPT", function(m)
  m.embed, m.norm, m.qkv, m.drop = embed, norm, qkv, nn.dropout(0.1)
  m.head = nn.linear(args.dim, 256, { bias = false, tie = embed.weight })
  return function(ids)
    local q, k, v = m.qkv(m.norm(m.embed(ids)))
    return m.head(m.drop(nn.attention(q, k, v, { heads = 2, causal = true })))
  end
end)
local model = GPT()

local zero = { stage = args.stage, group = args.group, bucket = args.bucket }
local stacks = {
  data = function() return { strategy.data {} } end,
  zero = function() return { strategy.data {}, strategy.zero(zero) } end,
  server = function() return { strategy.server { servers = args.servers, bucket = args.bucket } } end,
  async = function() return { strategy.server { mode = "async" } } end,
  average = function() return { strategy.average { every = args.every } } end,
  pipeline = function() return { strategy.pipeline { size = 2 }, strategy.data {} } end,
  tensor = function()
    local half = strategy.tensor { size = 2, sequence = args.sequence }
    return { strategy.data { size = orrery.world.size // 2 }, half }
  end,
  context = function()
    local half = strategy.tensor { size = 2, sequence = args.sequence }
    return { strategy.data { size = orrery.world.size // 4 }, strategy.context { size = 2 }, half }
  end,
}

local run = orrery.compile(function(batch) return nn.cross_entropy(model(batch.x), batch.y) end, {
  params = model, optimizer = optim.adamw { lr = 1e-3 }, clip = 1, microbatches = args.microbatches,
  strategy = stacks[args.stack](),
})
for _, batch in data:batches { size = args.batch, steps = args.steps } do run:step(batch) end
local c = run:counters()
print(("counted by %d: steps %d arena_bytes %d bytes_sent %d"):format(
  orrery.world.rank, c.steps, c.arena_bytes, c.bytes_sent))
