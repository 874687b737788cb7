-- SPDX-License-Identifier: Apache-2.0
-- A checkpoint has the model's states, those that the loss changes and those that functions change.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local batch = { x = { { 1.0 }, { 2.0 } } }

local function make()
  local net = nn.module("net", function(m)
    m.fc = nn.linear(1, 1)
    m.frozen = nn.freeze(nn.linear(1, 1))
    m.seen = orrery.buffer({ 1 })
    return function(x)
      m.seen:update(m.seen + 1)
      return m.fc(x)
    end
  end)()
  local drawn = orrery.buffer({ 2 })
  local ema = orrery.buffer({ 1, 1 }, { name = "ema" })
  local gain = orrery.tensor { 1.0 }
  local t = { net = net, ema = ema, drawn = drawn }
  t.average = orrery.func(function() ema:update(ema * 0.5 + net.fc.weight * 0.5) end)
  t.run = orrery.compile(function(b)
    drawn:update(orrery.uniform { 2 })
    return (net(b.x) * gain):mean()
  end, { params = net, optimizer = optim.adam { lr = 0.1 } })
  return t
end
local function values(t, but_drawn)
  local list = {}
  for _, state in ipairs { t.net.fc.weight, t.net.frozen.weight, t.net.seen, t.ema, not but_drawn and t.drawn or nil } do
    list[#list + 1] = tostring(state:read())
  end
  return table.concat(list, "\n")
end

local path = os.tmpname()
os.remove(path)
local t = make()
for _ = 1, 3 do
  t.run:step(batch)
  t.average()
end
t.run:save(path)
local saved = values(t)
local text = ""
for _, name in ipairs(orrery.data.files(path, { ".safetensors" })) do
  local file <close> = assert(io.open(name, "rb"))
  text = text .. file:read "a"
end
assert(text:find "ema" and not text:find "constant")
t.run:step(batch)
t.average()
local later = values(t)
assert(later ~= saved)
t.run:load(path)
assert(values(t) == saved, values(t) .. "\nexpected\n" .. saved)
t.run:step(batch)
t.average()
assert(values(t) == later)

-- In a new model, whether its buffers have been read before or not; what waits for a first step is
-- saved again. The new run draws numbers of its own.
local name, drawn = t.drawn.name, nil
t.run:load(path)
drawn = tostring(t.drawn:read())
t.run:step(batch)
t.average()
later = values(t, true)
for _, early in ipairs { false, true } do
  t = make()
  t.drawn:rename(name)
  if early then values(t) end
  t.run:load(path)
  t.run:save(path)
  assert(tostring(t.drawn:read()) == drawn)
  t.run:step(batch)
  t.average()
  assert(values(t, true) == later, values(t, true) .. "\nexpected\n" .. later)
end
for _, file in ipairs { "3/shard-00001-model-00001-of-00001.safetensors", "3", "checkpoint.json" } do
  os.remove(path .. "/" .. file)
end
os.remove(path)
