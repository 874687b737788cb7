-- SPDX-License-Identifier: Apache-2.0
--
-- What torch.save has written (tests/data/make_pt.py) is what safetensors hold of the same tensors; nothing in it is run.
local orrery = require "orrery"
local nn = orrery.nn
local files = "../../data/files/pt/"

local function text(value)
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i, each in ipairs(value) do parts[i] = text(each) end
  return "{" .. table.concat(parts, ",") .. "}"
end

for _, pair in ipairs { { "tensors.pt", "tensors.safetensors", 14 }, { "layers.bin", "layers.safetensors", 7 } } do
  local found, wanted, count = orrery.load(files .. pair[1]), orrery.load(files .. pair[2]), 0
  for name, tensor in pairs(wanted) do
    local same = found[name]
    assert(same and same.dtype == tensor.dtype and table.concat(same.shape, ",") == table.concat(tensor.shape, ","), name)
    assert(text(same:tolist()) == text(tensor:tolist()), name)
    count = count + 1
  end
  for name in pairs(found) do assert(wanted[name], name) end
  assert(count == pair[3], count)
end

local alone = orrery.load(files .. "alone.pt").tensor
assert(text(alone:tolist()) == text(orrery.load(files .. "tensors.pt")["model.w"]:tolist()[1]))

local model = nn.sequential { nn.linear(3, 4) }
local function map(name) return name:find "^0" and name:gsub("^0", "1") or nil end
local function turned(name)
  if name == "0.weight" then return "1.weight", true end
  return map(name)
end
model:load_weights(files .. "layers.bin", { map = map })
local other = nn.sequential { nn.linear(3, 4) }
other:load_weights(files .. "layers.safetensors", { map = map })
assert(orrery.digest(model) == orrery.digest(other))

local function refusal(...) return tostring(select(2, pcall(...))) end
local why = refusal(model.load_weights, model, files .. "layers.bin", { map = turned })
assert(why:find "layers.bin: '0.weight' is %[3,4%] transposed, of the model it is %[4,3%]", why)
why = refusal(orrery.load, files .. "module.pt")
assert(why:find "module.pt: it has 'torch.nn.modules.linear.Linear', which is not loaded", why)
why = refusal(orrery.load, files .. "command.pt")
assert(why:find "command.pt: it has 'posix.system', which is not loaded", why)
why = refusal(orrery.load, files .. "old.pt")
assert(why:find "old.pt: not what torch.save writes", why)
