-- SPDX-License-Identifier: Apache-2.0
--
-- Records a value of each kind, by two named runs and by the script, for tensorboard_reads.py, which computes them anew.
-- `last`: steps taken.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { last = 4 }
local batch = { x = orrery.tensor { { 1.0 }, { 2.0 }, { 3.0 } }, y = orrery.tensor { { 3.0 }, { 5.0 }, { 7.0 } } }

local function make(name)
  local model = nn.linear(1, 1)
  return orrery.compile(function(b)
    local loss = nn.mse(model(b.x), b.y)
    return loss, { twice = loss * 2 }
  end, { params = model, optimizer = optim.sgd { lr = 0.01 }, microbatches = 3, name = name })
end

-- f of the indices from 0.
local function filled(dims, dtype, f)
  local at = {}
  local function part(depth)
    if depth > #dims then return f(table.unpack(at)) end
    local rows = {}
    for i = 1, dims[depth] do
      at[depth] = i - 1
      rows[i] = part(depth + 1)
    end
    return rows
  end
  return orrery.tensor(part(1), dtype)
end

local G, D = make "G", make "D"
for step = 1, args.last do
  G:step(batch)
  D:step(batch)
  orrery.record("reward", step * 1.5)
  orrery.record("many", { a = step, b = -step })
  orrery.record("said", ("step %d: **größe** | 精度\n\nnext"):format(step))
  D:record("penalty", step / 8, { step = 10 * step })
  D:record("grey", filled({ 3, 5 }, "u8", function(y, x) return y * 50 + x * 3 + step end))
end
orrery.record("rough", "a\xffb")
orrery.record("rgb", filled({ 3, 4, 6 }, "f32", function(c, y, x) return (c * 24 + y * 6 + x) / 71 end))
orrery.record("rgba", filled({ 4, 2, 3 }, "u8", function(c, y, x) return c * 60 + y * 10 + x end))
orrery.record("tiles", filled({ 10, 1, 2, 3 }, "u8", function(n, _, y, x) return n * 20 + y * 3 + x end))
orrery.record("spread", filled({ 500 }, "f32", function(i) return math.sin(i) * i end), { as = "histogram" })
orrery.record("constant", filled({ 7 }, "f64", function() return 2.5 end), { as = "histogram" })
orrery.record("whole", filled({ 4, 6 }, "i32", function(i, j) return i * j end), { as = "histogram" })
G:eval(batch)
