-- SPDX-License-Identifier: Apache-2.0
--
-- Directories of torch.distributed.checkpoint (tests/data/make_dcp.py), whole and in shards, are what safetensors hold
-- of the same tensors.
local orrery = require "orrery"
local nn = orrery.nn
local files = "../../data/files/dcp/"

local function text(value)
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i, each in ipairs(value) do parts[i] = text(each) end
  return "{" .. table.concat(parts, ",") .. "}"
end

for name, tensors in pairs { one = 15, two = 30 } do
  local found, wanted, count = orrery.load(files .. name), orrery.load(files .. name .. ".safetensors"), 0
  for key, tensor in pairs(wanted) do
    local same = found[key]
    assert(same and same.dtype == tensor.dtype and table.concat(same.shape, ",") == table.concat(tensor.shape, ","), key)
    assert(text(same:tolist()) == text(tensor:tolist()), key)
    count = count + 1
  end
  for key in pairs(found) do assert(wanted[key], key) end
  assert(count == tensors, count)
end

local map = orrery.weight_map { { "model.0", "1" } }
local function loaded(path)
  local model = nn.sequential { nn.linear(3, 5) }
  model:load_weights(path, { map = map })
  return model
end
assert(orrery.digest(loaded(files .. "two")) == orrery.digest(loaded(files .. "two.safetensors")))

local function refusal(...) return tostring(select(2, pcall(...))) end
local why = refusal(orrery.load, "../../data/files/pt")
assert(why:find "is not a regular file", why)
why = refusal(orrery.data.open, "pt", files .. "one", { tensor = "model.v" })
assert(why:find "dcp/one: it has no tensor 'model.v'", why)
