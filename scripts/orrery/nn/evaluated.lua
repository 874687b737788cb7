-- SPDX-License-Identifier: Apache-2.0
--
--- nn.evaluated(model)
--- The model as run:eval computes it, also in a training step: without dropout, by running statistics that stay. For
--- teachers and other networks that a loss only reads; nn.freeze alone does not change what they compute.
---@param model orrery.Module|fun(...):...
---@return fun(...):...
local _, orrery = ...
local engine = orrery.engine

return function(model)
  return function(...)
    local training = engine.trace_as(false)
    local scope <close> = setmetatable({}, { __close = function() engine.trace_as(training) end }) -- also after an error
    return model(...)
  end
end
