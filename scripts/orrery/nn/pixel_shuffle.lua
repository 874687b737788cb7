-- SPDX-License-Identifier: Apache-2.0
--
--- nn.pixel_shuffle(factor)
--- [batch, channels * factor^2, height, width] as [batch, channels, height * factor, width * factor]: neighbouring channels
--- become neighbouring places.
---@param factor integer
---@return orrery.Module

-- Shi et al., 2016 (arXiv:1609.05158).
local _, orrery = ...
local spatial = require "orrery.nn.spatial"

return orrery.nn.module("pixel_shuffle", function(_, factor)
  if factor < 1 then orrery.fail(("pixel_shuffle: factor = %d, expected at least 1"):format(factor)) end
  return function(x)
    spatial.check("pixel_shuffle", x, 2)
    local batch, all, height, width = table.unpack(x.shape)
    local channels = all // (factor * factor)
    if channels * factor * factor ~= all then
      orrery.fail(("pixel_shuffle: %d channels are no multiple of %d"):format(all, factor * factor))
    end
    x = x:reshape(batch, channels, factor, factor, height, width):permute(1, 2, 5, 3, 6, 4)
    return x:reshape(batch, channels, height * factor, width * factor)
  end
end)
