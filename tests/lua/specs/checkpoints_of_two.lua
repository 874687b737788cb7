-- SPDX-License-Identifier: Apache-2.0
--
-- Two runs that read each other's models, and an average that a function keeps, go on from checkpoints in new models as
-- if nothing had happened, in whichever order the checkpoints are loaded.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local batch = { z = { { 0.5, -1.0 }, { 2.0, 0.25 } } }

local function make()
  orrery.seed(1)
  local maker, critic, slow = nn.linear(2, 2), nn.linear(2, 1), nn.freeze(nn.linear(2, 2))
  orrery.parameters { maker = maker, critic = critic, slow = slow }
  local function compile(sign, model)
    return orrery.compile(function(b) return critic(maker(b.z)):sigmoid():mean() * sign end,
      { params = model, optimizer = optim.adam { lr = 0.1 } })
  end
  local t = { all = { maker, critic, slow }, runs = { critic = compile(1, critic), maker = compile(-1, maker) } }
  t.follow = orrery.func(function() slow.weight:update(slow.weight * 0.5 + maker.weight * 0.5) end)
  return t
end

local function train(t)
  t.runs.critic:step(batch)
  t.runs.critic:step(batch)
  t.runs.maker:step(batch)
  t.follow()
end

local paths = { critic = os.tmpname(), maker = os.tmpname() }
for _, path in pairs(paths) do os.remove(path) end
local first = make()
train(first)
-- The critic's checkpoint has the maker as it was a step before.
first.runs.critic:step(batch)
first.runs.critic:step(batch)
first.runs.critic:save(paths.critic)
first.runs.maker:step(batch)
first.follow()
first.runs.maker:save(paths.maker)
train(first)
local wanted = orrery.digest(first.all)

for _, order in ipairs { { "critic", "maker" }, { "maker", "critic" } } do
  for _, begun in ipairs { false, true } do
    local t = make()
    if begun then train(t) end
    for _, name in ipairs(order) do t.runs[name]:load(paths[name]) end
    train(t)
    local found = orrery.digest { t.all[1], t.all[2] }
    assert(found == orrery.digest { first.all[1], first.all[2] }, table.concat(order, " ") .. " " .. tostring(begun))
    if order[2] == "maker" then assert(orrery.digest(t.all) == wanted, tostring(begun)) end
  end
end
for _, path in pairs(paths) do
  for _, file in ipairs(orrery.data.files(path, { ".safetensors", ".json" })) do os.remove(file) end
  os.remove(path .. "/1")
  os.remove(path)
end
