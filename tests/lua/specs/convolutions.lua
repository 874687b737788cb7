-- SPDX-License-Identifier: Apache-2.0
--
-- Gradients of convolutions with strides, of which those of the input are gathered phase by phase, against those of the
-- op windows and a product, which fold adds up; in f64, over one to three dims.
local orrery = require "orrery"
local spatial = require "orrery.nn.spatial"
local nn, join = orrery.nn, spatial.join

local function drawn(...)
  local numbers, dims = {}, join(...)
  for i = 1, spatial.product(dims) do numbers[i] = math.random() * 2 - 1 end
  return orrery.func(function(x) return x:reshape(dims) end)(orrery.tensor(numbers, "f64"))
end

local function by_windows(x, weight, n, o)
  local padded = spatial.pad(spatial.to_last(x, n), o.padding, o.padding)
  local windows = padded:windows({ table.unpack(weight.shape, 3, n + 2) }, { stride = o.stride, dilation = o.dilation })
  local matrix = spatial.to_last(weight, n):reshape(weight.shape[1], -1)
  local rows = windows:reshape(join({ table.unpack(windows.shape, 1, n + 1) }, matrix.shape[2]))
  return spatial.to_first(rows:matmul(matrix, { transpose_b = true }), n)
end

-- The largest distance of gradients and results, and how large a gradient is.
local function compare(x, weight, n, o)
  local function gradients(y) return orrery.grad((y * y):sum(), { x, weight }) end
  local y, wanted = nn.convolution(x, weight, o), by_windows(x, weight, n, o)
  local dx, dw = table.unpack(gradients(y))
  local wanted_dx, wanted_dw = table.unpack(gradients(wanted))
  return (dx - wanted_dx):abs():max(), (dw - wanted_dw):abs():max(), (y - wanted):abs():max(), wanted_dx:abs():max()
end

local function check(length, size, stride, dilation, padding)
  local n, inputs, outputs = #length, 16, 3
  local o = { stride = stride, dilation = dilation, padding = padding }
  local x, weight = drawn(2, inputs, length), drawn(outputs, inputs, size)
  local found = { orrery.func(function(a, b) return compare(a, b, n, o) end)(x, weight) }
  for i = 1, 3 do
    assert(found[i]:item() <= 1e-10, ("%s of length %s, size %s, stride %s, dilation %s, padding %s: %g"):format(
      ({ "dx", "dw", "y" })[i], table.concat(length, " "), table.concat(size, " "), table.concat(stride, " "),
      table.concat(dilation, " "), table.concat(padding, " "), found[i]:item()))
  end
  return found[4]:item()
end

math.randomseed(5)
assert(check({ 8, 8 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }) > 1)
check({ 9, 7 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 })
check({ 9, 8 }, { 5, 3 }, { 3, 1 }, { 1, 2 }, { 2, 0 })
check({ 11 }, { 3 }, { 4 }, { 2 }, { 1 }) -- every second phase has no taps
check({ 12 }, { 4 }, { 4 }, { 6 }, { 5 })
check({ 10 }, { 3 }, { 3 }, { 3 }, { 1 })
check({ 9, 6 }, { 1, 3 }, { 2, 2 }, { 1, 1 }, { 0, 1 })
check({ 5, 4 }, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 3, 1 }) -- windows of zeros alone
check({ 5, 6, 4 }, { 3, 2, 3 }, { 2, 1, 2 }, { 1, 2, 1 }, { 1, 0, 1 })
for _ = 1, 30 do
  local length, size, stride, dilation, padding = {}, {}, {}, {}, {}
  for i = 1, math.random(3) do
    size[i], stride[i], dilation[i], padding[i] = math.random(4), math.random(4), math.random(3), math.random(0, 4)
    length[i] = math.max(1, (size[i] - 1) * dilation[i] + 1 - 2 * padding[i]) + math.random(0, 4)
  end
  check(length, size, stride, dilation, padding)
end

-- Groups are one product; bits are those of a product for each.
local function check_groups(length, size, groups, inputs, outputs, stride)
  local n = #length
  local x, weight = drawn(2, groups * inputs, length), drawn(groups * outputs, inputs, size)
  local found = { orrery.func(function(a, w)
    local o = { stride = stride, padding = 1 }
    local function gradients(y) return table.unpack(orrery.grad((y * y):sum(), { a, w })) end
    local xs, ws, ys = { a:split(2, groups) }, { w:split(1, groups) }, {}
    for i = 1, groups do ys[i] = nn.convolution(xs[i], ws[i], o) end
    local y, wanted = nn.convolution(a, w, { stride = stride, padding = 1, groups = groups }), orrery.concat(ys, 2)
    local dx, dw = gradients(y)
    local wanted_dx, wanted_dw = gradients(wanted)
    return (y - wanted):abs():max(), (dx - wanted_dx):abs():max(), (dw - wanted_dw):abs():max(), wanted_dx:abs():max()
  end)(x, weight) }
  for i = 1, 3 do
    assert(found[i]:item() == 0, ("%s of %d groups over %d dims: %g"):format(({ "y", "dx", "dw" })[i], groups, n,
      found[i]:item()))
  end
  assert(found[4]:item() > 0.1)
end
check_groups({ 9 }, { 3 }, 3, 5, 2, 1)
check_groups({ 8, 7 }, { 3, 3 }, 4, 4, 3, 1)
check_groups({ 8, 7 }, { 3, 2 }, 2, 16, 5, 2)
check_groups({ 6, 6 }, { 1, 1 }, 3, 16, 2, 2)
check_groups({ 4, 5, 3 }, { 3, 2, 3 }, 2, 16, 3, { 1, 2, 1 })
