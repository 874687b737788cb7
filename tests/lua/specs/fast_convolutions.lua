-- SPDX-License-Identifier: Apache-2.0
--
-- Convolutional networks of fast numerics (by Winograd's method on CPUs) train as exact ones do, but for rounding:
-- with several microbatches, strides, odd edges and transposed weights among their layers.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local images = orrery.func(function() return orrery.normal { 8, 3, 21, 18 } end)()
local classes = { 0, 1, 2, 3, 4, 0, 1, 2 }

-- The weights after a few steps, by name, as they were before and are then.
local function trained(numerics, microbatches)
  orrery.seed(7)
  local net = nn.sequential {
    nn.conv2d(3, 32, 3, { padding = 1 }), nn.relu, nn.conv2d(32, 16, 3), nn.relu,
    nn.conv2d(16, 48, 3, { stride = 2, padding = 1 }), nn.relu, nn.conv2d(48, 32, 3, { padding = 1, bias = false }),
    nn.conv_transpose2d(32, 16, 3), nn.adaptive_avg_pool2d(1), nn.flatten, nn.linear(16, 5),
  }
  local run = orrery.compile(function(b) return nn.cross_entropy(net(b.x), b.y) end, {
    params = net, optimizer = optim.momentum { lr = 0.1 }, numerics = numerics,
    microbatches = microbatches,
  })
  local data, weights = orrery.data.arrays { x = images, y = classes }, {}
  for _, p in ipairs(orrery.parameters(net)) do weights[p.name] = { before = p:read() } end
  for i = 1, 3 do run:step(data:batch(i, { size = 8, shuffle = false })) end
  for _, p in ipairs(orrery.parameters(net)) do weights[p.name].after = p:read() end
  return weights
end

local compare = orrery.func(function(before, exact, fast)
  return (exact - before):abs():max(), (fast - exact):abs():max()
end)

for _, microbatches in ipairs { 1, 2 } do
  local exact, fast, all = trained("exact", microbatches), trained("fast", microbatches), 0
  for name, weight in pairs(exact) do
    local change, error = compare(weight.before, weight.after, fast[name].after)
    assert(change:item() > 0 and error:item() < 1e-4 * change:item(),
      ("%s with %d microbatches: changed by %g, by %g more or less where numerics are fast")
      :format(name, microbatches, change:item(), error:item()))
    all = all + error:item()
  end
  assert(all > 0, "all bits are the same: nothing was computed in another way")
end
