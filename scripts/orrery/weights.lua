-- SPDX-License-Identifier: Apache-2.0
--
-- Weights of modules: to and from safetensors files, by the paths of their tensors.
local _, orrery = ...
local engine = orrery.engine
local tree = require "orrery.nn.module_tree"
local weight_map = require "orrery.weight_map"
local weight_parts = require "orrery.weight_parts"
local json = require "orrery.watch.json"
local whole_file = require "orrery.whole_file"
local remote = require "orrery.remote"
local torch = require "orrery.torch_files"

local any_next = require "orrery.globals".next

local M = {}

-- path -> state; a shared one has several. And the states, each once, with their first paths.
local function states_below(module)
  local by_path, states, paths, seen = {}, {}, {}, {}
  tree.walk(module, function(path, part, kind)
    if kind ~= "State" then return end
    by_path[path] = part
    if seen[part:identity()] then return end
    seen[part:identity()] = true
    states[#states + 1], paths[#paths + 1] = part, path
  end)
  return by_path, states, paths
end

-- Up to three of the names.
local function some(names)
  local more = #names > 3 and (", ... (%d in all)"):format(#names) or ""
  return "'" .. table.concat(names, "', '", 1, math.min(#names, 3)) .. "'" .. more
end

local function keep(name) return name end

-- Notes that the n-th part of a state is `from`.
local function give_part(given, state, n, from, path, target)
  local entry = given[state:identity()] or { parts = {} }
  given[state:identity()] = entry
  local before = entry.parts and entry.parts[n] or not entry.parts and entry
  if before then
    orrery.fail(("load_weights: %s: '%s' and '%s' are both for '%s'; map may leave one out"):format(
      path, before.name, from.name, target))
  end
  entry.parts[n] = from
end

-- Where the values of states are in a file, by the states' identities: {name, transpose}, or `parts`, a table of such.
-- And the names for which the module has nothing.
local function given_by(file, path, by_path, map)
  local given, unused = {}, {}
  for _, name in ipairs(file:names()) do
    local target, transpose = map(name)
    local state, part
    if target then state, part = weight_parts.find(by_path, target) end
    local from = { name = name, transpose = transpose == true }
    if part then
      give_part(given, state, part, from, path, target)
    elseif state then
      local before = given[state:identity()]
      local function bytes(of) return of.parts and of or engine.bytes(file:read(of.name, state, of.transpose)) end
      if before and bytes(before) ~= bytes(from) then
        orrery.fail(("load_weights: %s: '%s' and '%s' are both for '%s', with other values; map may leave one out")
          :format(path, before.name or select(2, any_next(before.parts)).name, name, target))
      end
      given[state:identity()] = before or from
    elseif target then
      unused[#unused + 1] = name
    end
  end
  return given, unused
end

-- Paths of states, or of parts of them, that no name is for.
local function missing_of(given, states, paths)
  local missing = {}
  for i, state in ipairs(states) do
    local from = given[state:identity()]
    if not from then missing[#missing + 1] = paths[i] end
    for n = 1, from and from.parts and state.shape[1] or 0 do
      if not from.parts[n] then missing[#missing + 1] = ("%s.%d"):format(paths[i], n) end
    end
  end
  return missing
end

--- Module:load_weights(path, options)
--- Gives the tensors of a module the values in a safetensors file, in several by their index
--- (model.safetensors.index.json), in what torch.save has written (.pt, .pth, .bin), or in a directory of
--- torch.distributed.checkpoint. Numbers become the dtype of the model's. Returns the paths that got no value, and a list
--- of the names in the file that were not used.
---@param path string
---@param options? table
---@option map function from a name in the file to a path in the module; nil leaves the tensor out, and a second
--- result of true transposes it, as GPT-2's Conv1D needs
---@option strict boolean=true every tensor of the module must be in the file, and the other way round
---@return string[]
function M.load_weights(module, path, options)
  local o = orrery.options("load_weights", options, { map = keep, strict = true })
  path = remote.path(path)
  local file = torch.is_one(path) and torch.weights(path) or engine.weights(path)
  local by_path, states, paths = states_below(module)
  local given, unused = given_by(file, path, by_path, o.map)
  local missing = missing_of(given, states, paths)
  if o.strict and #missing > 0 then
    orrery.fail(("load_weights: %s has no %s; map may rename what it has, strict = false leaves them as they are")
      :format(path, some(missing)))
  elseif o.strict and #unused > 0 then
    orrery.fail(("load_weights: %s: the module has no %s; map may rename them or return nil, strict = false passes over them")
      :format(path, some(unused)))
  end
  for _, state in ipairs(states) do
    local from = given[state:identity()]
    if from and from.parts then
      local value = weight_parts.read(file, from.parts, state)
      if value then state:write(value) end
    elseif from then
      state:write(file:read(from.name, state, from.transpose))
    end
  end
  return missing, unused
end

local SIZES = { f32 = 4, f64 = 8, bf16 = 2, f16 = 2, i32 = 4, i64 = 8, u8 = 1, bool = 1 }

local function bytes_of(state)
  local bytes = SIZES[state.dtype]
  for _, extent in ipairs(state.shape) do bytes = bytes * extent end
  return bytes
end

-- "5GB", "200MiB" or a number of bytes.
local function to_bytes(size)
  if math.type(size) == "integer" and size > 0 then return size end
  local number, prefix, binary = tostring(size):match "^(%d+%.?%d*)([KMG])(i?)B$"
  if not number then
    orrery.fail(("save_weights: max_shard_size is %s: bytes, or a size such as \"5GB\" or \"200MiB\""):format(size))
  end
  return math.floor(tonumber(number) * (binary == "i" and 1024 or 1000) ^ ("KMG"):find(prefix))
end

-- The states in their order, in files of at most `most` bytes; a larger state has a file of its own.
local function shards_of(states, paths, most)
  local shards, bytes = {}, 0
  for i, state in ipairs(states) do
    if #shards == 0 or bytes + bytes_of(state) > most then
      shards[#shards + 1], bytes = { states = {}, paths = {} }, 0
    end
    local shard = shards[#shards]
    shard.states[#shard.states + 1], shard.paths[#shard.paths + 1] = state, paths[i]
    bytes = bytes + bytes_of(state)
  end
  return shards
end

-- The names that a map has for a path, one or those of its parts, and for each whether it is transposed; nil for none.
local function names_of(name_of, path, state)
  local name, transpose = name_of(path)
  if name then return { name }, { transpose } end
  if #state.shape < 2 or not name_of(path .. ".1") then return nil end
  local names, transposed = {}, {}
  for i = 1, state.shape[1] do names[i], transposed[i] = name_of(("%s.%d"):format(path, i)) end
  return names, transposed
end

-- By a state's identity, the first of the names that a map has for its paths: {names, transposed, parts}.
local function names_by(map, by_path)
  local name_of, found = weight_map.back(map), {}
  for path, state in any_next, by_path do
    local names, transposed = names_of(name_of, path, state)
    local id = state:identity()
    if names and (not found[id] or names[1] < found[id].names[1]) then
      found[id] = { names = names, transposed = transposed, parts = name_of(path) == nil }
    end
  end
  return found
end

-- A copy, on every rank.
local function transposed_copy(state)
  local value = state:read():transpose()
  return engine.buffer(value.shape, { init = value, dtype = value.dtype })
end

-- What a file has of a state that has these names.
local function tensors_of(state, found)
  if found.parts then return weight_parts.of(state, found.transposed) end
  return { found.transposed[1] and transposed_copy(state) or state }
end

-- The states in the order of the names that a map has for them, and these.
local function mapped(map, by_path, states, paths)
  local found, by_name, path_of, list, missing = names_by(map, by_path), {}, {}, {}, {}
  for i, state in ipairs(states) do
    local of = found[state:identity()]
    if not of then missing[#missing + 1] = paths[i] end
    for j, name in ipairs(of and of.names or {}) do
      if path_of[name] then
        orrery.fail(("save_weights: map has '%s' for '%s' and for '%s'"):format(name, path_of[name], paths[i]))
      end
      path_of[name], by_name[name], list[#list + 1] = paths[i], { i, j }, name
    end
  end
  if #missing > 0 then
    orrery.fail(("save_weights: map has no name for %s; add rules for them"):format(some(missing)))
  end
  table.sort(list)
  local tensors, ordered = {}, {}
  for at, name in ipairs(list) do
    local i, j = table.unpack(by_name[name])
    tensors[i] = tensors[i] or tensors_of(states[i], found[states[i]:identity()])
    ordered[at] = tensors[i][j]
  end
  return ordered, list
end

-- As PEFT has it, beside adapters.
local function write_config(path, config)
  local folder, name = path:match "^(.-)([^/]*)$"
  local adapter = name:find "^adapter_model%." and "adapter_" or ""
  whole_file.write(folder .. adapter .. "config.json", function(write) write(json.encode(config, ""), "\n") end)
end

local function save_gguf(path, states, paths, o)
  if not o.map or not o.config then
    orrery.fail(("save_weights: %s: a GGUF file takes map and config, as transformers name tensors and sizes"):format(path))
  elseif o.max_shard_size then
    orrery.fail(("save_weights: %s: max_shard_size is for safetensors; a GGUF file is one"):format(path))
  end
  require("orrery.gguf").save(path, states, paths, o.config, o.tokenizer or nil)
end

--- Module:save_weights(path, options)
--- Writes the tensors of a module, by their paths, to a safetensors file; all ranks call it. What is larger than
--- `max_shard_size` goes into several, NAME-00001-of-00003.safetensors; `path`.index.json says which tensor is where, and
--- is what load_weights takes. Either takes the place of what was saved to `path` before. A path that ends in .gguf is a
--- file for llama.cpp, of a model that has a map and a config of GPT-2 or LLaMA.
---@param path string
---@param options? table
---@option max_shard_size any=false bytes in a file, such as "5GB"; a larger tensor has a file of its own
---@option map function=nil of orrery.weight_map: tensors have the names that it says, and are transposed as it says
---@option config table=nil what config.json beside the file is to have, as Hugging Face's transformers read it
--- (adapter_config.json beside adapter_model.safetensors, for PEFT); in a GGUF file it is what the header says
---@option tokenizer string=nil of a GGUF file: a tokenizer.json, or the folder of one or of vocab.json and merges.txt
function M.save_weights(module, path, options)
  local o = orrery.options("save_weights", options,
    { max_shard_size = false, map = false, config = false, tokenizer = false })
  local by_path, states, paths = states_below(module)
  if #states == 0 then orrery.fail "save_weights: the module has no tensors" end
  if o.map then states, paths = mapped(o.map, by_path, states, paths) end
  if path:find "%.gguf$" then return save_gguf(path, states, paths, o) end
  if o.tokenizer then orrery.fail(("save_weights: %s: tokenizer is for a file that ends in .gguf"):format(path)) end
  local shards = shards_of(states, paths, o.max_shard_size and to_bytes(o.max_shard_size) or math.huge)
  local stem = path:match "^(.*)%.safetensors$"
  if #shards > 1 and not stem then
    orrery.fail(("save_weights: %s: several files are NAME-00001-of-%05d.safetensors: give NAME.safetensors"):format(
      path, #shards))
  end
  for i, shard in ipairs(shards) do
    shard.file = #shards == 1 and path or ("%s-%05d-of-%05d.safetensors"):format(stem, i, #shards)
  end
  engine.save_weights(path, shards)
  if o.config then write_config(path, o.config) end
end

return M
