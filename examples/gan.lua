-- SPDX-License-Identifier: Apache-2.0
--
-- A generative adversarial network (Goodfellow et al., arXiv:1406.2661): a generator makes points of noise, a critic
-- tells them from points around eight centres on a ring; each has a loss and an optimizer of its own and takes a step in
-- turn. Prints how many of 500 new points are near a centre, and how many centres have some.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { steps = 3000, batch = 128, hidden = 96, lr = 1e-3, microbatches = 2, every = 500, seed = 1 }
orrery.seed(args.seed)
local centres, spread = 8, 0.05

local function net(inputs, outputs)
  return nn.sequential {
    nn.linear(inputs, args.hidden), nn.relu, nn.linear(args.hidden, args.hidden), nn.relu, nn.linear(args.hidden, outputs),
  }
end
local generator, critic = net(4, 2), net(2, 1)

-- log(1 + exp(x)), which no x makes infinite: the loss of a logit -x that should say yes.
local function softplus(x) return x:relu() + ((x:abs() * -1):exp() + 1):log() end

-- New points of the ring, one for each row of `like`, which says how many there are.
local function real(like)
  local which = (orrery.uniform(like) * centres):floor() * (2 * math.pi / centres)
  return orrery.concat({ which:cos(), which:sin() }, -1) + orrery.concat({ orrery.normal(like), orrery.normal(like) }, -1) * spread
end
local function noise(like)
  return orrery.concat({ orrery.normal(like), orrery.normal(like), orrery.normal(like), orrery.normal(like) }, -1)
end

local function compile(loss, model)
  return orrery.compile(loss, {
    params = model, microbatches = args.microbatches, strategy = strategy.data {},
    optimizer = optim.adam { lr = args.lr, b1 = 0.5, b2 = 0.99 },
  })
end
-- stop_gradient keeps the critic's loss from training the generator.
local critic_run = compile(function(b)
  local fake = generator(noise(b.like)):stop_gradient()
  return softplus(critic(real(b.like)) * -1):mean() + softplus(critic(fake)):mean()
end, critic)
local generator_run = compile(function(b) return softplus(critic(generator(noise(b.like))) * -1):mean() end, generator)

local rows = {}
for i = 1, args.batch do rows[i] = { 0.0 } end
local batch = { like = orrery.tensor(rows) }
for step = 1, args.steps do
  local told, fooled = critic_run:step(batch), generator_run:step(batch)
  if step % args.every == 0 then
    orrery.log("step %d critic's loss %.3f generator's %.3f", step, told:mean(), fooled:mean())
  end
end

local points = orrery.func(function() return generator(orrery.normal { 500, 4 }) end)():tolist()
local near, found = 0, {}
for _, point in ipairs(points) do
  for centre = 0, centres - 1 do
    local angle = centre * 2 * math.pi / centres
    if (point[1] - math.cos(angle)) ^ 2 + (point[2] - math.sin(angle)) ^ 2 < (4 * spread) ^ 2 then
      near, found[centre] = near + 1, true
    end
  end
end
local modes = 0
for _ in pairs(found) do modes = modes + 1 end
orrery.log("%d of 500 points near %d of %d centres", near, modes, centres)
orrery.log("digest %s", orrery.digest { generator, critic })
