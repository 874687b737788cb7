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
local bound = o:bound(net)
local function group_of(parameter) return bound.group[parameter:identity()] end
assert(group_of(list[1]) == 1 and group_of(list[2]) == 2 and group_of(list[4]) == 1)
local trained = bound.params
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
refused("unknown option 'lr'; it has clip_norm, clip_value, frozen, match, optimizer",
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
refused("adamw group: match is 3, expected a path pattern, a function of the parameter or a list of them",
  { groups = { { match = 3 } } })
refused("adamw group: match is missing: a path pattern, a function of the parameter or a list", { groups = { { lr = 1 } } })
refused("of the parameter or a list of them", { groups = { { match = {} } } })
refused("adamw group: clip_norm is -1, expected 0 or more", { groups = { { match = "*", clip_norm = -1 } } })
refused("adamw group: clip_value is '1', expected 0 or more", { groups = { { match = "*", clip_value = "1" } } })

-- Functions of the parameter, also beside patterns.
local function is_vector(parameter) return #parameter.shape == 1 end
local function tall(parameter) return parameter.shape[1] > 4 and "yes" end
assert(groups_of(tied, is_vector) == "1 0 0" and groups_of(tied, { "tok*", is_vector }) == "1 0 1")
refused_match("adamw group 1: match a function matches no parameter; there are again.bias", tied, function() return false end)
refused_match("adamw group 2: what match a function matches is in groups before it", tied, "*", is_vector)
refused_match("match of a group returned 'yes' for 'head.weight', expected true or false", tied, tall)

-- Limits in a loop of the script's own: of norms by group, then of elements.
local plain = nn.linear(2, 2)
plain.weight:write { { 0, 0 }, { 0, 0 } }
plain.bias:write { 0, 0 }
local attached = optim.sgd {
  lr = 1, groups = { { match = is_vector, clip_value = 2 }, { match = "weight", clip_norm = 1, clip_value = 0.7 } },
}:attach(plain)
attached:update { orrery.tensor { 1.0, -3.0 }, orrery.tensor { { 0.0, 3.0 }, { 4.0, 0.0 } } }
local function near(found, wanted)
  for i, value in ipairs(wanted) do assert(math.abs(found[i] - value) < 1e-6, found[i]) end
end
near(plain.bias:read():tolist(), { -1, 2 })
near(plain.weight:read():tolist()[1], { 0, -0.6 })
near(plain.weight:read():tolist()[2], { -0.7, 0 })
attached:update { orrery.tensor { 0.5, 0.5 }, orrery.tensor { { 0.0, 0.0 }, { 0.1, 0.0 } } }
near(plain.weight:read():tolist()[2], { -0.8, 0 })
near(plain.bias:read():tolist(), { -1.5, 1.5 })

local function compiled(options)
  options.params, options.optimizer = plain, optim.sgd {}
  return pcall(orrery.compile, function(b) return plain(b.x):mean() end, options)
end
ok, message = compiled { clip_value = -1 }
assert(not ok and message:find "compile: clip_value is %-1, expected 0 or more", message)
ok, message = compiled { clip = "1" }
assert(not ok and message:find "compile: clip is ", message)
ok, message = pcall(optim.define, "mine", { options = { lr = 1, clip_norm = 1 }, update = function(p) return p end })
assert(not ok and message:find "define: the option 'clip_norm' is what groups say themselves", message)
