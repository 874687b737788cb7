-- SPDX-License-Identifier: Apache-2.0
--
-- Training in f64 takes no number in f32: rates, other scalars of a step, the weight of a batch, the norm of gradients.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function near(a, b) assert(math.abs(a - b) < 1e-14 * math.max(1, math.abs(b)), ("%.17g, expected %.17g"):format(a, b)) end

local w = nn.parameter({ 2 }, { dtype = "f64" })
local start, factor = { 0.7, -1.3 }, orrery.input("tenth", 0.1)
local target = { 0.3, 0.9, -0.4 } -- of three samples, whose weight is 1 / 3 each
local function loss(b) return (((w - b.t:reshape(-1, 1)) ^ 2):sum({ 2 }) * factor):mean() end
local batch = { t = orrery.tensor(target, "f64") }

-- The loss, its derivatives and their norm at p.
local function expected(p)
  local sum, g = 0, { 0, 0 }
  for _, t in ipairs(target) do
    for j = 1, 2 do
      sum = sum + 0.1 * (p[j] - t) ^ 2 / 3
      g[j] = g[j] + 0.1 * 2 * (p[j] - t) / 3
    end
  end
  return sum, g, math.sqrt(g[1] ^ 2 + g[2] ^ 2)
end

-- One step from `start` by an optimizer; `step(p, g)` is what it should make of a number.
local function check(optimizer, clip, step)
  w:write(orrery.tensor(start, "f64"))
  local result = orrery.compile(loss, { params = { w }, optimizer = optimizer, clip = clip, microbatches = 2 }):step(batch)
  local sum, g, norm = expected(start)
  near(result:mean(), sum)
  near(result:get "grad_norm", norm)
  local scale = clip > 0 and math.min(1, clip / (norm + 1e-6)) or 1
  for j, p in ipairs(w:read():tolist()) do near(p, step(start[j], g[j] * scale)) end
end
check(optim.sgd { lr = 0.3 }, 0, function(p, g) return p - 0.3 * g end)
check(optim.sgd { lr = 0.3 }, 0.07, function(p, g) return p - 0.3 * g end)
check(optim.adam { lr = 0.3 }, 0, function(p, g) return p - 0.3 * g / (math.abs(g) + 1e-8) end)
check(optim.adamw { lr = function() return 0.3 end, decay = 0.1 }, 0,
  function(p, g) return p - 0.3 * (g / (math.abs(g) + 1e-8) + 0.1 * p) end)
