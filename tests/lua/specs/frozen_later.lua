-- SPDX-License-Identifier: Apache-2.0
--
-- What is frozen after a run was compiled, or not any more, counts from the next step on.
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
nn.freeze(model[1])
before_first, before_second = first(), second()
run:step(batch)
run:eval(batch)
assert(first() == before_first and second() ~= before_second)
nn.freeze(model)
local ok, why = pcall(run.step, run, batch)
assert(not ok and why:find("params has no parameter to train: all in it are frozen", 1, true), why)
