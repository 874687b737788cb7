-- SPDX-License-Identifier: Apache-2.0
--
-- Passes over 23 samples of a classifier of which some labels do not count, between steps of training. Prints what each
-- pass gives, and the model's scores of all samples, of which the test computes the same. `size`: of a batch; `stack`;
-- `first`: one is before the first step.
local orrery = require "orrery"
local nn, optim, metrics, strategy = orrery.nn, orrery.optim, orrery.metrics, orrery.strategy
local args = orrery.args { size = 5, stack = "strategy.data {}", first = false }
orrery.seed(1)
local model = nn.sequential { nn.linear(2, 8), nn.layernorm(8), nn.dropout(0.2), nn.tanh, nn.linear(8, 8), nn.tanh, nn.linear(8, 3) }
local run = orrery.compile(function(b)
  local scores = model(b.x)
  return nn.cross_entropy(scores, b.y, { ignore = -1 }), {
    accuracy = metrics.accuracy(scores, b.y, { ignore = -1 }), f1 = metrics.f1(scores, b.y, { ignore = -1 }),
    perplexity = metrics.perplexity(scores, b.y, { ignore = -1 }), scores = scores,
  }
end, {
  params = model, optimizer = optim.adam { lr = 0.02 }, microbatches = 4,
  strategy = load("local strategy = ... return { " .. args.stack .. " }")(strategy),
})
local x, y = {}, {}
for i = 1, 23 do x[i], y[i] = { math.sin(i), math.cos(2 * i) }, i % 4 - 1 end
local data = orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "i32") }
if args.first then run:eval(data, { size = args.size, name = "first" }) end
for step, batch in data:batches { size = 8, steps = 4 } do
  run:step(batch)
  if step % 2 == 0 then
    local result = run:eval(data, { size = args.size })
    local line = {}
    for _, row in ipairs(result:get("scores"):tolist()) do
      for _, value in ipairs(row) do line[#line + 1] = ("%.9g"):format(value) end
    end
    orrery.log("%.9g %.9g %.9g %.9g", result:mean(), result:get "accuracy", result:get "f1", result:get "perplexity")
    orrery.log("%s", table.concat(line, " "))
  end
end
orrery.log("digest %s", orrery.digest(model))
