-- SPDX-License-Identifier: Apache-2.0
--
-- nn.parameter(dims, {init =, dtype =}): a trained tensor for modules of your own.
local _, orrery = ...
local init = orrery.nn.init

return function(dims, options)
  local o = orrery.options("parameter", options, { init = init.zeros, dtype = "f32" })
  return orrery.parameter(dims, { init = init.resolve(o.init, dims), dtype = o.dtype })
end
