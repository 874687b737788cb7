-- SPDX-License-Identifier: Apache-2.0
-- Trains for as many steps as it is told, and says once that it is under way: after some steps, or, with wait=, so many
-- seconds before the first. With last= it then stays so many seconds where it is; at half time it makes the file halfway=.
local b = require "lib"
local args = b.orrery.args { steps = 10, load = "", save = "", series = "", wait = 0.0, last = 0.0, halfway = "" }
local run = b.orrery.compile(function(batch)
  return b.nn.cross_entropy(b.model(batch.x), batch.y)
end, { params = b.model, optimizer = b.optim.sgd { lr = 0.001 }, microbatches = 4 })
if args.load ~= "" then run:load(args.load) end
if args.series ~= "" then run:checkpoints { dir = args.series, every = 1000 } end
if args.wait > 0 then
  local start = b.orrery.time()
  b.orrery.log("under way")
  while b.orrery.time() < start + args.wait do end
end
while run.steps < args.steps do
  run:step { x = b.x, y = b.y }
  if run.steps == 5 and args.save ~= "" then run:save(args.save) end
  if run.steps == 6 and args.wait == 0 then
    b.orrery.log("under way")
    local start = b.orrery.time()
    while b.orrery.time() < start + args.last / 2 do end
    if args.halfway ~= "" then io.open(args.halfway, "w"):close() end
    while b.orrery.time() < start + args.last do end
  end
end
b.orrery.log("digest %s", b.orrery.digest(b.model))
