-- SPDX-License-Identifier: Apache-2.0
--
-- What a script does before and between steps: a policy that acts before the first one, a target network that follows, a
-- model that is pulled back to it. Prints every number; they are the same on any number of ranks under exact strategies.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { stack = "", unnamed = false }
orrery.seed(3)

local function Net() return nn.sequential { nn.linear(3, 5), nn.tanh, nn.linear(5, 2) } end
local online, target = Net(), nn.freeze(Net())
if not args.unnamed then orrery.parameters { online = online, target = target } end
local p, t = orrery.parameters(online), orrery.parameters(target)
local act = orrery.func(function(x) return online(x) end)
local pull = orrery.func(function()
  for i = 1, #p do p[i]:update(p[i] * 0.75 + t[i] * 0.25) end
end)
local follow = orrery.func(function()
  for i = 1, #p do t[i]:update(t[i] * 0.9 + p[i] * 0.1) end
end)
local run = orrery.compile(function(b)
  return nn.mse(online(b.x), target(b.next) * 0.9 + b.y)
end, { params = online, optimizer = optim.adam { lr = 0.05 }, microbatches = 4,
  strategy = load("local strategy = ...; return {" .. args.stack .. "}")(orrery.strategy) })

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
  follow()
  if step % 2 == 0 then pull() end
  orrery.log("%s %.9g", y, run:eval({ x = x, next = x, y = y }):mean())
end
orrery.log("%s", orrery.digest { online, target })
