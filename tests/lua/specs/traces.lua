-- SPDX-License-Identifier: Apache-2.0
--
-- What may change between steps without a word: what a trace does not depend on.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local net, state = nn.linear(2, 1), { steps = 0, history = {}, note = "first" }
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
local traces = 0
local function loss(b)
  traces = traces + 1
  local shift = orrery.tensor { 0.5 } -- another constant of the same value in each trace
  return nn.mse(net(b.x) + shift, b.y) * (state.steps < 100 and 1 or 2)
end
local run = orrery.compile(loss, { params = net, optimizer = optim.sgd { lr = 0 } })
for step = 1, 30 do
  state.history[step] = run:step(batch):mean()
  state.note = "step " .. step
end
assert(traces > 1)

-- Nor is it traced again for what has often changed without another program, but now and then.
local before = traces
for step = 31, 200 do
  state.history[step] = run:step(batch):mean()
  state.note = "step " .. step
end
assert(traces <= before + 4, traces)
for step = 1, 3 do state.steps = step run:step(batch) end
state.steps = 100
local ok, message = pcall(run.step, run, batch)
assert(not ok and message:find "'state.steps' of the function at traces.lua:10 was 3", message)

-- The programs of 128 shapes are kept. One that was used long ago is made anew, with the same result.
local marks = io.tmpfile() -- one for each trace
local double = orrery.func(function(x)
  marks:write "."
  return x * 2
end)
local row, last = {}, {}
for n = 1, 129 do
  row[n] = n
  last[n] = double(row):tolist()[n]
end
local before_that = marks:seek "end"
assert(double(row):tolist()[129] == last[129] and marks:seek "end" == before_that)
assert(double({ 1 }):tolist()[1] == last[1] and marks:seek "end" > before_that)
