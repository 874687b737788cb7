-- SPDX-License-Identifier: Apache-2.0
--
-- A small network under one of the optimizers that `kind` names: a line for each step with its loss, then the sums of
-- the squares of the parameters. optimizers.py is the same in PyTorch, optimizers.json its figures.
local orrery = require "orrery"
local filled = require "filled"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { kind = "", steps = 8, microbatches = 1, stack = "", again = "" }

local kinds = {
  rmsprop = function() return optim.rmsprop { lr = 0.02, alpha = 0.9, decay = 0.1, eps = 1e-3 } end,
  lion = function() return optim.lion { lr = 0.01, decay = 0.1 } end,
  lamb = function() return optim.lamb { lr = 0.05, b2 = 0.99, decay = 0.1 } end,
  lars = function() return optim.lars { lr = 0.5, trust = 0.1, decay = 0.1 } end,
  momentum = function() return optim.momentum { lr = 0.05, dampening = 0.4, decay = 0.1 } end,
  nesterov = function() return optim.momentum { lr = 0.03, nesterov = true, decay = 0.1 } end,
  adadelta = function() return optim.adadelta { rho = 0.8, decay = 0.1 } end,
  adadelta_slow = function() return optim.adadelta { lr = 0.3, eps = 1e-3 } end,
  adamax = function() return optim.adamax { lr = 0.02, b2 = 0.9, decay = 0.1 } end,
  nadam = function() return optim.nadam { lr = 0.01, decay = 0.1 } end,
  nadam_decoupled = function() return optim.nadam { lr = 0.01, decay = 0.1, decoupled = true, momentum_decay = 0.1 } end,
  radam = function() return optim.radam { lr = 0.02, decay = 0.1 } end,
  radam_decoupled = function() return optim.radam { lr = 0.02, b2 = 0.9, decay = 0.1, decoupled = true } end,
  rprop = function() return optim.rprop {} end,
  rprop_bounded = function() return optim.rprop { lr = 0.02, shrink = 0.7, grow = 1.5, least = 1e-3, most = 0.05 } end,
  adafactor = function() return optim.adafactor { decay = 0.1 } end,
  adafactor_fast = function() return optim.adafactor { lr = 0.5, b2_decay = -0.5, clip = 1.5, eps = 0.9 } end,
  clip_value = function() return optim.momentum { lr = 0.1 }, { clip_value = 0.03 } end,
  clip_groups = function()
    return optim.momentum {
      lr = 0.1, groups = {
        { match = function(p) return #p.shape == 1 end, clip_norm = 0.05 },
        { match = "5.*", clip_value = 0.04, clip_norm = 0.15 },
        { match = "3.*", optimizer = optim.momentum { lr = 0.05 }, clip_norm = 0.04 },
      },
    }, { clip = 0.1 }
  end,
  muon = function()
    return optim.muon {
      lr = 0.05, groups = { { match = "*.bias", optimizer = optim.adamw { lr = 0.02, b2 = 0.99, decay = 0 } } },
    }
  end,
  muon_as_adamw = function()
    return optim.muon {
      lr = 0.05, nesterov = false, adjust = "match_rms_adamw", groups = {
        { match = "5.*", optimizer = optim.sgd { lr = optim.linear { peak = 0.1, steps = 8 } } },
        { match = "*.bias", optimizer = optim.momentum { lr = 0.02 } },
      },
    }
  end,
}

local function make()
  local net = nn.sequential { nn.linear(6, 12), nn.tanh, nn.linear(12, 8), nn.tanh, nn.linear(8, 3) }
  for n, p in ipairs { net[1].weight, net[1].bias, net[3].weight, net[3].bias, net[5].weight, net[5].bias } do
    p:write(filled(n, p.shape[1], p.shape[2] or 1))
  end
  local optimizer, clips = kinds[args.kind]()
  clips = clips or {}
  return net, orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, {
    params = net, optimizer = optimizer, microbatches = args.microbatches, clip = clips.clip, clip_value = clips.clip_value,
    strategy = load("local strategy = ...; return {" .. args.stack .. "}")(orrery.strategy),
  })
end

local net, run = make()
local batch = { x = filled(20, 8, 6), y = filled(21, 8, 3) }
for step = 1, args.steps do
  orrery.log("%.9g", run:step(batch):mean())
  if step == args.steps // 2 and args.again ~= "" then
    run:save(args.again)
    net, run = make()
    run:load(args.again)
  end
end
local squares = 0
for _, p in ipairs(orrery.parameters(net)) do
  for _, row in ipairs(p:read():tolist()) do
    for _, x in ipairs(type(row) == "table" and row or { row }) do squares = squares + x * x end
  end
end
orrery.log("%.9g", squares)
