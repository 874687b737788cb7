-- SPDX-License-Identifier: Apache-2.0
--
-- The options of nn.unfold and nn.fold, as lists of one to three integers.
local _, orrery = ...
local spatial = require "orrery.nn.spatial"
local M = {}

-- n: of how many dims; by default as many as `size` has, or two.
function M.options(what, size, given, n)
  n = n or type(size) == "table" and #size or 2
  if n < 1 or n > 3 then orrery.fail(("%s: of %d dims, expected one to three"):format(what, n)) end
  local o = orrery.options(what, given, { stride = 1, padding = 0, dilation = 1 })
  return {
    size = spatial.each(what, "size", size, n, 1), stride = spatial.each(what, "stride", o.stride, n, 1),
    padding = spatial.each(what, "padding", o.padding, n, 0), dilation = spatial.each(what, "dilation", o.dilation, n, 1),
  }
end

return M
