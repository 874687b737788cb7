-- SPDX-License-Identifier: Apache-2.0
--
-- What x[...] is of a tensor: x[2] the second element of the first dim, x[{1, {2, 5}}] of each dim one place or a range
-- {first, last, step?}, {} for all of it. Places count from 1, and from -1 at the end; ranges include both ends. A dim
-- of which one place is taken is gone.
local _, orrery = ...
local engine = orrery.engine
local fault = require "orrery.lists".fault

local usage = "write a place x[2], or x[{2, {1, 3}}] with a place or a range {first, last} for each dim, {} for all of it"

local function refuse(what) orrery.fail(("index: %s: %s"):format(what, usage)) end

-- A place as 0-based.
local function placed(at, size, dim)
  local from = math.type(at) == "integer" and (at > 0 and at - 1 or size + at)
  if not from or at == 0 or from < 0 or from >= size then
    orrery.fail(("index: place %s of dim %d does not exist: it has %d elements, counted 1..%d or -1..-%d"):format(
      engine.describe(at), dim, size, size, size))
  end
  return from
end

-- Of one dim: the 0-based first place, how many, the step, and whether the dim goes.
local function chosen(key, size, dim)
  if type(key) ~= "table" then return placed(key, size, dim), 1, 1, true end
  local wrong = fault(key)
  if wrong then refuse(wrong) end
  if #key == 0 then return 0, size, 1, false end
  if #key == 1 or #key > 3 then refuse(("a range of %d numbers"):format(#key)) end
  local first, last, step = placed(key[1], size, dim), placed(key[2], size, dim), key[3] or 1
  if math.type(step) ~= "integer" or step == 0 or (last - first) * step < 0 then
    orrery.fail(("index: from %d to %d there is no step of %s"):format(key[1], key[2], engine.describe(step)))
  end
  return first, (last - first) // step + 1, step, false
end

local M = {}

function M.part(x, key)
  if type(key) == "userdata" then
    orrery.fail(("index: %s: write x:gather(ids) for rows by ids, or choose with orrery.where(condition, a, b)"):format(
      engine.describe(key)))
  end
  if type(key) ~= "table" then key = math.type(key) == "integer" and { key } or refuse(engine.describe(key)) end
  local wrong, shape = fault(key), x.shape
  if wrong then refuse(wrong) end
  if #key > #shape then orrery.fail(("index: %d dims given, the tensor has %d"):format(#key, #shape)) end
  local first, count, step, left, gone = {}, {}, {}, {}, {}
  for dim, size in ipairs(shape) do
    local goes
    first[dim], count[dim], step[dim], goes = chosen(key[dim] or {}, size, dim)
    if goes then gone[#gone + 1] = dim else left[#left + 1] = count[dim] end
  end
  if orrery.type(x) == "HostTensor" then return engine.part(x, first, count, step, left) end
  for dim in ipairs(shape) do
    local last = first[dim] + (count[dim] - 1) * step[dim]
    x = x:slice(dim, first[dim] + 1, last + 1, step[dim])
  end
  return #gone > 0 and x:reshape(left) or x
end

return M
