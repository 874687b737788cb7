-- SPDX-License-Identifier: Apache-2.0
--
-- What layers over one to three spatial dims share. They take [batch, channels, dims...] as PyTorch's do and compute
-- on [batch, dims..., channels], where the windows of neighbouring positions are views of the same memory; the two
-- are permutations of each other, which move nothing.
local _, orrery = ...
local M = {}

-- An option as a list of n integers, of one for all dims or of such a list.
function M.each(what, name, value, n, least)
  local list, shown = type(value) == "table" and value or {}, {}
  for i = 1, math.max(n, #list) do shown[i] = tostring(list[i]) end
  for i = 1, n do
    if type(value) ~= "table" then list[i] = value end
    if #list > n or math.type(list[i]) ~= "integer" or list[i] < least then
      orrery.fail(("%s: %s is %s, expected %d integers of at least %d, or one for all"):format(
        what, name, type(value) == "table" and "{" .. table.concat(shown, ", ") .. "}" or tostring(value), n, least))
    end
  end
  return list
end

function M.check(what, x, n, channels)
  if #x.shape ~= n + 2 or channels and x.shape[2] ~= channels then
    orrery.fail(("%s: x is %s, expected [batch, %s%s]"):format(
      what, tostring(x.shape), channels or "channels", (", length"):rep(n)))
  end
end

function M.check_groups(what, groups, inputs, outputs)
  for name, channels in pairs { inputs = inputs, outputs = outputs } do
    if math.type(groups) ~= "integer" or groups < 1 or channels % groups ~= 0 then
      orrery.fail(("%s: %s groups do not divide %d %s"):format(what, tostring(groups), channels, name))
    end
  end
end

-- f(x, weight) of each group's share of the last dim of x and of the weight's first, joined along the last dim.
function M.in_groups(groups, x, weight, f)
  if groups == 1 then return f(x, weight) end
  local xs, weights = { x:split(-1, groups) }, { weight:split(1, groups) }
  for i = 1, groups do xs[i] = f(xs[i], weights[i]) end
  return orrery.concat(xs, -1)
end

function M.product(list)
  local product = 1
  for _, factor in ipairs(list) do product = product * factor end
  return product
end

-- The list of all arguments, numbers or lists of them.
function M.join(...)
  local joined = {}
  for _, part in ipairs { ... } do
    if type(part) ~= "table" then part = { part } end
    for _, each in ipairs(part) do joined[#joined + 1] = each end
  end
  return joined
end

-- The integers from first to last.
function M.range(first, last)
  local list = {}
  for i = first, last do list[#list + 1] = i end
  return list
end

-- n times the same number.
function M.filled(n, number)
  local list = {}
  for i = 1, n do list[i] = number end
  return list
end

-- Each group's share of the last dim: [groups, ..., channels / groups], and such a tensor's groups as one dim again.
-- One group has no dim.
function M.groups_first(x, groups)
  local n = #x.shape
  if groups == 1 then return x end
  return x:reshape(M.join({ table.unpack(x.shape, 1, n - 1) }, groups, -1)):permute(M.join(n, M.range(1, n - 1), n + 1))
end
function M.groups_last(x, groups)
  local n = #x.shape
  if groups == 1 then return x end
  return x:permute(M.join(M.range(2, n - 1), 1, n)):reshape(M.join({ table.unpack(x.shape, 2, n - 1) }, -1))
end

-- x with its dims from `first` on as columns, those before as rows; the first one stays, if there are groups.
function M.flat(x, first, groups)
  local columns = M.product({ table.unpack(x.shape, first) })
  if groups == 1 then return x:reshape(-1, columns) end
  return x:reshape(groups, M.product({ table.unpack(x.shape, 2, first - 1) }), columns)
end

-- Windows [batch, positions..., size..., channels] over n dims times a matrix [size... * channels, outputs]: [batch,
-- positions..., outputs]. Of several groups all three have a dim of groups first.
function M.times(windows, n, matrix, groups, options)
  local places = { table.unpack(windows.shape, 1, #windows.shape - n - 1) }
  if groups == 1 then return windows:reshape(M.join(places, -1)):matmul(matrix, options) end
  return M.flat(windows, #places + 1, groups):matmul(matrix, options):reshape(M.join(places, -1))
end

-- [a, channels, dims...] as [a, dims..., channels] and back.
function M.to_last(x, n) return x:permute(M.join(1, M.range(3, n + 2), 2)) end
function M.to_first(x, n) return x:permute(M.join(1, n + 2, M.range(2, n + 1))) end

-- The spatial dims of [..., dims..., channels].
function M.lengths(x, n) return { table.unpack(x.shape, #x.shape - n, #x.shape - 1) } end

-- Zeros, or `value`, so many times before and behind each spatial dim of [..., dims..., channels].
function M.pad(x, before, behind, value)
  for i, count in ipairs(before) do
    local dim = #x.shape - 1 - #before + i
    local size = x.shape[dim] + count + behind[i]
    if size > x.shape[dim] then x = x:pad(dim, size, { before = count, value = value or 0 }) end
  end
  return x
end

-- Of windows [batch, positions..., size..., channels] the n dims of the size taken apart: views [batch, positions...,
-- 1..., channels], one for each element of a window, the last dim fastest.
function M.taps(windows, n)
  local list = { windows }
  for dim = n + 2, 2 * n + 1 do
    local apart = {}
    for _, part in ipairs(list) do
      for _, tap in ipairs { part:split(dim, part.shape[dim]) } do apart[#apart + 1] = tap end
    end
    list = apart
  end
  return list
end

-- Windows of this size from their taps.
function M.untap(taps, size)
  for dim = #size, 1, -1 do
    local joined = {}
    for first = 1, #taps, size[dim] do
      joined[#joined + 1] = orrery.concat({ table.unpack(taps, first, first + size[dim] - 1) }, #size + 1 + dim)
    end
    taps = joined
  end
  return taps[1]
end

-- orrery.gradient, where a strategy may have the forward function compute in another dtype than its inputs': the backward
-- one gets them in that of dy, and its gradients become the inputs'.
function M.gradient(functions)
  return orrery.gradient {
    forward = functions.forward,
    backward = function(dy, y, ...)
      local own, alike = { ... }, {}
      for i, x in ipairs(own) do alike[i] = x:cast(dy.dtype) end
      local found = { functions.backward(dy, y, table.unpack(alike)) }
      for i, x in ipairs(own) do found[i] = found[i] and found[i]:cast(x.dtype) end
      return table.unpack(found, 1, #own)
    end,
  }
end

-- Gives m its weight of these dims and, if the options say so, a bias for each output, which is returned.
function M.parameters(m, dims, outputs, o)
  local nn = orrery.nn
  m.weight = orrery.parameter(dims, { init = nn.init.resolve(o.init, dims), dtype = o.dtype })
  if not o.bias then return nil end
  local bias = orrery.parameter(outputs, { init = nn.init.fan_in(dims), dtype = o.dtype })
  m.bias = bias
  return bias
end

-- The list of layers for one to three dims: nn.NAME1d, nn.NAME2d, nn.NAME3d (scripts/orrery/init.lua).
function M.layers(name, build)
  local layers = {}
  for n = 1, 3 do
    layers[n] = orrery.nn.module(("%s%dd"):format(name, n), function(m, ...) return build(m, n, ...) end)
  end
  return layers
end

return M
