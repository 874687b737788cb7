-- SPDX-License-Identifier: Apache-2.0
--
-- A small network and an average of it: a line for each step with the loss, and the sums of squares of the average's
-- parameters and buffers. averages.py is the same in PyTorch, averages.json its figures.
local orrery = require "orrery"
local filled = require "filled"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { kind = "", steps = 12, microbatches = 1, stack = "", again = "" }

local kinds = {
  ema = { decay = 0.9 }, mean = { decay = false }, late = { decay = false, from = 4, every = 3 },
  late_ema = { decay = 0.5, from = 3, every = 2 }, frozen = { decay = 0.9 },
}

local function make()
  local net = nn.sequential { nn.linear(6, 12), nn.batchnorm(12), nn.tanh, nn.linear(12, 3) }
  for n, p in ipairs { net[1].weight, net[1].bias, net[2].weight, net[2].bias, net[4].weight, net[4].bias } do
    p:write(filled(n, p.shape[1], p.shape[2] or 1))
  end
  local average = nn.averaged(net, kinds[args.kind])
  local run = orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, {
    params = net, optimizer = optim.momentum { lr = 0.05 }, microbatches = args.microbatches,
    strategy = load("local strategy = ...; return {" .. args.stack .. "}")(orrery.strategy),
  })
  return net, average, run
end

local function squares(states, trained)
  local sum = 0
  for _, p in ipairs(states) do
    for _, row in ipairs(p.trained == trained and p:read():tolist() or {}) do
      for _, x in ipairs(type(row) == "table" and row or { row }) do sum = sum + x * x end
    end
  end
  return sum
end

local tree = require "orrery.nn.module_tree"
local net, average, run = make()
for step = 1, args.steps do
  if args.kind == "frozen" then net[1].weight:freeze(step >= 5) end
  local loss = run:step { x = filled(20 + step, 8, 6), y = filled(40 + step, 8, 3) }:mean()
  local states = tree.states(average)
  orrery.log("%.9g %.9g %.9g", loss, squares(states, true), squares(states, false))
  if step == args.steps // 2 and args.again ~= "" then
    run:save(args.again)
    net, average, run = make()
    run:load(args.again)
  end
end
-- The average predicts with its own weights and statistics.
local found = orrery.func(function(x) return average(x):sumsq() end)(orrery.tensor(filled(3, 8, 6), "f32"))
orrery.log("%.9g 1 1", found:item())
