-- SPDX-License-Identifier: Apache-2.0
--
-- strategy.precision squares in f32: f16 has no squares from 256 on, of which a layer's variance was infinite and its
-- result 0, without a word.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy

local made = {
  batchnorm = function() return nn.batchnorm(4) end,
  ["batchnorm, sync"] = function() return nn.batchnorm(4, { sync = true }) end,
  var = function() return function(x) return (x - x:mean(3, { keep = true })) * (x:var(3, { keep = true }) + 1):rsqrt() end end,
}
local rows = {}
for i = 1, 4 do
  rows[i] = {}
  for c = 1, 4 do
    rows[i][c] = {}
    for t = 1, 6 do rows[i][c][t] = math.sin(i * 7 + c * 3 + t * 1.7) * 1000 end
  end
end

local function loss_of(make, compute)
  local Net = nn.module("net", function(m)
    m.first, m.norm = nn.conv1d(4, 4, 1), make()
    return function(b)
      local y = m.norm(m.first(b.x))
      return (y * y):mean()
    end
  end)
  orrery.seed(1)
  local net = Net()
  local run = orrery.compile(net, {
    params = net, optimizer = optim.sgd { lr = 0 }, strategy = compute and strategy.precision { compute = compute } or nil,
  })
  return run:step({ x = orrery.tensor(rows, "f32") }):mean()
end

for name, make in pairs(made) do
  local want = loss_of(make)
  for _, compute in ipairs { "f16", "bf16" } do
    local got = loss_of(make, compute)
    assert(math.abs(got - want) < 0.02 * want, ("%s in %s: %g, not %g"):format(name, compute, got, want))
  end
end
