-- SPDX-License-Identifier: Apache-2.0
--
-- Stacks that cannot be: `case` picks one.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { case = "", microbatches = 4 }
local kept
local function own(definition)
  definition.name, definition.class = "own", definition.class or "exact"
  return { strategy.define(definition) { wide = args.microbatches } }
end
local function dealing(entry)
  entry.script.provides = "shares of the batch"
  return entry
end
local stacks = {
  own_class = function() return own { class = "exactly", options = { wide = 1 } } end,
  own_field = function() return own { transfrom = function() end } end,
  own_option = function() return own { options = { wyde = 1 } } end,
  own_type = function() return own { options = { wide = "all" } } end,
  own_axis = function()
    return own { options = { wide = 1 }, transform = function(draft)
      for _, field in ipairs(draft:values "batch") do draft:place(field, "nowhere", 1) end
    end }
  end,
  own_role = function()
    return own { options = { wide = 1 }, transform = function(draft) draft:values "parameters" end }
  end,
  own_kept = function()
    return own { options = { wide = 1 }, transform_forward = function(draft) kept = draft end,
      transform = function() kept:axis "data" end }
  end,
  own_stages = function()
    return own { options = { wide = 1 }, transform = function(draft)
      draft:axis "pipe"
      draft:stage("pipe", { 0, 1 })
    end }
  end,
  unmatched = function() return { strategy.pipeline { stages = "a,b;c,d,nosuch" } } end,
  left_out = function() return { strategy.pipeline { stages = "a,b;c" } } end,
  twice = function() return { strategy.pipeline { stages = "a,b;b,c,d" } } end,
  order = function() return { strategy.pipeline { stages = "c,d;a,b" } } end,
  plain = function() return { strategy.pipeline {} } end,
  too_many = function() return { strategy.pipeline { size = 6 } } end,
  size = function() return { strategy.pipeline { size = 3 } } end,
  schedule = function() return { strategy.pipeline { schedule = "1f2b" } } end,
  chunks = function() return { strategy.pipeline { schedule = "1f1b", chunks = 2 } } end,
  both = function() return { strategy.pipeline {}, strategy.accumulate {} } end,
  no_data = function() return { strategy.zero {} } end,
  -- Such strategies of a script's may say that they deal the batch.
  exchanged = function() return { dealing(strategy.topk {}), strategy.zero {} } end,
  exchanged_groups = function() return { dealing(strategy.topk {}), strategy.zero { group = 2 } } end,
  exchanged_data = function() return { strategy.data { size = 2 }, strategy.topk {}, strategy.zero {} } end,
  apart = function() return { dealing(strategy.average {}), strategy.zero {} } end,
  apart_data = function() return { strategy.data { size = 2 }, strategy.average {}, strategy.zero {} } end,
  stage = function() return { strategy.data {}, strategy.zero { stage = 4 } } end,
  units = function() return { strategy.data {}, strategy.zero { stage = 3, units = "a,nosuch" } } end,
  ranks = function() return { strategy.place { modules = "a;b;c,d", ranks = "0,2,1,3" } } end,
  hole = function() return { strategy.place { modules = "a,b;c,d", ranks = "0,2" } } end,
  cell = function() return { strategy.pipeline { schedule = function() return { "F0", "G0" } end } } end,
  waits = function()
    return { strategy.pipeline { schedule = function(stage)
      return stage == 0 and { "F0", "B0", "F1", "B1", "F2", "B2", "F3", "B3" }
        or { "F1", "B1", "F0", "B0", "F2", "B2", "F3", "B3" }
    end } }
  end,
}
local M = nn.module("M", function(m)
  m.a, m.b, m.c, m.d = nn.linear(4, 4), nn.linear(4, 4), nn.linear(4, 4), nn.linear(4, 1)
  return function(x) return m.d(m.c(m.b(m.a(x)))) end
end)
local model = M()
if args.case == "plain" then
  local tensors = { a = nn.parameter { 4, 4 }, b = nn.parameter { 4, 1 } }
  model = setmetatable(tensors, { __call = function(m, x) return x:matmul(m.a):matmul(m.b) end })
end
local run = orrery.compile(function(b) return nn.mse(model(b.x), b.y) end, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = args.microbatches,
  strategy = stacks[args.case](),
})
local x, y = {}, {}
for i = 1, 4 do x[i], y[i] = { i / 4, 0.1, 0.2, 0.3 }, { i / 4 } end
run:step { x = orrery.tensor(x), y = orrery.tensor(y) }
