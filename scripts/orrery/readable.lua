-- SPDX-License-Identifier: Apache-2.0
--
-- Dataset:readable, without the samples that cannot be read. Each rank reads a share of them, and all agree on what is
-- left out. A file may keep this for later starts: a line with the number of samples, then one for each that is left out.
local _, orrery = ...
local engine = orrery.engine
local define = require "orrery.define"
local whole_file = require "orrery.whole_file"

local head = "samples that can be read, of "

local function read_share(data)
  local failed, world = {}, orrery.world
  for position = world.rank + 1, #data, world.size do
    local ok, why = pcall(engine.sample, data, position)
    if not ok then failed[#failed + 1] = { position, (tostring(why):gsub("^[^:]*:%d+: ", ""):gsub("%s+", " ")) } end
  end
  return failed
end

-- Of all ranks, in the order of positions.
local function found(data)
  local all = {}
  for _, share in ipairs(orrery.world:allgather_object(read_share(data))) do
    table.move(share, 1, #share, #all + 1, all)
  end
  table.sort(all, function(a, b) return a[1] < b[1] end)
  return all
end

-- What an earlier start has written, on all ranks; nil if there was none.
local function kept(data, path)
  local text
  if orrery.world.rank == 0 then
    local file = io.open(path, "rb")
    text = file and file:read "a"
    if file then file:close() end
  end
  text = orrery.world:broadcast_object(text)
  if not text then return nil end
  local samples, list = text:match("^" .. head .. "(%d+)\n"), {}
  if tonumber(samples) ~= #data then
    local what = samples and samples .. " samples" or "something else"
    orrery.fail(("readable: %s is of %s, and the dataset has %d samples; remove the file to look at all again"):format(
      path, what, #data))
  end
  for position, why in text:gmatch "\n(%d+) ([^\n]*)" do list[#list + 1] = { math.tointeger(position), why } end
  return list
end

local function keep(data, path, failed)
  whole_file.write(path, function(write)
    write(head, #data, "\n")
    for _, each in ipairs(failed) do write(each[1], " ", each[2], "\n") end
  end)
end

-- The positions that are not among the failed ones.
local function others(data, failed)
  local positions, at = {}, 1
  for position = 1, #data do
    if failed[at] and failed[at][1] == position then
      at = at + 1
    else
      positions[#positions + 1] = position
    end
  end
  return positions
end

define([[Dataset:readable(options?) -> Dataset, integer; The samples that can be read, and how many are left out, which a
    warning tells. All samples are read once, a share by each rank; all ranks call it.
    @option file: any = false; a path that keeps what was found: later starts leave out the same samples and read none]],
  function(data, o)
    if engine.plan_only() then return data, 0 end
    local path = o.file or nil
    if path and type(path) ~= "string" then orrery.fail "readable: file is a path" end
    local failed = path and kept(data, path)
    if not failed then
      failed = found(data)
      if path then keep(data, path, failed) end
    end
    if #failed == 0 then return data, 0 end
    local first = failed[1][2]
    if #failed == #data then orrery.fail(("readable: none of %d samples can be read: %s"):format(#data, first)) end
    orrery.log("warning: %d of %d samples are left out, as they cannot be read, such as sample %d: %s", #failed, #data,
      failed[1][1], first)
    return data:take(others(data, failed)), #failed
  end)
