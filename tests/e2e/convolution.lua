-- SPDX-License-Identifier: Apache-2.0
--
-- A small network of every layer over spatial dims, trained under the stack that the caller puts where STACK stands;
-- prints losses and norms in full, the loss of an evaluation, and a digest, in which the running statistics are.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { batch = 8, microbatches = 4, sync = 0 }
orrery.seed(3)
local function norm(channels) return nn.batchnorm(channels, { sync = args.sync == 1 }) end

local Net = nn.module("Net", function(m)
  m.stem = nn.sequential { nn.conv2d(2, 8, 3, { padding = 1, bias = false }), norm(8), nn.relu }
  m.down = nn.sequential { nn.max_pool2d(3, { stride = 2, padding = 1 }), nn.conv2d(8, 8, 3, { padding = 1, groups = 8 }),
    nn.groupnorm(2, 8), nn.gelu }
  m.mix = nn.sequential { nn.conv2d(8, 12, { 1, 3 }, { groups = 2, dilation = { 1, 2 } }), norm(12), nn.relu }
  m.up = nn.conv_transpose2d(12, 8, 2, { stride = 2, padding = { 0, 0 } })
  m.head = nn.sequential { nn.conv2d(8, 16, 1), nn.gelu, nn.conv2d(16, 8, 3, { stride = { 3, 2 }, padding = 1 }),
    nn.avg_pool2d(2), nn.adaptive_avg_pool2d(1), nn.flatten, nn.linear(8, 5) }
  return function(x)
    x = m.down(m.stem(x))
    return m.head(m.up(m.mix(x)))
  end
end)

local model = Net()
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, optimizer = optim.momentum { lr = 0.1 }, clip = 0.5, microbatches = args.microbatches, strategy = STACK,
})
local function batch_of(step)
  local x, y = {}, {}
  for i = 1, args.batch do
    x[i], y[i] = {}, (step + i) % 5
    for c = 1, 2 do
      x[i][c] = {}
      for row = 1, 10 do
        x[i][c][row] = {}
        for column = 1, 12 do x[i][c][row][column] = math.sin(step * 1.1 + i * 0.7 + c * 2 + row * column * (i % 3 + 1)) end
      end
    end
  end
  return { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "i64") }
end
for step = 1, 4 do
  local result = run:step(batch_of(step))
  orrery.log("step %d loss %.17g norm %.17g", step, result:mean(), result:get "grad_norm")
end
orrery.log("eval %.17g", run:eval(batch_of(9)):mean())
orrery.log("digest %s", orrery.digest(model))
