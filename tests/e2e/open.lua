-- SPDX-License-Identifier: Apache-2.0
--
-- A linear model without a bias, whose gradient a test can compute by itself, under the strategy that the
-- caller puts where STACK stands. Prints losses and saves the weights and states after the last step.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { steps = 4, lr = 0.125, save = "", load = "", optimizer = "sgd", clip = 0.0, rows = 8,
  microbatches = 4, inputs = 6, outputs = 5, data = "mixed", scale = 1.0 }
orrery.seed(11)
local model = nn.module("Model", function(m)
  m.fc = nn.linear(args.inputs, args.outputs, { bias = false })
  return function(x) return m.fc(x) end
end)()
local run = orrery.compile(function(b) return (model(b.x) * b.y):sum(2):mean() * args.scale end, {
  params = model, optimizer = optim[args.optimizer] { lr = args.lr }, clip = args.clip, microbatches = args.microbatches,
  strategy = STACK,
})
if args.load ~= "" then run:load(args.load) end
-- All in eighths, so that gradients are exact. open_test.py makes the same.
local function batch_of(step)
  local x, y = {}, {}
  for i = 1, args.rows do
    x[i], y[i] = {}, {}
    local k = args.data == "parallel" and 1 or i
    for j = 1, args.inputs do x[i][j] = ((step * 7 + k * 5 + j * 3) % 11 - 5) / 8 end
    for j = 1, args.outputs do y[i][j] = ((step * 3 + k * 2 + j * 7) % 13 - 6) / 8 end
    -- The two halves of the batch have no feature in common.
    for j = 1, args.inputs do
      if args.data == "late" and step == 1 then x[i][j] = 0.0 end
      if args.data == "orthogonal" and (j % 2 == 0) == (2 * i > args.rows) then x[i][j] = 0.0 end
    end
  end
  return { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }
end
for step = run.steps + 1, args.steps do
  local result = run:step(batch_of(step))
  orrery.log("step %d loss %.17g", step, result:mean())
end
local used = run:counters()
if used.predicted_bytes_sent ~= used.bytes_sent then
  error(("rank %d sent %d bytes, predicted were %d"):format(orrery.world.rank, used.bytes_sent, used.predicted_bytes_sent))
end
orrery.log("eval %.17g", run:eval(batch_of(99)):mean())
if args.save ~= "" then run:save(args.save) end
orrery.log("digest %s", orrery.digest(model))
