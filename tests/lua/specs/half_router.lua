-- SPDX-License-Identifier: Apache-2.0
--
-- strategy.precision leaves the router of nn.switch in f32: the rows of this one would be equal in 16 bits. Each place
-- prefers the expert of the largest sum, or of the least.
local orrery = require "orrery"
local nn = orrery.nn

local layer = nn.switch(4, { experts = 4, capacity = false })
local rows, x = {}, {}
for e = 1, 4 do rows[e] = { 1 + e / 8192, 1, 1, 1 } end
for t = 1, 8 do x[t] = { t % 4 == 0 and -1 or 1, 0.5, 0.25, -0.5 } end
layer.router.weight:write(orrery.tensor(rows))

local function outcome(compute)
  local run = orrery.compile(function(b)
    local y, aux = layer(b.x)
    return y:mean(), { load = aux.load, y = y }
  end, { params = layer, optimizer = orrery.optim.sgd { lr = 0 },
    strategy = { orrery.strategy.precision { compute = compute } } })
  local result = run:step { x = { x, x } }
  return table.concat(result:get("load"):tolist(), " "), orrery.engine.bytes(result:get "y")
end

local full, y = outcome "f32"
local low, z = outcome "bf16"
assert(full == "4.0 0.0 0.0 12.0" and low == full and y ~= z, ("router in f32: %s, %s"):format(full, low))
