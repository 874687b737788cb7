-- SPDX-License-Identifier: Apache-2.0
--
-- A small model trained with a loss scale under the stack that the caller puts where STACK stands. In
-- the steps named by `bad` one sample's logits are multiplied by `boost`; steps named by `left_out` are
-- not taken. Prints every step's loss, scale, skipped steps and a digest of all parameters.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { bad = "", left_out = "", boost = 1e38, steps = 12, optimizer = "momentum", clip = 0.5,
  load = "", save = "", stop = 0 }
orrery.seed(5)

local MLP = nn.module("MLP", function(m)
  m.a, m.b, m.c = nn.linear(8, 24), nn.linear(24, 20), nn.linear(20, 12)
  return function(x) return m.c(nn.gelu(m.b(nn.gelu(m.a(x))))) end
end)
local optimizers = {
  momentum = function() return optim.momentum { lr = 0.05 } end,
  adamw = function() return optim.adamw { lr = 1e-2 } end,
}

local model = MLP()
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x) * b.boost, b.y) end, {
  params = model, optimizer = optimizers[args.optimizer](), clip = args.clip, microbatches = 8, strategy = STACK,
})
if args.load ~= "" then run:load(args.load) end

local function named(list, step) return ("," .. list .. ","):find("," .. step .. ",", 1, true) ~= nil end

local function batch_of(step)
  local x, y, boost = {}, {}, {}
  for i = 1, 16 do
    x[i], y[i], boost[i] = {}, (step * 7 + i * 5) % 12, { 1 }
    for j = 1, 8 do x[i][j] = ((step * 31 + i * 17 + j * (i + 3)) % 48) / 24 - 1 end
  end
  if named(args.bad, step) then boost[11][1] = args.boost end
  return { x = orrery.tensor(x), y = orrery.tensor(y, "i32"), boost = orrery.tensor(boost) }
end

for step = 1 + run.steps, args.stop > 0 and args.stop or args.steps do
  if not named(args.left_out, step) then
    local result = run:step(batch_of(step))
    local scale, skipped = 1, 0
    for _, name in ipairs(result:names()) do
      if name == "loss_scale" then scale, skipped = result:get("loss_scale"), result:get("skipped_steps") end
    end
    orrery.log("step %d loss %.17g scale %.17g skipped %d digest %s", step, result:mean(), scale, skipped,
      orrery.digest(model))
  end
end
if args.save ~= "" then run:save(args.save) end
