-- SPDX-License-Identifier: Apache-2.0
--
--- nn.glu(x, dim)
--- The first half of a dim times the sigmoid of the second, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@param dim? integer=-1
---@return orrery.Tensor

-- Dauphin et al., 2017 (arXiv:1612.08083).
local _, orrery = ...
local in_single = require "orrery.in_single"

return in_single(function(x, dim)
  dim = dim or -1
  local size = x.shape[dim]
  if not size or size % 2 ~= 0 then
    orrery.fail(("glu: dim %d of %s has no two halves"):format(dim, tostring(x.shape)))
  end
  local values, gates = x:split(dim, 2)
  return values * gates:sigmoid()
end)
