-- SPDX-License-Identifier: Apache-2.0
--
-- Two models that do not know each other have parameters of one name: each run's checkpoint gives its own model its
-- values, also a parameter that it does not train.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local x = orrery.tensor({ { 1 } }, "f32")

local function made(weight, frozen)
  local layer = nn.linear(1, 1, { bias = frozen })
  layer.weight:write(orrery.tensor({ { weight } }, "f32"))
  local run = orrery.compile(function(batch) return layer(batch.x):mean() end, { params = layer,
    optimizer = optim.sgd { groups = frozen and { { match = "weight", frozen = true } } or {} } })
  return layer, run
end

local folder = os.tmpname()
os.remove(folder)
local trained, run = made(1, false)
run:step { x = x }
run:save(folder)
local _, other = made(5, true)
other:step { x = x }
other:save(folder .. "-other")

local again, first = made(0, false)
local frozen, second = made(0, true)
first:load(folder)
second:load(folder .. "-other")
assert(again.weight:read():item() == trained.weight:read():item())
assert(frozen.weight:read():item() == 5, frozen.weight:read():item())
for _, path in ipairs { folder, folder .. "-other" } do
  for _, file in ipairs(orrery.data.files(path, { ".safetensors", ".json" })) do os.remove(file) end
  os.remove(path .. "/1")
  os.remove(path)
end
