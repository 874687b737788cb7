-- SPDX-License-Identifier: Apache-2.0
-- Parameters of 16 bits: an update is computed in f32 and rounded once, the norm of their gradients is of f32.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local Net = nn.module("net", function(m, dtype)
  m.w, m.s = nn.parameter({ 100 }, { dtype = dtype }), nn.parameter({}, { dtype = dtype })
  return function(b) return ((m.w:cast("f32"):sum() * 100 + m.s:cast("f32") * 300) * b.x):mean() end
end)

local function trained(optimizer, dtype)
  local net = Net(dtype)
  local run, norm = orrery.compile(net, { params = net, clip = 10, optimizer = optimizer }), nil
  for _ = 1, 2 do norm = run:step({ x = { 1.0, 1.0 } }):get "grad_norm" end
  assert(net.w.dtype == dtype)
  return norm, net.w:read():tolist()[100], net.s:read():item()
end

for _, name in ipairs { "sgd", "momentum", "adam", "adamw", "adagrad" } do
  local optimizer = optim[name] { lr = 0.5, decay = 0.01 }
  local want = { trained(optimizer, "f32") }
  for dtype, step in pairs { bf16 = 2 ^ -7, f16 = 2 ^ -10 } do
    local got = { trained(optimizer, dtype) }
    assert(math.abs(got[1] - 1044.0306) < 1e-3, got[1]) -- the root of 100 * 100^2 + 300^2; 100^2 * 100 is no f16
    for i = 2, 3 do assert(math.abs(got[i] - want[i]) < 2 * step * math.abs(want[i]), ("%s %s %g, not %g"):format(name, dtype, got[i], want[i])) end
  end
end
