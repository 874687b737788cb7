-- SPDX-License-Identifier: Apache-2.0
--
-- Matrices of experts that a file has one by one: saved and loaded by a map, and what is refused.
local orrery = require "orrery"
local nn = orrery.nn
local path = os.tmpname()
local map = orrery.weight_map {
  { "gate", "router" }, { "experts.*.w1.weight", "up.*", transpose = true }, { "experts.*.w2.weight", "down.*" },
}
orrery.seed(5)
local layer, other = nn.switch(2, { experts = 3, hidden = 4 }), nn.switch(2, { experts = 3, hidden = 4 })
layer:save_weights(path .. ".safetensors", { map = map })
local file = orrery.load(path .. ".safetensors")
local up = layer.up:read():tolist()
for e = 1, 3 do
  local w1, w2 = file[("experts.%d.w1.weight"):format(e - 1)], file[("experts.%d.w2.weight"):format(e - 1)]
  assert(tostring(w1.shape) == "[4,2]" and tostring(w2.shape) == "[4,2]", tostring(w1.shape))
  for i = 1, 2 do
    for j = 1, 4 do assert(w1:tolist()[j][i] == up[e][i][j], "transposed") end
  end
end
assert(orrery.digest(other) ~= orrery.digest(layer))
other:load_weights(path .. ".safetensors", { map = map })
assert(orrery.digest(other) == orrery.digest(layer))

local function refused(text, rules)
  local ok, why = pcall(other.load_weights, other, path .. ".safetensors", {
    map = function(name) return rules(name, map(name)) end,
  })
  assert(not ok and tostring(why):find(text, 1, true), tostring(why))
end
refused("has no 'up.2'", function(name, target, turned)
  if name ~= "experts.1.w1.weight" then return target, turned end
end)
refused("'experts.0.w1.weight' and 'experts.1.w1.weight' are both for 'up.1'", function(name, target, turned)
  return name == "experts.1.w1.weight" and "up.1" or target, turned
end)

-- One that is not there leaves all as they are.
local before = other.up:read():tolist()
local sevens = { { 7.0, 7.0, 7.0, 7.0 }, { 7.0, 7.0, 7.0, 7.0 } }
other.up:write(orrery.tensor { sevens, sevens, sevens })
local missing = other:load_weights(path .. ".safetensors", {
  strict = false, map = function(name) if name ~= "experts.1.w1.weight" then return map(name) end end,
})
assert(table.concat(missing, " ") == "up.2" and other.up:read():tolist()[1][1][1] == 7 and before[1][1][1] ~= 7)
os.remove(path)
os.remove(path .. ".safetensors")
