-- SPDX-License-Identifier: Apache-2.0
--
-- Numbers of eight bits: with `cast` the floats of a file, through that dtype and back, into another file; else a small
-- network of which two layers multiply in eight bits: a line for each step with the loss, then the first rows of
-- their weights. eight_bits.py is the same in NumPy with ml_dtypes, eight_bits.json its figures.
local orrery = require "orrery"
local filled = require "filled"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { cast = "", from = "", to = "", scale = "tensor", steps = 3, rows = 4, eight = true }

if args.cast ~= "" then
  orrery.load(args.from):cast(args.cast):cast("f32"):save(args.to)
  return
end

local net = nn.sequential {
  nn.linear(32, 64, { bias = false }), nn.relu, nn.linear(64, 48, { bias = false }), nn.relu,
  nn.linear(48, 16, { bias = false }),
}
for n, p in ipairs { net[1].weight, net[3].weight, net[5].weight } do p:write(filled(n, p.shape[1], p.shape[2])) end
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, {
  params = net, optimizer = optim.sgd { lr = 2 ^ -6 }, microbatches = 2,
  strategy = args.eight and strategy.precision { compute = "fp8", scale = args.scale } or strategy.precision {},
})
-- Small numbers, which without a scale would be steps of 2^-9; the second microbatch has larger ones.
local x, y = filled(20, 16, 32), filled(40, 16, 16)
for i = 1, 16 do
  for j = 1, 32 do x[i][j] = x[i][j] * (i > 8 and 5 or 1) / 64 end
end
for _ = 1, args.steps do orrery.log("%.9g", run:step { x = x, y = y }:mean()) end
for _, p in ipairs { net[1].weight, net[3].weight } do
  local rows = p:read():tolist()
  for i = 1, args.rows do
    for k, v in ipairs(rows[i]) do rows[i][k] = ("%.9g"):format(v) end
    orrery.log("%s", table.concat(rows[i], " "))
  end
end
