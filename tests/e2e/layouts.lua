-- SPDX-License-Identifier: Apache-2.0
--
-- A small model in one layout, or with the entries that a search is to vary (`vary`), to plan or to train.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  vary = "", batch = 4, steps = 3, pipe = 1, data = 1, tensor = 1, each = 1, schedule = "1f1b", chunks = 0, zero = 0,
  zero_each = false, sequence = false, vocab = true, recompute = "", auto = false, microbatches = 0, stack = "",
}
orrery.seed(1)

local Block = nn.module("Block", function(m)
  m.up, m.down = nn.linear(32, 64), nn.linear(64, 32)
  return function(x) return x + m.down(nn.gelu(m.up(x))) end
end)
local Model = nn.module("Model", function(m)
  m.embed, m.blocks, m.head = nn.embedding(64, 32), nn.sequential(8, function() return Block() end), nn.linear(32, 64)
  return function(ids) return m.head(m.blocks(m.embed(ids))) end
end)

local function has(name) return args.vary:find(name, 1, true) ~= nil end
local stack = {}
local function add(entry) stack[#stack + 1] = entry end
if args.stack ~= "" then -- as a search prints it
  local made = load("local strategy = ... return { " .. args.stack .. " }", "stack", "t", {})(strategy)
  stack, args.microbatches = made.strategy, made.microbatches
elseif args.auto then
  add(strategy.auto { tensor = has "tensor", pipeline = has "pipeline" })
elseif args.vary ~= "" then
  if has "pipeline" then add(strategy.pipeline {}) end
  add(strategy.data {})
  if has "tensor" then add(strategy.tensor {}) end
else
  if args.pipe > 1 then add(strategy.pipeline { size = args.pipe, schedule = args.schedule, chunks = args.chunks }) end
  add(strategy.data { size = args.data })
  if args.zero > 0 then add(strategy.zero { stage = args.zero, each = args.zero_each }) end
  if args.tensor > 1 then
    add(strategy.tensor { size = args.tensor, sequence = args.sequence, vocab = args.vocab })
  end
  if args.recompute ~= "" then add(strategy.recompute { mode = args.recompute }) end
  if args.pipe == 1 and args.each > 1 then add(strategy.accumulate {}) end
end

local model = Model()
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, optimizer = optim.adamw { lr = 1e-3 }, strategy = stack,
  microbatches = args.microbatches > 0 and args.microbatches or args.auto and 0 or args.data * args.each,
})
local ids = orrery.func(function() return orrery.zeros({ args.batch, 8 }, "i32") end)()
local data = orrery.data.arrays { x = ids, y = ids }
local start
for step, batch in data:batches { size = args.batch, steps = args.steps } do
  run:step(batch):mean()
  if step == 1 then start = orrery.time() end
end
orrery.log("digest %s", orrery.digest(model))
orrery.log("each step %.3f ms", (orrery.time() - start) * 1e3 / math.max(args.steps - 1, 1))
