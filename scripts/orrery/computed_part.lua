-- SPDX-License-Identifier: Apache-2.0
--
-- What nn.weight_norm and nn.spectral_norm share: a layer whose weight is computed for each call and is no parameter.
local _, orrery = ...
local M = {}

-- Takes a part of a layer away and returns its value.
function M.take(kind, layer, part)
  local state = orrery.type(layer) == "Module" and rawget(layer, part)
  if orrery.type(state) ~= "State" then
    orrery.fail(("%s: %s has no tensor '%s': give a layer that has one, as nn.linear and nn.conv2d"):format(
      kind, orrery.type(layer), part))
  end
  layer[part] = nil
  return state:read()
end

-- What the layer makes of its arguments with this tensor as its part.
function M.call(layer, part, weight, ...)
  layer[part] = weight
  local scope <close> = setmetatable({}, { __close = function() layer[part] = nil end }) -- also after an error
  return layer(...)
end

return M
