-- SPDX-License-Identifier: Apache-2.0
--
-- What a script does before and between steps: a look at the values, a policy that acts before the first step, a target
-- network that follows, a model that is pulled back to it; with `judged`, a second run that reads both. Prints every
-- number; they are the same on any number of ranks under exact strategies.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { stack = "", unnamed = false, judged = false }
orrery.seed(3)

local function Net() return nn.sequential { nn.linear(3, 5), nn.tanh, nn.linear(5, 2) } end
local online, target = Net(), nn.freeze(Net())
local judge = nn.linear(2, 1)
if not args.unnamed then orrery.parameters { online = online, target = target, judge = judge } end
local p, t = orrery.parameters(online), orrery.parameters(target)
for i = 1, #p do orrery.log("%s %s", p[i]:read(), t[i]:read()) end
local act = orrery.func(function(x) return online(x) end)
local pull = orrery.func(function()
  for i = 1, #p do p[i]:update(p[i] * 0.75 + t[i] * 0.25) end
end)
local follow = orrery.func(function()
  for i = 1, #p do t[i]:update(t[i] * 0.9 + p[i] * 0.1) end
end)
local function compile(model, loss)
  return orrery.compile(loss, { params = model, optimizer = optim.adam { lr = 0.05 }, microbatches = 4,
    strategy = load("local strategy = ...; return {" .. args.stack .. "}")(orrery.strategy) })
end
local run = compile(online, function(b) return nn.mse(online(b.x), target(b.next) * 0.9 + b.y) end)
local judged = args.judged and compile(judge, function(b)
  return nn.mse(judge(online(b.x) + target(b.x)), b.y:slice(2, 1, 1))
end)

local function rows(n, width, at)
  local all = {}
  for i = 1, n do
    all[i] = {}
    for k = 1, width do all[i][k] = math.sin(at + 7 * i + 3 * k) end
  end
  return all
end
for step = 1, 4 do
  local x = rows(6 - step, 3, step) -- 5 samples of the 4 microbatches, then fewer
  local y = act(x)
  run:step { x = x, next = rows(6 - step, 3, step + 1), y = y }
  if judged then orrery.log("%.9g", judged:step({ x = x, y = y }):mean()) end
  follow()
  if step % 2 == 0 then pull() end
  orrery.log("%s %.9g", y, run:eval({ x = x, next = x, y = y }):mean())
end
orrery.log("%s", orrery.digest { online, target })
