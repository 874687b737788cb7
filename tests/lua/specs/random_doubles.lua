-- SPDX-License-Identifier: Apache-2.0
--
-- Random numbers of doubles are spread as those of floats are: initial values, and what dropout keeps.
local orrery = require "orrery"
local nn = orrery.nn

local p = nn.parameter({ 100, 70 }, { dtype = "f64", init = nn.init.uniform(-0.5, 0.5) })
local q = nn.parameter({ 100, 70 }, { init = nn.init.uniform(-0.5, 0.5) })
for _, each in ipairs { p, q } do
  local mean, square = orrery.func(function(x) return x:mean(), (x * x):mean() end)(each:read())
  assert(math.abs(mean:item()) < 0.02 and math.abs(square:item() - 1 / 12) < 0.005,
    ("%s: mean %g, of squares %g"):format(each.dtype, mean:item(), square:item()))
end
