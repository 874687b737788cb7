-- SPDX-License-Identifier: Apache-2.0
--
-- Tensor methods that give other dims to the same elements, or put them into another order, made of reshape, broadcast,
-- slice and concat. Dims count from 1, and from -1 at the end.
local _, orrery = ...
local define = require "orrery.define"

-- A dim from 1 on, of a tensor with so many dims.
local function place(dim, rank)
  if dim == 0 or math.abs(dim) > rank then
    orrery.fail(("dim %d does not exist: the tensor has %d dims, counted 1..%d or -1..-%d"):format(dim, rank, rank, rank))
  end
  return dim > 0 and dim or rank + 1 + dim
end

-- The dims of x:view(2, 3) or x:view{2, 3} as a list of its own.
local function listed(first, ...)
  if type(first) ~= "table" then return { first, ... } end
  if select("#", ...) > 0 then orrery.fail "give the dims as one list, or one after another" end
  return table.move(first, 1, #first, 1, {})
end

define([[Tensor:view(...) -> Tensor; As reshape: other dims, same elements; one may be -1.]],
  function(x, ...) return x:reshape(...) end)

define([[Tensor:expand(...) -> Tensor; As broadcast: repeats dims of size 1 up to these dims, of which -1 stays as it is.]],
  function(x, ...)
    local dims, shape = listed(...), x.shape
    for back = 1, math.min(#dims, #shape) do
      local at = #dims + 1 - back
      if dims[at] == -1 then dims[at] = shape[-back] end
    end
    return x:broadcast(table.unpack(dims))
  end)

define([[Tensor:unsqueeze(dim: integer) -> Tensor; A new dim of size 1 at this place; -1 puts it behind the last.]],
  function(x, dim)
    local dims = listed(x.shape)
    table.insert(dims, place(dim, #dims + 1), 1)
    return x:reshape(dims)
  end)

define([[Tensor:squeeze(dims: integers) -> Tensor; Without these dims, where their size is 1.]],
  function(x, dims)
    local gone, left = {}, {}
    for _, dim in ipairs(type(dims) == "table" and dims or { dims }) do gone[place(dim, #x.shape)] = true end
    for dim, size in ipairs(x.shape) do
      if not (gone[dim] and size == 1) then left[#left + 1] = size end
    end
    return x:reshape(left)
  end)

define([[Tensor:flatten(first: integer = 1, last: integer = -1) -> Tensor; The dims from `first` to `last` as one.]],
  function(x, first, last)
    local shape, dims, rank = x.shape, {}, #x.shape
    first, last = place(first, rank), place(last, rank)
    if first > last then orrery.fail(("flatten: dim %d is behind dim %d"):format(first, last)) end
    local size = 1
    for dim = first, last do size = size * shape[dim] end
    for dim = 1, first - 1 do dims[dim] = shape[dim] end
    dims[first] = size
    for dim = last + 1, rank do dims[#dims + 1] = shape[dim] end
    return x:reshape(dims)
  end)

define([[Tensor:unbind(dim: integer = 1) -> Tensor; The elements of a dim as tensors without it; returns all of them.]],
  function(x, dim)
    local parts = table.pack(x:split(dim, x.shape[place(dim, #x.shape)]))
    for i, part in ipairs(parts) do parts[i] = part:squeeze(dim) end
    return table.unpack(parts, 1, parts.n)
  end)

define([[orrery.stack(tensors: list, dim: integer = 1) -> Tensor; Joins tensors of one shape along a new dim.]],
  function(tensors, dim)
    local parts = {}
    for i, x in ipairs(tensors) do
      if type(x) ~= "userdata" then orrery.fail(("stack: tensors[%d] is %s, expected a tensor"):format(i, orrery.type(x))) end
      parts[i] = x:unsqueeze(dim)
    end
    return orrery.concat(parts, dim)
  end)

define([[Tensor:flip(dims: integers) -> Tensor; The elements of these dims in reverse.]],
  function(x, dims)
    for _, dim in ipairs(type(dims) == "table" and dims or { dims }) do x = x:slice(dim, -1, 1, -1) end
    return x
  end)

define([[Tensor:roll(shift: integer, dim: integer) -> Tensor; The elements of a dim so many places further; those at its
    end go round to the front.]],
  function(x, shift, dim)
    local size = x.shape[place(dim, #x.shape)]
    shift = shift % size
    if shift == 0 then return x end
    return orrery.concat({ x:slice(dim, size - shift + 1), x:slice(dim, 1, size - shift) }, dim)
  end)

define([[Tensor:tile(...) -> Tensor; The tensor so often one after another along each dim, as torch.repeat does.]],
  function(x, ...)
    local times, shape = listed(...), listed(x.shape)
    while #shape < #times do table.insert(shape, 1, 1) end
    while #times < #shape do table.insert(times, 1, 1) end
    local apart, repeated, joined = {}, {}, {}
    for dim, size in ipairs(shape) do
      local n = times[dim]
      if math.type(n) ~= "integer" or n < 1 then
        orrery.fail(("tile: %s times along dim %d: give an integer of at least 1"):format(orrery.engine.describe(n), dim))
      end
      if n > 1 then apart[#apart + 1], repeated[#repeated + 1] = 1, n end
      apart[#apart + 1], repeated[#repeated + 1] = size, size
      joined[dim] = n * size
    end
    return x:reshape(apart):broadcast(repeated):reshape(joined)
  end)
