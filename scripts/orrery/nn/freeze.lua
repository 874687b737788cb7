-- SPDX-License-Identifier: Apache-2.0
--
--- nn.freeze(model, frozen)
--- Excludes all parameters below from training, or includes them again; returns the model.
---@param model orrery.Module|table
---@param frozen? boolean=true
---@return orrery.Module|table
local _, orrery = ...
local tree = require "orrery.nn.module_tree"

return function(model, frozen)
  for _, parameter in ipairs(tree.parameters(model)) do parameter:freeze(frozen ~= false) end
  return model
end
