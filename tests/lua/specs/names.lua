-- SPDX-License-Identifier: Apache-2.0
--
-- A run keeps the names that its model had when it was compiled, whatever root holds the same parts later.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function pair() return { a = nn.linear(1, 1), b = nn.linear(1, 1) } end
local batch = { x = { { 1.0 }, { 2.0 } }, y = { { 0.5 }, { -1.0 } } }
local function compile(layers, params)
  return orrery.compile(function(b)
    local y = b.x
    for _, layer in ipairs(layers) do y = layer(y) end
    return nn.mse(y, b.y)
  end, { params = params, optimizer = optim.momentum { lr = 0.1 } })
end

-- The names of the tensors of a checkpoint, which is then removed.
local function saved(run)
  local path = os.tmpname()
  os.remove(path)
  run:save(path)
  local names = {}
  for _, file in ipairs(orrery.data.files(path, { ".safetensors" })) do
    for name in pairs(orrery.load(file)) do names[#names + 1] = name end
    os.remove(file)
  end
  for _, rest in ipairs { "/" .. run.steps, "/checkpoint.json", "" } do os.remove(path .. rest) end
  table.sort(names)
  return table.concat(names, " ")
end
local all = "a.bias a.weight b.bias b.weight optim.a.bias.v optim.a.weight.v optim.b.bias.v optim.b.weight.v"

-- Another run's root, before the first step and after it; a digest, a list, gradients of a part alone.
local model = pair()
local part, both = compile({ model.a }, { model.a }), { model.a, model.b }
local run = compile(both, model)
compile(both, { q = model.b, r = model.a })
run:step(batch)
assert(saved(run) == all, saved(run))
part:step(batch)
assert(saved(part) == "1.bias 1.weight optim.1.bias.v optim.1.weight.v", saved(part))
assert(saved(run) == all, saved(run))
orrery.digest { model.b }
orrery.parameters { z = model.b }
orrery.value_and_grad(function(b) return nn.mse(model.b(b.x), b.y) end, { model.b })(batch)
run:step(batch)
assert(saved(run) == all, saved(run))
assert(model.a.weight.name == "a.weight")

-- A checkpoint is read by the names of the run that reads it.
local path = os.tmpname()
os.remove(path)
run:save(path)
local value = model.b.weight:read():item()
run:step(batch)
orrery.digest { model.b }
run:load(path)
assert(model.b.weight:read():item() == value)
for _, file in ipairs(orrery.data.files(path, { ".safetensors" })) do os.remove(file) end
for _, rest in ipairs { "/2", "/checkpoint.json", "" } do os.remove(path .. rest) end
