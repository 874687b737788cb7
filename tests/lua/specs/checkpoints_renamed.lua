-- SPDX-License-Identifier: Apache-2.0
--
-- A checkpoint knows a model that its run only reads by the names of the first step, whatever the script has called it
-- since: the digest of a list names all that is in it anew. Loaded alone it gives that model its values, too.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local batch = { z = { { 0.5, -1.0 }, { 2.0, 0.25 } } }

local function make()
  orrery.seed(1)
  local models = { maker = nn.linear(2, 2), critic = nn.linear(2, 1) }
  orrery.parameters(models)
  local function compile(sign, model)
    return orrery.compile(function(b) return models.critic(models.maker(b.z)):sigmoid():mean() * sign end,
      { params = model, optimizer = optim.adam { lr = 0.1 } })
  end
  return models, compile(1, models.critic), compile(-1, models.maker)
end

local function bytes(models) return orrery.digest { models.maker, models.critic } end

local folder = os.tmpname()
os.remove(folder)
local models, critic, maker = make()
for _ = 1, 3 do
  critic:step(batch)
  maker:step(batch)
end
local saved = bytes(models)
maker:save(folder .. "/maker")
critic:save(folder .. "/critic")
for _ = 1, 2 do critic:step(batch) end
maker:step(batch)
critic:step(batch)
local wanted = bytes(models)

for _, name in ipairs { "maker", "critic" } do
  local text = assert(io.open(folder .. "/" .. name .. "/checkpoint.json")):read "a"
  for _, tensor in ipairs { "maker.weight", "maker.bias", "critic.weight", "critic.bias" } do
    assert(text:find('"' .. tensor .. '"', 1, true), name .. ": " .. text)
  end
end
for _, only in ipairs { "maker", "critic" } do
  local again, of_critic, of_maker = make()
  local run = only == "maker" and of_maker or of_critic
  run:load(folder .. "/" .. only)
  run:eval(batch) -- the other model is known from here on
  assert(bytes(again) == saved, only)
end
local again, of_critic, of_maker = make()
of_maker:load(folder .. "/maker")
of_critic:load(folder .. "/critic")
for _ = 1, 2 do of_critic:step(batch) end
bytes(again)
of_maker:step(batch)
of_maker:save(folder .. "/on") -- what was loaded is not saved twice
of_critic:step(batch)
assert(bytes(again) == wanted)
for _, name in ipairs { "maker", "critic", "on" } do
  local path = folder .. "/" .. name
  for _, file in ipairs(orrery.data.files(path, { ".safetensors", ".json" })) do os.remove(file) end
  os.remove(path .. "/1")
  os.remove(path)
end
os.remove(folder)
