-- SPDX-License-Identifier: Apache-2.0
-- Trains a little and saves, or continues from what was saved.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { save = "", load = "", width = 64, microbatches = 2 }
orrery.seed(1)
local model = nn.linear(args.width, args.width)
local run = orrery.compile(function(batch) return nn.mse(model(batch.x), batch.x) end, -- compile
  { params = model, optimizer = optim.adam { lr = 0.1 }, microbatches = args.microbatches })
if args.load ~= "" then run:load(args.load) end -- load
local row = {}
for i = 1, args.width do row[i] = i / args.width end
run:step { x = orrery.tensor({ row, row }, "f32") }
if args.save ~= "" then run:save(args.save) end -- save
orrery.log("steps %d", run.steps)
