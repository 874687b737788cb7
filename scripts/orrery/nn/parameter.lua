-- SPDX-License-Identifier: Apache-2.0
--
--- nn.parameter(dims, options)
--- A trained tensor for modules of your own.
---@param dims integer|integer[]
---@param options? table
---@option init orrery.Initial=nn.init.zeros
---@option dtype orrery.DType='f32'
---@return orrery.State
local _, orrery = ...
local init = orrery.nn.init

return function(dims, options)
  local o = orrery.options("parameter", options, { init = init.zeros, dtype = "f32" })
  return orrery.parameter(dims, { init = init.resolve(o.init, dims), dtype = o.dtype })
end
