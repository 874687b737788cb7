-- SPDX-License-Identifier: Apache-2.0
--
-- Vectors of all elements of some parameters, one after another, for loops that compute with them between steps. Each is
-- whole on every rank. Their functions are compiled once for each vector that they take; numbers go in and out as they
-- are, in the dtype of the vectors.
local _, orrery = ...

local Space = {}
Space.__index = Space

function Space:vector() return orrery.buffer({ self.size }, { dtype = self.dtype, name = self:name_of() }) end
function Space:rows(count) return orrery.buffer({ count, self.size }, { dtype = self.dtype, name = self:name_of() }) end

function Space:name_of()
  self.made = self.made + 1
  return ("%s.%d"):format(self.name, self.made)
end

-- The compiled function `body` of these states, made by the first call with them.
function Space:compiled(body, states)
  local key = {}
  for i, state in ipairs(states) do key[i] = tostring(state:identity()) end
  key = table.concat(key, " ")
  local known = self.programs[body] or {}
  self.programs[body] = known
  if not known[key] then
    local count = #states
    known[key] = orrery.func(function(...)
      local arguments = table.move(states, 1, count, 1, {})
      return body(table.unpack(table.move({ ... }, 1, select("#", ...), count + 1, arguments)))
    end)
  end
  return known[key]
end

-- Calls `body(state..., number...)`, a function of tensors, which may update the states; returns its results as numbers.
-- Each body is one function of a file, by which its compiled forms are found again.
function Space:call(body, states, ...)
  local given = { ... }
  for i, number in ipairs(given) do
    given[i] = math.type(number) == "float" and orrery.tensor(number, self.dtype) or number
  end
  local found = { self:compiled(body, states)(table.unpack(given)) }
  for i, result in ipairs(found) do found[i] = result:item() end
  return table.unpack(found)
end

local function gather(to, ...)
  local parts = { ... }
  for i, tensor in ipairs(parts) do parts[i] = tensor:reshape(-1) end
  to:update(#parts == 1 and parts[1] or orrery.concat(parts, 1))
end

-- Writes the elements of states, one for each parameter, into a vector.
function Space:gather(vector, states) self:call(gather, { vector, table.unpack(states) }) end

local function move(from, direction, ...)
  local states, first = { ... }, 1
  local t = table.remove(states)
  local there = from + direction * t
  for _, state in ipairs(states) do
    local count = 1
    for _, extent in ipairs(state.shape) do count = count * extent end
    state:update(there:slice(1, first, first + count - 1):reshape(table.unpack(state.shape)))
    first = first + count
  end
end

-- Gives the parameters the elements of from + t direction.
function Space:move(states, from, direction, t) self:call(move, { from, direction, table.unpack(states) }, t) end

return function(what, name, parameters)
  local dtype, size = parameters[1].dtype, 0
  for _, parameter in ipairs(parameters) do
    if parameter.dtype ~= dtype then
      orrery.fail(("%s: '%s' is %s and '%s' is %s: give parameters of one dtype"):format(
        what, parameters[1].name, dtype, parameter.name, parameter.dtype))
    end
    local count = 1
    for _, extent in ipairs(parameter.shape) do count = count * extent end
    size = size + count
  end
  return setmetatable({ name = name, dtype = dtype, size = size, made = 0, programs = {} }, Space)
end
