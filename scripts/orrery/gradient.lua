-- SPDX-License-Identifier: Apache-2.0
--
--- orrery.gradient(options)
--- A function of tensors with a gradient of its own. Neither function may use a tensor that was not
--- handed to it.
---@param options table
---@option forward fun(x,...):orrery.Tensor gives y; required
---@option backward fun(dy,y,x,...) gives one gradient for each x (nil: none); required
---@return fun(...):orrery.Tensor
local _, orrery = ...
local engine = orrery.engine

return function(options)
  local o = orrery.options("gradient", options, { forward = false, backward = false })
  for _, name in ipairs { "forward", "backward" } do
    if type(o[name]) ~= "function" then
      orrery.fail(("gradient: %s is %s, expected a function"):format(name, orrery.type(o[name])))
    end
  end
  return function(...)
    return engine.with_gradient(o.forward(...), { ... }, o.backward)
  end
end
