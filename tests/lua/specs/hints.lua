-- SPDX-License-Identifier: Apache-2.0
--
-- Where one of our objects is taken for a number, the error says what to write.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function says(text, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(message:find(text, 1, true), ("%s\ndoes not say: %s"):format(message, text))
end

-- The message handler, which adds hints, is that of traces and of the script itself.
local function traced(text, f)
  says(text, orrery.func(function(x) f(x) return x end), { 1.5, 2.5 })
end
local sum, result = "a Tensor has no numbers while its function is traced", "result:get(name)"
for _, text in ipairs { sum, result } do
  traced(text, function(x) return x:item() end)
  traced(text, function(x) return ("%f"):format(x) end)
  traced(text, function(x) return "x is " .. x end)
end
local t = orrery.tensor { 1.5 }
traced("a HostTensor value (upvalue 't')", function() return "t is " .. t end)

local net = nn.linear(1, 1)
says("take its numbers by :read():item()", function() return net.weight:item() end)
says("its number is x.value", function() return orrery.input("k", 1):item() end)
local field = orrery.data.arrays({ x = { { 1.0 }, { 2.0 } } }):batch(1, { size = 2 }).x
for _, wrong in ipairs {
  function() return field:unsqueeze(1) end, function() return field:tolist() end, function() return field[1] end,
} do says("its values are a HostTensor with all methods by :read()", wrong) end
says("did you mean 'shape'?", function() return field.shapes end)
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.x) end, { params = net, optimizer = optim.sgd {} })
local step = run:step { x = { { 1.5 } } }
says("write result:mean(): other results by result:get(name)", function() return step:item() end)
