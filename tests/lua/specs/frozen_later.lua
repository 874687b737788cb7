-- SPDX-License-Identifier: Apache-2.0
--
-- What is frozen after a run was compiled, or not any more, counts from the next step on; an attached optimizer, whose
-- list of gradients would be another, refuses.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local model = nn.sequential { nn.freeze(nn.linear(1, 1)), nn.linear(1, 1) }
local batch = { x = { { 1.0 }, { 2.0 } }, y = { { 0.5 }, { -1.0 } } }
local function first() return model[1].weight:read():item() end
local function second() return model[2].weight:read():item() end
local function loss(b) return nn.mse(model(b.x), b.y) end

local run = orrery.compile(loss, { params = model, optimizer = optim.sgd { lr = 0.1 } })
local before_first, before_second = first(), second()
run:step(batch)
assert(first() == before_first and second() ~= before_second)
nn.freeze(model[1], false)
run:step(batch)
assert(first() ~= before_first)
nn.freeze(model)
before_first, before_second = first(), second()
run:step(batch)
run:eval(batch)
assert(first() == before_first and second() == before_second)

nn.freeze(model, false)
local attached = optim.sgd { lr = 0.1 }:attach(model)
local gradients = orrery.func(function()
  local list = {}
  for i, p in ipairs(orrery.parameters(model)) do list[i] = orrery.ones(p.shape) end
  return table.unpack(list)
end)
nn.freeze(model[1])
local ok, why = pcall(attached.update, attached, { gradients() })
assert(not ok and why:find("of the model was frozen after the optimizer was attached; attach it again", 1, true), why)
nn.freeze(model[1], false)
attached:update { gradients() }
assert(math.abs(first() - (before_first - 0.1)) < 1e-6)
