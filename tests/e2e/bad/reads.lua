-- SPDX-License-Identifier: Apache-2.0
-- Reads all of a file, whatever it holds, and says what that is.
local orrery = require "orrery"
local data = orrery.data
local args = orrery.args { kind = "", path = "" }

local function text(list)
  if type(list) ~= "table" then return tostring(list) end
  local texts = {}
  for i, x in ipairs(list) do texts[i] = text(x) end
  return table.concat(texts, ",")
end

local function all_of(set)
  local texts = {}
  for _, batch in set:batches { size = 4, steps = 3 } do
    local names = {}
    for name in pairs(batch) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do texts[#texts + 1] = name .. text(batch[name]:read():tolist()) end
  end
  return table.concat(texts, " ")
end

local read = {
  npy = function(path) return text(orrery.load(path):tolist()) end,
  safetensors = function(path)
    local texts = {}
    for name, tensor in pairs(orrery.load(path)) do texts[#texts + 1] = name .. text(tensor:tolist()) end
    table.sort(texts)
    return table.concat(texts, " ")
  end,
  tokens = function(path) return all_of(data.tokens(path, { length = 8 })) end,
  cifar = function(path) return all_of(data.cifar(path)) end,
  idx = function(path) return all_of(data.idx(path .. "/images.idx", path .. "/labels.idx")) end,
  images = function(path) return all_of(data.images(path, { size = 8 })) end,
  csv = function(path) return all_of(data.csv(path, { x = { "a", "b" } })) end,
  bpe = function(path) return text(data.bpe(path .. "/vocab.json", path .. "/merges.txt"):encode("some text"):tolist()) end,
  tiktoken = function(path) return text(data.tiktoken(path, { split = "gpt4" }):encode("some text"):tolist()) end,
}
print("read", read[args.kind](args.path))
