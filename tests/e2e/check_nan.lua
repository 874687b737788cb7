-- SPDX-License-Identifier: Apache-2.0
--
-- Trainings that come to a value that is not finite in one of several ways, at a known line.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { case = "forward", stack = "data" }
local world = orrery.world

local Net = nn.module("Net", function(m)
  m.a, m.b = nn.linear(3, 8), nn.linear(8, 2)
  return function(x, scale)
    local h = nn.tanh(m.a(x)) -- HERE batch
    if args.case == "forward" then h = (h * 0.5 + scale):log() end -- HERE forward
    if args.case == "overflow" then h = (h * scale):exp() end -- HERE overflow
    if args.case == "backward" then h = ((h:abs() + 1) * (1 - scale)):sqrt() end -- HERE backward
    if args.case == "mask" then
      h = orrery.where(h:gt(0), h, h * 0 - math.huge):softmax()
    end
    return m.b(h) -- HERE parameter
  end
end)

local function batch_of(step)
  local x, y, scale = {}, {}, {}
  for i = 1, 8 do
    x[i], y[i], scale[i] = {}, i % 2, {}
    for j = 1, 3 do x[i][j] = math.sin(step + i * j) end
    for j = 1, 8 do scale[i][j] = 1.0 end
  end
  if step == 3 and args.case == "forward" then scale[7][5] = -2.0 end
  if step == 3 and args.case == "overflow" then scale[7][5] = 1e5 end
  if args.case == "backward" then
    for i = 1, 8 do for j = 1, 8 do scale[i][j] = 0.5 end end
  end
  if step == 3 and args.case == "backward" then scale[7][5] = 1.0 end
  if step == 3 and args.case == "batch" then x[7][2] = 0 / 0 end
  return { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "i32"), scale = orrery.tensor(scale, "f32") }
end

orrery.seed(2)
local model = Net()
local stack = { data = { strategy.data {} }, pipeline = { strategy.pipeline { size = 2 } } }
local run = orrery.compile(function(b)
  return nn.cross_entropy(model(b.x, b.scale), b.y) + 0 * b.scale:mean()
end, { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 4, strategy = stack[args.stack] })
for step = 1, 4 do
  if step == 3 and args.case == "parameter" then
    model.b.bias:write { 0 / 0, 1.0 }
  end
  run:step(batch_of(step))
  if world.rank == 0 then print("step", step) end
end
orrery.log("digest %s", orrery.digest(model))
