-- SPDX-License-Identifier: Apache-2.0
--
-- A model whose samples meet what layers make of tensors that have the batch's extent without being made of it: of the
-- time that a diffusion model draws for each sample, for example. `way`: "extent" makes these tensors by the batch's
-- extent, "like" of values of the batch, with the same numbers. `stack`: strategies.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  way = { "extent", "like" }, stack = { "data", "accumulate", "recompute", "pipeline" }, batch = 5, microbatches = 3,
}
orrery.seed(3)

-- Every layer sees [samples, 1] or [samples, 6, 4].
local Layers = nn.module("Layers", function(m)
  m.first, m.second = nn.linear(1, 8), nn.linear(8, 8)
  m.norm, m.table, m.scale = nn.layernorm(8), nn.embedding(6, 8), nn.rmsnorm(4)
  m.conv, m.attention = nn.conv1d(6, 6, 3, { padding = 1 }), nn.multihead_attention(4, 2, { dropout = 0.2 })
  m.down, m.drop = nn.linear(24, 8), nn.dropout(0.2)
  return function(time, places, kind)
    local angles = time * (orrery.iota(4):cast "f32" * -0.5):exp()
    local features = nn.gelu(m.first(time)) + orrery.concat { angles:sin(), angles:cos() }
    features = m.norm(m.second(features)):softmax() + m.table(kind)
    local a, b = features:split(2, 2)
    features = features + (a * b):max(-1):reshape(-1, 1) + features:mean(-1, { keep = true }) + features:cumsum(2)
    local seen = m.scale(m.conv(places)) + m.attention(places)
    seen = seen:permute(2, 1, 3):flatten(2, 3):view(6, -1, 4):permute(2, 1, 3) -- samples and places are one dim between
    return m.drop(features) + m.down(seen:flatten(2, 3))
  end
end)
local Model = nn.module("Model", function(m)
  m.layers, m.enter, m.out = Layers(), nn.linear(4, 8), nn.linear(8, 1)
  return function(batch)
    local x, B = batch.x, batch.x.shape[1] -- [B, 3, 4]
    local column = x:slice(2, 1, 1):slice(3, 1, 1):reshape(B, 1)
    local rows = args.way == "extent" and { time = orrery.uniform { B, 1 }, places = orrery.normal { B, 6, 4 },
      kind = orrery.iota(B):cast "i64" % 6 } or { time = orrery.uniform(column),
      places = orrery.normal(orrery.concat({ x, x }, 2)), kind = orrery.sample_index() % 6 }
    local made = m.layers(rows.time, rows.places, rows.kind)
    local y = m.enter(x) + made:reshape(B, 1, 8)
    y = y:tanh() * made:reshape(-1, 1, 8) -- computed once, met twice
    return nn.mse(m.out(y):mean(2), batch.y)
  end
end)
local model = Model()
local stacks = {
  data = { strategy.data {} }, accumulate = { strategy.data {}, strategy.accumulate {} },
  recompute = { strategy.data {}, strategy.recompute { path = "layers" } },
  pipeline = { strategy.pipeline { stages = { { "layers" }, { "enter", "out" } } } },
}
local run = orrery.compile(model, {
  params = model, optimizer = optim.sgd { lr = 0.02 }, microbatches = args.microbatches, strategy = stacks[args.stack],
})
local x, y = {}, {}
for i = 1, args.batch do
  x[i], y[i] = {}, { math.cos(i) }
  for t = 1, 3 do x[i][t] = { math.sin(i), math.sin(i + t), math.cos(2 * t), 0.1 * i } end
end
for _ = 1, 3 do orrery.log("loss %.9g", run:step({ x = x, y = y }):mean()) end
orrery.log("digest %s", orrery.digest(model))
