-- SPDX-License-Identifier: Apache-2.0
--
-- A perceptron, whose weights are read every third step, under the stack that the caller puts where STACK stands.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { optimizer = "sgd", from = 0, load = "", save = "", rows = 12 }
orrery.seed(5)

local MLP = nn.module("MLP", function(m)
  m.a, m.b = nn.linear(8, 24), nn.linear(24, 16)
  return function(x) return m.b(nn.tanh(m.a(x))) end
end)
local model = MLP()
local optimizers = {
  sgd = function() return optim.sgd { lr = optim.cosine { peak = 0.1, warmup = 2, steps = 9 } } end,
  adamw = function() return optim.adamw { lr = 0.01 } end,
}
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end,
  { params = model, optimizer = optimizers[args.optimizer](), clip = 0.5, microbatches = 4, strategy = STACK })

local function batch_of(step)
  local x, y = {}, {}
  for i = 1, step == 2 and args.rows or 12 do
    local row = {}
    for j = 1, 8 do row[j] = (step * 31 + i * 17 + j * (i + 3)) % 96 / 48 - 1 end
    x[#x + 1], y[#y + 1] = row, (step * 7 + i * 5) % 16
  end
  return { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "i32") }
end

if args.load ~= "" then run:load(args.load) end
for step = args.from + 1, args.from + 6 do
  run:step(batch_of(step))
  if step % 3 == 0 then orrery.log("digest %d %s", step, orrery.digest(model)) end
end
if args.save ~= "" then run:save(args.save) end
local used = run:counters()
if used.predicted_bytes_sent ~= used.bytes_sent then
  error(("rank %d sent %d bytes, predicted were %d"):format(orrery.world.rank, used.bytes_sent, used.predicted_bytes_sent))
end
