-- SPDX-License-Identifier: Apache-2.0
--
-- What optimizers refuse, states that are not like their parameter, and parameters of 16 bits.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function refused(words, make, ...)
  local ok, message = pcall(make, ...)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
local both = "momentum: dampening and nesterov exclude each other"
refused(both, optim.momentum, { dampening = 0.1, nesterov = true })
refused(both, optim.momentum, { nesterov = true, groups = { { match = "a", dampening = 0.1 } } })
optim.momentum { nesterov = true, groups = { { match = "a", dampening = 0.1, nesterov = false } } }
refused("momentum: unknown option 'damping'", optim.momentum, { damping = 0.1 })
refused("momentum: options are 1", optim.momentum, 1)

local function states_of(make, options, dims, dtype)
  local net = nn.module("net", function(m)
    m.w = orrery.parameter(dims, { dtype = dtype, init = 0.5 })
    return function(b) return (m.w:cast "f32":sum() * b.x):mean() end
  end)()
  local attached, shapes = make(options):attach(net), {}
  for name, state in pairs(attached:tensors().w) do shapes[name] = state.dtype .. tostring(state.shape) end
  local run = orrery.compile(net, { params = net, optimizer = make(options) })
  for _ = 1, 3 do run:step { x = { 1.0, 2.0 } } end
  return shapes, net.w:read():tolist()
end
local function equal(found, wanted)
  for name, shape in pairs(wanted) do assert(found[name] == shape, ("%s is %s"):format(name, tostring(found[name]))) end
  for name in pairs(found) do assert(wanted[name], name) end
end
equal(states_of(optim.adafactor, {}, { 2, 3, 4 }), { row = "f32[2,3,1]", column = "f32[2,1,4]", count = "f32[]" })
equal(states_of(optim.adafactor, {}, { 4 }), { v = "f32[4]", count = "f32[]" })
-- A product of momenta in 16 bits would have two digits.
local shapes, half = states_of(optim.nadam, { lr = 0.25 }, { 1 }, "bf16")
equal(shapes, { m = "bf16[1]", v = "bf16[1]", rest = "f32[]", count = "f32[]" })
local _, whole = states_of(optim.nadam, { lr = 0.25 }, { 1 }, "f32")
assert(math.abs(half[1] - whole[1]) < 0.01, ("%g is not %g"):format(half[1], whole[1]))
