-- SPDX-License-Identifier: Apache-2.0
--
-- The gradient of a convolution's input, of which each element is a sum over the windows that hold it. Along a dim with
-- stride s the elements r, r + s, r + 2s, ... of the input lie in windows at the same places, its taps: so for each r,
-- a phase, they are windows of dy, with stride 1, times the weights of these taps. With stride 1 there is one phase.
local _, orrery = ...
local spatial = require "orrery.nn.spatial"
local join = spatial.join
local M = {}

-- All lists of one element of each list, the last fastest.
local function combined(lists)
  local all = { {} }
  for _, list in ipairs(lists) do
    local longer = {}
    for _, before in ipairs(all) do
      for _, last in ipairs(list) do longer[#longer + 1] = join({ table.unpack(before) }, { last }) end
    end
    all = longer
  end
  return all
end

-- The phases of one dim that have taps. Where stride and dilation share a factor, only one in `every` phases has, from
-- phase `first` on. A phase's taps are the last ones of a window first, as dy's elements run the other way. `from`:
-- where in dy its first window begins, whose elements are `dilation` apart.
local function phases_of(size, stride, dilation, before)
  local every = stride
  while stride % every ~= 0 or dilation % every ~= 0 do every = every - 1 end
  local dim = { first = -before % every, every = every, dilation = dilation // every }
  for r = dim.first, stride - 1, every do
    local taps = {}
    for tap = size - 1, 0, -1 do
      if (r + before - tap * dilation) % stride == 0 then taps[#taps + 1] = tap end
    end
    dim[#dim + 1] = { taps = taps, from = taps[1] and (r + before - taps[1] * dilation) // stride }
  end
  return dim
end

-- dy with zeros around it where windows of a phase reach beyond, and where its index 0 is then. `counts`: windows of
-- each phase along each dim.
local function padded(dy, dims, counts)
  local before, behind, lengths = {}, {}, spatial.lengths(dy, #dims)
  for i, dim in ipairs(dims) do
    before[i], behind[i] = 0, 0
    for _, each in ipairs(dim) do
      local last = each.from + (#each.taps - 1) * dim.dilation + counts[i]
      before[i], behind[i] = math.max(before[i], -each.from), math.max(behind[i], last - lengths[i])
    end
  end
  return spatial.pad(dy, before, behind), before
end

-- The elements of one phase of each dim: [..., counts..., inputs].
local function of_phase(dy, origin, dims, phases, counts, size, times)
  local n, window, dilation, lists, taps = #dims, {}, {}, {}, {}
  for i, each in ipairs(phases) do
    local first = origin[i] + each.from
    window[i], dilation[i], lists[i] = #each.taps, dims[i].dilation, each.taps
    dy = dy:slice(#dy.shape - 1 - n + i, first + 1, first + (window[i] - 1) * dilation[i] + counts[i])
  end
  for _, each in ipairs(combined(lists)) do
    local number = 0
    for i, tap in ipairs(each) do number = number * size[i] + tap end
    taps[#taps + 1] = number + 1
  end
  return times(dy:windows(window, { dilation = dilation }), taps)
end

-- The phases as one tensor [..., lengths..., inputs], the last dim's being neighbours.
local function interleaved(parts, dims, lengths, inputs)
  local at = #parts[1].shape - 1 - #dims
  for i = #dims, 1, -1 do
    local dim, joined = dims[i], {}
    for first = 1, #parts, #dim do
      local some = { table.unpack(parts, first, first + #dim - 1) }
      for k, x in ipairs(some) do
        x = x:reshape(join({ table.unpack(x.shape, 1, at + i) }, -1))
        local wide = x.shape[-1]
        some[k] = dim.every == 1 and x or x:pad(at + i + 1, wide * dim.every, { before = wide * dim.first })
      end
      joined[#joined + 1] = #some == 1 and some[1] or orrery.concat(some, at + i + 1)
    end
    parts = joined
  end
  return parts[1]:reshape(join({ table.unpack(parts[1].shape, 1, at) }, lengths, inputs))
end

-- f(dy, x, times) of dy [batch, positions..., outputs] and x [batch, dims..., inputs] before its borders, both with a dim
-- of groups first if there are several. times(windows, taps) gives [batch, places..., inputs] of windows of dy [batch,
-- places..., taps..., outputs], by the numbers of their taps in the weight's windows, from 1. nil where sums over the
-- windows (fold) take less: if no two windows share an element, or if there are phases without a tap.
function M.gradient(size, strides, before)
  local n, dims, shared = #size, {}, false
  for i = 1, n do
    dims[i] = phases_of(size[i], strides.stride[i], strides.dilation[i], before[i])
    shared = shared or #dims[i] * dims[i].every == 1 or size[i] > #dims[i]
    for _, each in ipairs(dims[i]) do
      if #each.taps == 0 then return nil end
    end
  end
  if not shared then return nil end
  return function(dy, x, times)
    local wanted, counts, lengths, parts, origin = spatial.lengths(x, n), {}, {}, {}, nil
    for i = 1, n do
      counts[i] = -(-wanted[i] // strides.stride[i])
      lengths[i] = counts[i] * strides.stride[i]
    end
    dy, origin = padded(dy, dims, counts)
    for k, phases in ipairs(combined(dims)) do
      parts[k] = of_phase(dy, origin, dims, phases, counts, size, times)
    end
    local dx = interleaved(parts, dims, lengths, x.shape[-1])
    for i = 1, n do
      if lengths[i] > wanted[i] then dx = dx:slice(#dx.shape - 1 - n + i, 1, wanted[i]) end
    end
    return dx
  end
end

return M
