-- SPDX-License-Identifier: Apache-2.0
-- Scalars of a step, and which group a parameter belongs to.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.sequential { nn.linear(2, 2), nn.layernorm(2) }
local o = optim.adamw {
  lr = function(step) return step * 0.1 end, b1 = 0.5, decay = 0.1,
  groups = { { match = { "*.bias", "2.*" }, decay = 0, lr = 0.5 }, { match = "*.weight", frozen = true } },
}
local list = orrery.parameters(net)
assert(o:group_of(list[1]) == 1 and o:group_of(list[2]) == 2 and o:group_of(list[4]) == 1)
assert(o:freezes(list[2]) and not o:freezes(list[1]))
local scalars = o:scalars(2)
assert(math.abs(scalars["optim.0.lr"] - 0.2) < 1e-12 and scalars["optim.1.lr"] == 0.5)
assert(math.abs(scalars["optim.0.c1"] - 1 / 0.75) < 1e-12)

-- A group of another kind has its options and definition.
local other = optim.muon {
  lr = 0.1, groups = { { match = "*.bias", optimizer = optim.adam { lr = 0.3, b1 = 0.5 } }, { match = "2.*", decay = 0 } },
}
scalars = other:scalars(1)
assert(scalars["optim.0.lr"] == 0.1 and scalars["optim.1.lr"] == 0.3 and scalars["optim.2.lr"] == 0.1)
assert(scalars["optim.1.c1"] == 2 and not scalars["optim.0.c1"])

local function refused(why, options)
  local ok, message = pcall(optim.adamw, options)
  assert(not ok and message:find(why, 1, true), message)
end
refused("adamw group: optimizer is number; write optim.adamw{lr = 1e-3}", { groups = { { match = "*", optimizer = 3 } } })
refused("unknown option 'lr'; it has frozen, match, optimizer",
  { groups = { { match = "*", optimizer = optim.sgd {}, lr = 1 } } })
refused("its optimizer sgd has groups of its own",
  { groups = { { match = "*", optimizer = optim.sgd { groups = { { match = "*", lr = 1 } } } } } })
local function step_of(optimizer)
  local run = orrery.compile(function(b) return net(b.x):mean() end, { params = net, optimizer = optimizer })
  return pcall(run.step, run, { x = { { 1.0, 2.0 } } })
end
local ok, message = step_of(optim.muon {})
assert(not ok and message:find "muon: a parameter is .*, which is no matrix: give it another kind by a group", message)
ok, message = step_of(optim.muon { adjust = "rms", groups = { { match = { "*.bias", "2.*" }, optimizer = optim.sgd {} } } })
assert(not ok and message:find "muon: adjust is 'rms': write \"original\" or \"match_rms_adamw\"", message)
