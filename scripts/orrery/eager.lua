-- SPDX-License-Identifier: Apache-2.0
--
-- What is computed with HostTensors outside of traced functions, x * 2, x:sum(1), model(x), runs as a compiled function
-- that is made for it and kept: one for each operation with the same options, which compiles once for each shape.
-- Numbers that operators take beside a tensor are inputs of it, so that a loop over them compiles once.
local _, orrery = ...
local engine = orrery.engine
local tree = require "orrery.nn.module_tree"
local any_next = require "orrery.globals".next

local operators = {
  __add = function(a, b) return a + b end, __sub = function(a, b) return a - b end, __mul = function(a, b) return a * b end,
  __div = function(a, b) return a / b end, __mod = function(a, b) return a % b end, __pow = function(a, b) return a ^ b end,
  __unm = function(a) return -a end,
}
-- Of a number beside a tensor of such a dtype an input of the same has the bits that a constant has.
local takes_number = { __add = true, __sub = true, __mul = true, __div = true }
local holds = { f32 = "number", f64 = "number", i64 = "integer" }

-- What fails by the numbers in a tensor is made anew for each line, which its error names.
local names_its_line = { gather = true, one_hot = true, cross_entropy = true, take = true, put = true, scatter_add = true,
  slice_at = true, update_slice = true }
-- What draws random numbers or records them belongs into a function.
local not_alone = { uniform = true, categorical = true, dropout = true, watch = true }

local made = 0 -- implicit functions; they do not count among the script's
local function compile(body)
  made = made + 1
  return engine.func(body, "implicit-" .. made)
end

local kept, count, most = {}, 0, 512

-- Adds to `words` what tells a value that is no tensor from others, and to `inputs` the tensors; returns the value with
-- their places instead of them.
local function taken(value, inputs, words)
  local kind = orrery.type(value)
  if kind == "HostTensor" then
    inputs[#inputs + 1], words[#words + 1] = value, "x"
    local place = #inputs
    return function(tensors) return tensors[place] end
  elseif kind == "table" or kind == "shape" then
    local parts = {}
    words[#words + 1] = "{"
    for key, each in pairs(value) do
      words[#words + 1] = tostring(key)
      parts[key] = taken(each, inputs, words)
    end
    words[#words + 1] = "}"
    return function(tensors)
      local made_of = {}
      for key, part in any_next, parts do made_of[key] = part(tensors) end
      return made_of
    end
  end
  words[#words + 1] = kind == "number" and ("%q"):format(value) or kind .. ":" .. tostring(value)
  return function() return value end
end

local function refuse_others(name, value)
  local kind = orrery.type(value)
  if kind == "State" or kind == "Scalar" then
    local instead = kind == "State" and "parameter:read()" or "input.value"
    orrery.fail(("%s of a HostTensor and %s outside of traced functions: write %s for what it is now, or compute in an "
      .. "orrery.func"):format(name:gsub("^__", ""), engine.describe(value), instead))
  end
end

-- The arguments with numbers beside tensors as tensors.
local function with_numbers(name, arguments)
  if not takes_number[name] then return end
  for place = 1, 2 do
    local number, tensor = arguments[place], arguments[3 - place]
    local wanted = orrery.type(tensor) == "HostTensor" and holds[tensor.dtype]
    if type(number) == "number" and (wanted == "number" or wanted == "integer" and math.type(number) == "integer") then
      arguments[place] = orrery.tensor(number, tensor.dtype)
    end
  end
end

local M = {}

-- Computes a function of the API table now. Its arguments have been checked.
function M.call(owner, name, ...)
  if not_alone[name] then
    orrery.fail(("orrery.%s of a HostTensor belongs into a traced function: orrery.func(function(x) return orrery.%s(x) end)")
      :format(name, name))
  end
  local arguments, inputs, words, parts = table.pack(...), {}, { owner, name }, {}
  with_numbers(name, arguments)
  for place = 1, arguments.n do
    refuse_others(name, arguments[place])
    parts[place] = taken(arguments[place], inputs, words)
  end
  if names_its_line[name] then words[#words + 1] = engine.here() end
  local key = table.concat(words, " ")
  local program = kept[key]
  if not program then
    local n = arguments.n
    program = compile(function(...)
      local tensors, given = { ... }, {}
      for place = 1, n do given[place] = parts[place](tensors) end
      local f = operators[name] or owner == "Tensor" and given[1][name] or orrery[name]
      return f(table.unpack(given, 1, n))
    end)
    if count == most then kept, count = {}, 0 end
    kept[key], count = program, count + 1
  end
  return program:run(inputs)
end

-- Whether the module has the parts that it had.
local function same_parts(model, parts)
  local at, same = 0, true
  tree.walk(model, function(_, part)
    at = at + 1
    same = same and rawequal(part, parts[at])
  end)
  return same and at == #parts
end

local by_module = setmetatable({}, { __mode = "k" })

-- Calls a module with HostTensors: model(x). It is traced again where it has other parts or values than it had then.
function M.call_module(model, ...)
  local arguments, inputs, words, makers = table.pack(...), {}, {}, {}
  for place = 1, arguments.n do makers[place] = taken(arguments[place], inputs, words) end
  local key, hash = table.concat(words, " "), engine.captured(tree.functions(model))
  local known = by_module[model]
  if not known or known.hash ~= hash or not same_parts(model, known.parts) then
    known = { hash = hash, parts = {}, programs = {} }
    tree.walk(model, function(_, part) known.parts[#known.parts + 1] = part end)
    by_module[model] = known
  end
  if not known.programs[key] then
    local n, weak = arguments.n, setmetatable({ model = model }, { __mode = "v" })
    known.programs[key] = compile(function(...)
      local tensors, given = { ... }, {}
      for place = 1, n do given[place] = makers[place](tensors) end
      return weak.model(table.unpack(given, 1, n))
    end)
  end
  return known.programs[key]:run(inputs)
end

-- Whether a module is called with HostTensors outside of traced functions.
function M.is_for_now(...)
  if engine.tracing() then return false end
  for place = 1, select("#", ...) do
    if orrery.type((select(place, ...))) == "HostTensor" then return true end
  end
  return false
end

return M
