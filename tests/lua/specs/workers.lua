-- SPDX-License-Identifier: Apache-2.0
--
-- Batches that several threads read: those of one.
local orrery = require "orrery"
local data = orrery.data
local files = "../../data/files/"
local images = data.images(files .. "images", { size = 6 }):augment { flip = true, crop = 5, pad = 1 }

local function read(set, options)
  local all = {}
  for step, batch in set:batches(options) do
    for name, field in pairs(batch) do all[#all + 1] = ("%d %s %s"):format(step, name, orrery.engine.bytes(field:read())) end
  end
  table.sort(all)
  return table.concat(all, "\n")
end

for _, size in ipairs { 1, 3, 7 } do
  local one = read(images, { size = size, epochs = 3, seed = 4 })
  for _, workers in ipairs { 2, 3, 16 } do
    assert(read(images, { size = size, epochs = 3, seed = 4, workers = workers }) == one, workers)
  end
end
local numbers = data.arrays { x = { 1, 2, 3, 4, 5 } }
assert(read(numbers, { size = 2, epochs = 1, workers = 2 }) == read(numbers, { size = 2, epochs = 1 }))

-- The error is that of the first of the batch's samples that has one, whichever thread comes first.
local folder = os.tmpname()
os.remove(folder)
os.execute(("mkdir -p '%s/a' && cp '%simages/'*/*.png '%s/a'"):format(folder, files, folder))
for _, name in ipairs { "0", "z" } do
  local file = assert(io.open(("%s/a/%s.png"):format(folder, name), "w"))
  file:write "no image"
  file:close()
end
local damaged = data.images(folder, { size = 6 })
for _ = 1, 20 do
  local ok, why = pcall(read, damaged, { size = #damaged, epochs = 1, shuffle = false, workers = 4 })
  assert(not ok and why:find("/a/0.png", 1, true), why)
end
os.execute(("rm -rf '%s'"):format(folder))

local function refused(why, options)
  local ok, message = pcall(images.batches, images, options)
  assert(not ok and message:find(why, 1, true), message)
end
refused("workers is 0: 1 to 256 threads", { size = 2, workers = 0 })
refused("workers is 257: 1 to 256 threads", { size = 2, workers = 257 })
