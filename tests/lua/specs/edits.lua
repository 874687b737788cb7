-- SPDX-License-Identifier: Apache-2.0
-- Strategies that change the ops of a step: loss and update against closed formulas.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy

local Scale = nn.module("Scale", function(m)
  m.w = orrery.parameter({ 1 }, { init = 3 })
  return function(x) return x * m.w end
end)

-- The result and the new weight of a step on mean((w x)^2) at w = 3, x = 2: 36 and 3 - 24 by itself.
local function trained(edits)
  local model = Scale()
  local mine = strategy.define { name = "mine", class = "approx", transform = edits.transform,
    transform_forward = edits.transform_forward }
  local run = orrery.compile(function(b)
    local y = model(b.x)
    return (y * y):mean()
  end, { params = model, optimizer = optim.sgd { lr = 1 }, strategy = edits.transform and { mine {} } or nil })
  local result = run:step { x = orrery.tensor { { 2.0 } } }
  return result, model.w:read():item()
end

local function expect(edits, loss, weight)
  local result, w = trained(edits)
  assert(result:mean() == loss and w == weight, ("%g and %g, expected %g and %g"):format(result:mean(), w, loss, weight))
  return result
end

local function product_of(draft)
  for _, v in ipairs(draft:values "activation") do
    if v.region == "Scale" and v.runs == "forward" then return v end
  end
end
local function nothing() end

expect({}, 36, -21)

-- A value that is wrapped: what it is computed from stays, and the gradient passes through.
local half = { transform = nothing, transform_forward = function(draft)
  local y = product_of(draft)
  draft:beside(y, "forward")
  draft:replace(y, draft:tensor(y) * 0.5)
end }
expect(half, 9, 3 - 6)

-- An op by its kind; only the results are told otherwise.
expect({ transform = function(draft)
  local y = product_of(draft)
  assert(y.batch == "samples" and draft:maker(y).kind == "pointwise" and draft:maker(y).fn == "mul")
  local sum = draft:op("reduce", { y }, { fn = "sum", begin = 0, ["end"] = 2 })
  draft:output("sum", draft:op("total", { sum }))
end }, 36, -21)

-- Backward reads a copy, of which the program has not kept the original: the same numbers.
local again = { transform = function(draft)
  local y = product_of(draft)
  draft:replace(y, draft:copy(y, "backward", draft:inputs(y)), "backward")
end }
expect(again, 36, -21)

-- A gradient that is replaced: its sum over the batch is the new one's.
expect({ transform = function(draft)
  local gradient = draft:values "grad"[1]
  draft:replace(gradient, draft:tensor(gradient) * 0.5)
  assert(#draft:values "grad" == 1 and draft:values "grad"[1].id ~= gradient.id)
end }, 36, 3 - 12)

-- A multiple of the loss is differentiated, and gradients are divided by it.
expect({ transform = nothing, transform_forward = function(draft)
  if draft:trains() then draft:cotangent(draft:own_state("scale", { init = 8 })) end
end }, 36, -21)

-- A step in bf16: 3.01 is 3.015625 there.
local short = { transform = nothing, transform_forward = function(draft)
  local y = product_of(draft)
  for _, x in ipairs(draft:inputs(y)) do draft:reread(y, x, draft:tensor(x):cast "bf16") end
  draft:retype(y, { compute = "bf16" })
  for _, v in ipairs(draft:values "activation") do
    if v.maker ~= y.maker and v.region ~= "Scale" then
      for _, x in ipairs(draft:inputs(v)) do
        if x == y.id then return draft:reread(v, x, draft:tensor(x):cast "f32") end
      end
    end
  end
end }
local result = trained(short)
assert(result:mean() == 36)

-- The update is written when `complete` comes; with a decision it has the norm of all gradients.
local seen = {}
local done = expect({ transform = function(draft)
  draft:complete(function(step, loss, norm)
    seen[#seen + 1] = "last"
    step:output("squares", norm * 1)
    for _, v in ipairs(step:values "param") do
      local w = step:tensor(v)
      step:update(w, step:updated(w) * 2)
    end
  end, "decision")
  draft:complete(function(_, _, norm)
    seen[#seen + 1] = "first"
    assert(norm == nil)
  end)
end }, 36, -42)
assert(done:get "squares" == 24 * 24 and table.concat(seen, " ") == "first last", table.concat(seen, " "))

-- What asks something of ranks has none before differentiation: it is refused, and not forgotten.
local function refused(edits, why)
  local ok, message = pcall(trained, edits)
  assert(not ok and tostring(message):find(why, 1, true), tostring(message))
end
for name, call in pairs {
  axis = function(draft) draft:axis("other", 1) end,
  place = function(draft) draft:place(draft:values "batch"[1], "other", 1) end,
  diag = function(draft) draft:remark "forgotten" end,
  loop = function(draft) draft:loop() end,
  independent = function(draft) draft:independent "other" end,
} do
  refused({ transform = nothing, transform_forward = call }, name .. " is called in transform_forward, where the program")
end
