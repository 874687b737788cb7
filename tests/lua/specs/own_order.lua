-- SPDX-License-Identifier: Apache-2.0
--
-- Batches of samples that a function of the script lists.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local values = {}
for i = 1, 10 do values[i] = i end
local data = orrery.data.arrays { x = orrery.tensor(values, "f32") }

-- What the batches hold, one text for each, by step; and the epochs.
local function pass(options, of)
  local batches, epochs = {}, {}
  for step, batch, epoch in (of or data):batches(options) do
    local list = batch.x:read():tolist()
    for i, value in ipairs(list) do list[i] = ("%d"):format(value) end
    batches[step], epochs[step] = table.concat(list, " "), epoch
  end
  return batches, epochs
end
local function same(found, wanted)
  for step, text in pairs(wanted) do assert(found[step] == text, ("step %d: '%s', expected '%s'"):format(step, found[step], text)) end
end

-- Some left out, some twice, another order in every epoch.
local function listed(epoch) return { epoch, 10, 10, 3, 2 * epoch } end
local found, epochs = pass { size = 2, epochs = 2, order = listed }
same(found, { "1 10", "10 3", "2", "2 10", "10 3", "4" })
same(epochs, { 1, 1, 1, 2, 2, 2 })
assert(#found == 6)
same(pass { size = 2, epochs = 2, last = "drop", order = listed }, { "1 10", "10 3", "2 10", "10 3" })
same((pass { size = 3, steps = 3, order = listed }), { "1 10 10", "3 2 2", "10 10 3" })
same((pass { size = 2, epochs = 2, from = 5, order = listed }), { [5] = "10 3", [6] = "4" })
same((pass({ size = 2, epochs = 1, order = function() return { 1, 5 } end }, data:shard(1, 2))), { "2 10" })

-- Random numbers are those of seed and epoch, whatever was drawn before.
local function drawn(_, random)
  local list = {}
  for i = 1, 10 do list[i] = random(10) end
  list[11] = 1 + math.floor(random() * 10)
  list[12] = random(3, 5)
  return list
end
local all = pass { size = 12, epochs = 3, seed = 7, order = drawn }
math.random()
same((pass { size = 12, epochs = 3, seed = 7, from = 3, order = drawn }), { [3] = all[3] })
assert(all[1] ~= all[2] and all[2] ~= all[3] and (pass { size = 12, epochs = 1, seed = 8, order = drawn })[1] ~= all[1])

-- Of many draws as many as their chances say: means within four deviations.
local counts, ranges, sum = {}, { [-1] = 0, [0] = 0, [1] = 0 }, 0
pass { size = 1, steps = 1, order = function(_, random)
  for _ = 1, 6000 do
    local face = random(6)
    counts[face] = (counts[face] or 0) + 1
    local side = random(-1, 1)
    ranges[side] = ranges[side] + 1
    local x = random()
    assert(x >= 0 and x < 1)
    sum = sum + x
  end
  return { 1 }
end }
assert(#counts == 6)
for _, count in ipairs(counts) do assert(math.abs(count - 1000) < 4 * math.sqrt(6000 * 5 / 36), count) end
for side = -1, 1 do assert(math.abs(ranges[side] - 2000) < 4 * math.sqrt(6000 * 2 / 9), ranges[side]) end
assert(math.abs(sum / 6000 - 0.5) < 4 * math.sqrt(1 / 12 / 6000), sum / 6000)

-- A training that stops and goes on has the bits of one that does not; run:fit takes the order, too.
local function make()
  local net = nn.linear(1, 1, { bias = false })
  net.weight:write { { 3.0 } }
  return net, orrery.compile(function(b) return nn.mse(net(b.x:view(-1, 1)), b.x:view(-1, 1)) end,
    { params = net, optimizer = optim.sgd { lr = 0.001 } })
end
local function training(steps, path, save)
  local net, run = make()
  if path and not save then run:load(path) end
  for _, batch in data:batches { size = 4, steps = steps, from = run.steps + 1, order = drawn } do run:step(batch) end
  if save then run:save(path) end
  return orrery.digest(net)
end
local path = os.tmpname()
os.remove(path)
local whole = training(9)
training(4, path, true)
assert(training(9, path) == whole)
os.execute(("rm -rf '%s'"):format(path))
local net, run = make()
run:fit { data = data, size = 4, steps = 9, order = drawn, log = false }
assert(orrery.digest(net) == whole)

local function refused(part, options)
  local ok, why = pcall(function() for _ in data:batches(options) do end end)
  assert(not ok and why:find(part, 1, true), why)
end
refused("own_order.lua", { size = 2, epochs = 1, order = function() error "no list" end })
refused("no list", { size = 2, epochs = 1, order = function() error "no list" end })
refused("order returned nil, expected a list of samples", { size = 2, epochs = 1, order = function() end })
refused("order has sample 11 in epoch 1: samples are 1 to 10", { size = 2, epochs = 1, order = function() return { 3, 11 } end })
refused("order has sample 0 in epoch 1: samples are 1 to 10", { size = 2, epochs = 1, order = function() return { 0 } end })
refused("order: sample", { size = 2, epochs = 1, order = function() return { 1.5 } end })
refused("order has no sample in epoch 1", { size = 2, epochs = 1, order = function() return {} end })
refused("order has 2 samples in epoch 2 and 1 in another", {
  size = 1, epochs = 2, order = function(epoch) return epoch == 1 and { 1 } or { 1, 2 } end,
})
refused("order and shuffle both say the order", { size = 2, epochs = 1, shuffle = false, order = listed })
refused("order is a table, expected a function", { size = 2, epochs = 1, order = { 1, 2 } })
refused("there is no integer from 1 to 0", { size = 2, epochs = 1, order = function(_, random) return { random(0) } end })
refused("number expected, got string", { size = 2, epochs = 1, order = function(_, random) return { random "a" } end })

-- Samples as often as their weights say, and the order of docs/how-to.md: classes with as many samples each.
local page = assert(io.open "../../../docs/how-to.md"):read "a"
local piece = page:match "(local labels = .-)local run = orrery"
local labels = { 0, 1, 2, 0, 1, 2, 0, 1, 2, 2 }
local classes_in_turn = assert(load(piece:gsub("local labels = %b{}", "local labels = ...", 1)
  .. "\nreturn classes_in_turn", "=how-to"))(labels)
local drawn_with = {}
local weighted = data:weighted({ 0, 1, 2, 5, 0, 0, 0, 0, 0, 2 }, { samples = 8000 })
for _, batch in data:batches { size = 8000, epochs = 1, order = weighted } do
  for _, value in ipairs(batch.x:read():tolist()) do drawn_with[value] = (drawn_with[value] or 0) + 1 end
end
for value, share in pairs { [2] = 0.1, [3] = 0.2, [4] = 0.5, [10] = 0.2 } do
  assert(math.abs(drawn_with[value] - 8000 * share) < 4 * math.sqrt(8000 * share * (1 - share)), drawn_with[value])
  drawn_with[value] = nil
end
assert(next(drawn_with) == nil)
local pairs_of = {}
for step, batch in data:batches { size = 6, epochs = 2, order = classes_in_turn(2, 3, 5) } do
  local of, seen, names = {}, {}, 0
  for _, value in ipairs(batch.x:read():tolist()) do
    local label = labels[value]
    assert(not seen[value], "no sample twice")
    names = of[label] and names or names + 1
    seen[value], of[label] = true, (of[label] or 0) + 1
  end
  assert(names == 2)
  for _, count in pairs(of) do assert(count == 3) end
  pairs_of[step] = table.concat(batch.x:read():tolist(), " ")
end
assert(#pairs_of == 10 and pairs_of[1] ~= pairs_of[2] and pairs_of[1] ~= pairs_of[6])
