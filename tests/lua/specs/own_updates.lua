-- SPDX-License-Identifier: Apache-2.0
-- An attached optimizer applies the gradients of each call, whatever holds them.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local function near(a, b) assert(math.abs(a - b) < 1e-5, ("%g, expected %g"):format(a, b)) end

local p = orrery.parameter({ 1 }, { name = "p" })
local sgd = optim.sgd { lr = 1 }:attach { p }
for i, gradient in ipairs { { 10 }, { 100 }, { 1000 } } do
  sgd:update { orrery.tensor(gradient, "f32") }
  near(p:read():item(), -({ 10, 110, 1110 })[i])
end

-- Buffers are read where they are, and another buffer is another gradient.
local one, two = orrery.buffer({ 1 }, { init = 1 }), orrery.buffer({ 1 }, { init = 5 })
sgd:update { one }
near(p:read():item(), -1111)
sgd:update { two }
near(p:read():item(), -1116)
one:write { 2.0 }
sgd:update { one }
near(p:read():item(), -1118)
local ok, why = pcall(sgd.update, sgd, { orrery.tensor({ 1, 2 }, "f32") })
assert(not ok and why:find("gradient 1 is [2], the parameter 'p' is [1]", 1, true), why)

-- One optimizer in two places has moments for each.
local momentum = optim.momentum { lr = 1, momentum = 0.5 }
local q, r = orrery.parameter({ 1 }, { name = "w" }), orrery.parameter({ 1 }, { name = "w" })
local on_q, on_r = momentum:attach { q }, momentum:attach { r }
on_q:update { orrery.tensor({ 1 }, "f32") }
on_r:update { orrery.tensor({ 1 }, "f32") }
near(r:read():item(), q:read():item())

local function stepped(optimizer, dims)
  local w = orrery.parameter({ dims }, { name = "w", init = 1 })
  local run = orrery.compile(function(b) return (b.x * w):mean() end,
    { params = { w }, optimizer = optimizer })
  local batch = { x = { {} } }
  for i = 1, dims do batch.x[1][i] = 1.0 end
  return function()
    run:step(batch)
    return w:read():tolist()[1]
  end
end
local adam = optim.adam { lr = 0.1 }
local first, second, wider = stepped(adam, 1), stepped(adam, 1), stepped(adam, 2)
local alone = stepped(optim.adam { lr = 0.1 }, 1)
near(first(), alone())
near(first(), alone())
near(second(), 0.9)
near(wider(), 0.9)

-- value_and_grad keeps the gradients of parameters of equal names apart.
local a, b = nn.linear(1, 1, { bias = false }), nn.linear(1, 1, { bias = false })
local model = nn.sequential { a, b }
a.weight:write { { 2.0 } }
b.weight:write { { 3.0 } }
local _, gradients = orrery.value_and_grad(function(batch) return model(batch.x):mean() end, model)
  { x = { { 1.0 } } }
near(gradients[1]:read():item(), 3)
near(gradients[2]:read():item(), 2)

-- What is frozen when the gradients come stays as it is.
local still, free = orrery.parameter({ 1 }, { name = "still" }), orrery.parameter({ 1 }, { name = "free" })
local step_both = optim.sgd { lr = 1 }:attach { still, free }
for _, frozen in ipairs { false, true, false } do
  still:freeze(frozen)
  step_both:update { orrery.tensor({ 1.0 }), orrery.tensor({ 1.0 }) }
end
assert(still:read():tolist()[1] == -2 and free:read():tolist()[1] == -3)

-- From a file it goes on as if it had never stopped: moments, and how many updates there were.
local path = os.tmpname()
local function trained(breaks)
  local p = nn.parameter({ 3 }, { init = nn.init.constant(1) })
  local adam = optim.adam { lr = function(step) return 0.1 / step end }:attach { p }
  for step = 1, 4 do
    adam:update { orrery.tensor { 0.5, -1.0 * step, 2.0 } }
    if step == breaks then
      adam:save(path)
      adam = optim.adam { lr = function(s) return 0.1 / s end }:attach { p }
      adam:load(path)
    end
  end
  return tostring(p:read())
end
assert(trained(2) == trained(0))
local other = optim.momentum {}:attach { nn.parameter { 3 } }
local loaded, message = pcall(other.load, other, path)
os.remove(path)
assert(not loaded and message:find "load_weights: .* the module has no '1.count', '1.m'", message)
