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
local function group_of(parameter) return o:group_of { parameter.name } end
assert(group_of(list[1]) == 1 and group_of(list[2]) == 2 and group_of(list[4]) == 1)
local trained = o:bound(net).params
assert(#trained == 3 and trained[1] == list[1] and trained[2] == list[3] and trained[3] == list[4])
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
assert(not ok and message:find "muon: '1.bias' %[2%] is no matrix: give it another kind by a group", message)
ok, message = step_of(optim.muon { adjust = "rms", groups = { { match = { "*.bias", "2.*" }, optimizer = optim.sgd {} } } })
assert(not ok and message:find "muon: adjust is 'rms': write \"original\" or \"match_rms_adamw\"", message)

-- All paths of a shared parameter match, also where another root gives the names, and so do those of a shared module.
local Tied = nn.module("Tied", function(m)
  m.tok = nn.embedding(8, 4)
  m.head = nn.linear(4, 8, { bias = false, tie = m.tok.weight })
  m.first, m.again = nn.linear(4, 4), nn.linear(4, 4)
  m.again = m.first
  return function(ids) return m.head(m.again(m.first(m.tok(ids)))) end
end)
local tied = Tied()
local function groups_of(model, ...)
  local groups = {}
  for i, match in ipairs { ... } do groups[i] = { match = match, decay = 0 } end
  local bound = optim.adamw { groups = groups }:bound(model)
  local found = {}
  for _, parameter in ipairs(orrery.parameters(tied)) do found[#found + 1] = bound.group[parameter:identity()] end
  return table.concat(found, " ")
end
assert(groups_of(tied, "tok*") == groups_of(tied, "head*") and groups_of(tied, "tok.weight") == "0 0 1")
assert(groups_of(tied, "again.*", "head.*") == "1 1 2" and groups_of(tied, "first.bias") == "1 0 0")
local both = { here = tied, there = nn.linear(2, 2) }
orrery.parameters(both)
assert(groups_of(tied, "here.tok.*", "here.again.*") == "2 2 1")
assert(not pcall(groups_of, tied, "tok.*"))

-- A pattern without effect is refused.
local function refused_match(why, model, ...)
  local done, text = pcall(groups_of, model, ...)
  assert(not done and text:find(why, 1, true), text)
end
tied = Tied()
refused_match("adamw group 1: match 'tik.weight*' matches no parameter (did you mean 'tok.weight'?); there are again.bias, "
  .. "again.weight, first.bias, first.weight, head.weight, tok.weight", tied, "tik.weight*")
refused_match("adamw group 2: match 'norm.*' matches no parameter", tied, "tok*", { "*.bias", "norm.*" })
refused_match("adamw group 2: what match 'head.weight' matches is in groups before it", tied, "tok*", "head.weight")
refused("adamw group: match is 3, expected a path pattern or a list of them", { groups = { { match = 3 } } })
refused("expected a path pattern or a list of them", { groups = { { match = {} } } })
