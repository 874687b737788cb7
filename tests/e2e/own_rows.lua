-- SPDX-License-Identifier: Apache-2.0
--
-- A model whose samples read tensors that have the batch's extent without being made of it. `way`: "extent" makes them by
-- the batch's extent, "like" of values of the batch, with the same numbers. `stack`: a strategy beside data parallelism.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { way = { "extent", "like" }, stack = { "data", "accumulate", "pipeline", "recompute" }, batch = 5, steps = 3 }
orrery.seed(3)
local extent = args.way == "extent"

local Model = nn.module("Model", function(m)
  m.token = nn.parameter({ 1, 1, 4 }, { init = nn.init.constant(0.5) })
  m.schedule = nn.parameter({ 6 }, { init = nn.init.uniform(0.5, 1) })
  m.first, m.second = nn.linear(4, 4), nn.linear(4, 1)
  return function(batch)
    local x, B = batch.x, batch.x.shape[1] -- [B, 3, 4]
    local column = x:slice(2, 1, 1):slice(3, 1, 1) -- [B, 1, 1]
    local token = extent and m.token:expand(B, -1, -1) * 2 or m.token * 2 + 0 * column
    local rows = orrery.concat({ token, m.first(x) }, 2) -- [B, 4, 4]
    local drawn = extent and orrery.uniform { B, 1, 1 } or orrery.uniform(column)
    local noise = extent and orrery.normal { B, 4, 4 } or orrery.normal(rows)
    local place = extent and orrery.iota(B):view(B, 1, 1) or orrery.sample_index():view(B, 1, 1)
    local kept = orrery.uniform { 1, 4, B }
    if not extent then kept = kept:permute(3, 1, 2):for_each_sample():permute(2, 3, 1) end
    kept = kept:lt(0.7)
    local time = (drawn * 6):floor():cast "i64" -- a schedule's place for each sample, as diffusion models draw it
    local kind = extent and orrery.full({ B }, 2, "i64") or (column:reshape(B) * 0):cast "i64" + 2
    rows = rows * m.schedule:take(time) + kind:one_hot(4):view(B, 1, 4)
    rows = rows * drawn + noise * 0.1 + place:cast "f32" * (extent and orrery.full({ B, 1, 1 }, 0.01) or 0.01)
    rows = orrery.where(kept, rows:permute(2, 3, 1), extent and orrery.zeros { 1, 1, B } or 0):permute(3, 1, 2)
    return nn.mse(m.second(rows:tanh()):mean(2), batch.y)
  end
end)
local model = Model()
local stacks = {
  data = { strategy.data {} }, accumulate = { strategy.data {}, strategy.accumulate {} }, recompute = { strategy.data {},
    strategy.recompute { path = "first" } },
  pipeline = { strategy.pipeline { stages = { { "first" }, { "second" } } } },
}
local run = orrery.compile(model, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = 3, strategy = stacks[args.stack],
})
local function batch_of(n)
  local x, y = {}, {}
  for i = 1, n do
    x[i], y[i] = {}, { math.cos(i) }
    for t = 1, 3 do x[i][t] = { math.sin(i), math.sin(i + t), math.cos(2 * t), 0.1 * i } end
  end
  return { x = x, y = y }
end
for _ = 1, args.steps do orrery.log("loss %.9g", run:step(batch_of(args.batch)):mean()) end
orrery.log("eval %.9g", run:eval(batch_of(args.batch + 2)):mean())
orrery.log("digest %s", orrery.digest(model))
