-- SPDX-License-Identifier: Apache-2.0
--
-- A model with ops of plugins (examples/plugin-squash, examples/plugin-moments), used by the script or, with
-- by=strategy, by a strategy that replaces what a tanh makes: prints the digest, which is the same.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { by = "script", op = "squash", eps = "eps" }

local by_plugins = strategy.define {
  name = "by_plugins", class = "approx",
  transform_forward = function(draft)
    for _, v in ipairs(draft:values "activation") do
      if draft:maker(v).fn == "tanh" then
        local squashed = draft:op(args.op, { v }, { [args.eps] = 1e-4 })
        local mean, variance = draft:op("moments", { squashed })
        draft:replace(v, squashed - mean:reshape(-1, 1) + variance:reshape(-1, 1))
      end
    end
  end,
}

local function replaced(x)
  if args.by ~= "script" then return x end
  local squashed = orrery.ops.squash(x, { eps = 1e-4 })
  local mean, variance = orrery.ops.moments(squashed)
  return squashed - mean:reshape(-1, 1) + variance:reshape(-1, 1)
end

orrery.seed(1)
local model = { a = nn.linear(3, 8), b = nn.linear(8, 1) }
local x, y = {}, {}
for i = 1, 12 do x[i], y[i] = { math.sin(i), math.cos(i), math.sin(2 * i) }, { math.cos(3 * i) } end
local data = orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }
local stack = { strategy.data {} }
if args.by == "strategy" then stack[2] = by_plugins {} end
local run = orrery.compile(function(b) return nn.mse(model.b(replaced(model.a(b.x):tanh())), b.y) end, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = 4, strategy = stack,
})
for _, batch in data:batches { size = 12, steps = 5 } do run:step(batch) end
orrery.log("digest %s", orrery.digest(model))
