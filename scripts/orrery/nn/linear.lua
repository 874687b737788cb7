-- SPDX-License-Identifier: Apache-2.0
--
--- nn.linear(inputs, outputs, options)
--- x W^T + b, weights [out, in].
---@param inputs integer
---@param outputs integer|integer[] of a list the columns come back as several tensors, of one product
---@param options? table
---@option bias boolean=true
---@option tie orrery.State=false the weight to use, of another layer
---@option init orrery.Initial=nn.init.fan_in how the weight begins
---@option bias_init orrery.Initial=nn.init.uniform(-1/sqrt(inputs),1/sqrt(inputs)) how the bias begins
---@option dtype orrery.DType='f32'
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn

local function total(sizes)
  local sum = 0
  for _, size in ipairs(sizes) do sum = sum + size end
  return sum
end

local function tied(weight, dims)
  local shape = weight.shape
  if #shape ~= 2 or shape[1] ~= dims[1] or shape[2] ~= dims[2] then
    orrery.fail(("linear: the tied weight is %s, this layer needs [%d,%d]"):format(
      tostring(shape), dims[1], dims[2]))
  end
  return weight
end

return nn.module("linear", function(m, inputs, outputs, options)
  local o = orrery.options("linear", options, {
    bias = true, tie = false, init = nn.init.fan_in, bias_init = false, dtype = "f32",
  })
  local sizes = type(outputs) == "table" and outputs or nil
  local dims = { sizes and total(sizes) or outputs, inputs }
  m.weight = o.tie and tied(o.tie, dims)
    or orrery.parameter(dims, { init = nn.init.resolve(o.init, dims), dtype = o.dtype })
  local bias
  if o.bias then
    local bound = 1 / math.sqrt(inputs)
    local init = nn.init.resolve(o.bias_init or nn.init.uniform(-bound, bound), { dims[1] })
    bias = orrery.parameter(dims[1], { init = init, dtype = o.dtype })
    m.bias = bias
  end
  return function(x)
    local y = x:matmul(m.weight, { transpose_b = true })
    if bias then y = y + bias end
    if sizes then return y:split(-1, sizes) end
    return y
  end
end)
