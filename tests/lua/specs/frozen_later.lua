-- SPDX-License-Identifier: Apache-2.0
--
-- What is frozen after a run was compiled, or not any more: a step would go on as before, without a word.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local model = nn.sequential { nn.freeze(nn.linear(1, 1)), nn.linear(1, 1) }
local batch = { x = { { 1.0 }, { 2.0 } }, y = { { 0.5 }, { -1.0 } } }
local function compile()
  return orrery.compile(function(b) return nn.mse(model(b.x), b.y) end,
    { params = model, optimizer = optim.sgd { lr = 0.1 } })
end
local function refuses(run, what)
  local ok, why = pcall(run.step, run, batch)
  assert(not ok and why:find(what .. " after it was compiled, which goes on without that; compile again", 1, true), why)
end

local run = compile()
run:step(batch)
local first = model[1].weight:read():item()
nn.freeze(model[1], false)
refuses(run, "'1.bias' of the model was included in training again")
nn.freeze(model)
refuses(run, "'2.bias' of the model was frozen")
run:eval(batch) -- trains nothing
assert(model[1].weight:read():item() == first)

-- Compiled again, it trains what is not frozen.
nn.freeze(model, false)
compile():step(batch)
assert(model[1].weight:read():item() ~= first)
