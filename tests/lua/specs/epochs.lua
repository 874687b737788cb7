-- SPDX-License-Identifier: Apache-2.0
--
-- A pass over a dataset has each sample once, whatever the size of a batch.
local orrery = require "orrery"
local values = {}
for i = 1, 10 do values[i] = i end
local data = orrery.data.arrays { x = orrery.tensor(values, "f32") }

-- What the batches hold, by epoch, and their sizes by step.
local function pass(options)
  local seen, sizes, epochs = {}, {}, {}
  for step, batch, epoch in data:batches(options) do
    epochs[step], sizes[step] = epoch, batch.x.shape[1]
    seen[epoch] = seen[epoch] or {}
    for _, value in ipairs(batch.x:read():tolist()) do table.insert(seen[epoch], value) end
  end
  return seen, sizes, epochs
end
local function same(list, wanted)
  assert(#list == #wanted, ("%d for %d"):format(#list, #wanted))
  for i, value in ipairs(wanted) do assert(list[i] == value, ("%g for %g at %d"):format(list[i], value, i)) end
end

local seen, sizes, epochs = pass { size = 4, epochs = 2, shuffle = false }
same(sizes, { 4, 4, 2, 4, 4, 2 })
same(epochs, { 1, 1, 1, 2, 2, 2 })
same(seen[1], values)
same(seen[2], values)

seen, sizes = pass { size = 4, epochs = 2, last = "drop", shuffle = false }
same(sizes, { 4, 4, 4, 4 })
same(seen[2], { 1, 2, 3, 4, 5, 6, 7, 8 })

-- Shuffled, an epoch is a permutation, another one each time; going on in the middle of one has the same samples.
seen = pass { size = 4, epochs = 3, seed = 7 }
local orders = {}
for epoch = 1, 3 do
  orders[epoch] = table.concat(seen[epoch], " ")
  table.sort(seen[epoch])
  same(seen[epoch], values)
end
assert(orders[1] ~= orders[2] and orders[2] ~= orders[3], "each epoch has an order of its own")
local rest, _, of = pass { size = 4, epochs = 3, seed = 7, from = 5 }
assert(of[5] == 2 and orders[2]:sub(-#table.concat(rest[2], " ")) == table.concat(rest[2], " "))
assert(table.concat(rest[3], " ") == orders[3])

-- Without epochs a batch goes on with the next one's samples, and the epoch is that of its first.
seen, sizes, epochs = pass { size = 4, steps = 5, seed = 7 }
same(sizes, { 4, 4, 4, 4, 4 })
same(epochs, { 1, 1, 1, 2, 2 })
assert(table.concat(seen[1], " "):sub(1, #orders[1]) == orders[1], "the order of samples is that of epochs")

local function refused(part, options)
  local ok, why = pcall(data.batches, data, options)
  assert(not ok and why:find(part, 1, true), why)
end
refused("steps and epochs both say where it ends", { size = 4, steps = 3, epochs = 1 })
refused("give epochs, not steps", { size = 4, steps = 3, last = "drop" })
refused("last is 'keep'", { size = 4, epochs = 1, last = "keep" })
refused("epochs is 0", { size = 4, epochs = 0 })
refused("10 samples do not fill a batch of 11", { size = 11, epochs = 1, last = "drop" })
