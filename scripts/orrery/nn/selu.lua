-- SPDX-License-Identifier: Apache-2.0
--
--- nn.selu(x)
--- ELU with the two factors that keep means at 0 and variances at 1 from layer to layer, as a function to put into
--- nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor

-- Klambauer et al., 2017 (arXiv:1706.02515).
local _, orrery = ...
local in_single = require "orrery.in_single"

local alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

return in_single(function(x) return orrery.nn.elu(x, { alpha = alpha }) * scale end)
