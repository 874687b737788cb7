-- SPDX-License-Identifier: Apache-2.0
--
--- nn.gelu(x, options)
--- GELU in its tanh form, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@param options? table
---@option approximate string='tanh' 'none': as it is defined, which is nn.gelu_exact and PyTorch's default
---@return orrery.Tensor
local _, orrery = ...

return function(x, options)
  local o = orrery.options("gelu", options, { approximate = "tanh" })
  if o.approximate == "tanh" then return x:gelu() end
  if o.approximate == "none" then return orrery.nn.gelu_exact(x) end
  orrery.fail(('gelu: approximate = "%s": give "tanh" or "none"'):format(o.approximate))
end
