-- SPDX-License-Identifier: Apache-2.0
--
--- nn.bilinear(first, second, outputs, options)
--- Called with x [..., first] and y [..., second]: x W y + b for each output, weights [outputs, first, second].
---@param first integer
---@param second integer
---@param outputs integer
---@param options? table
---@option bias boolean=true
---@option dtype orrery.DType='f32'
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn
local spatial = require "orrery.nn.spatial"

local function check(x, y, first, second)
  local rows, n = { table.unpack(x.shape) }, #x.shape
  rows[n] = second
  if x.shape[n] ~= first or table.concat(y.shape, ",") ~= table.concat(rows, ",") then
    orrery.fail(("bilinear: x is %s and y %s, expected [..., %d] and [..., %d]"):format(
      tostring(x.shape), tostring(y.shape), first, second))
  end
end

return nn.module("bilinear", function(m, first, second, outputs, options)
  local o = orrery.options("bilinear", options, { bias = true, dtype = "f32" })
  local bound = 1 / math.sqrt(first)
  local init = nn.init.uniform(-bound, bound)
  m.weight = orrery.parameter({ outputs, first, second }, { init = init, dtype = o.dtype })
  if o.bias then m.bias = orrery.parameter(outputs, { init = init, dtype = o.dtype }) end
  return function(x, y)
    check(x, y, first, second)
    local rows = { table.unpack(x.shape, 1, #x.shape - 1) }
    local products = x:matmul(m.weight:permute(2, 1, 3):reshape(first, outputs * second))
    products = products:reshape(spatial.join(rows, outputs, second)) * y:reshape(spatial.join(rows, 1, second))
    local z = products:sum(-1)
    return o.bias and z + m.bias or z
  end
end)
