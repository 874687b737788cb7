-- SPDX-License-Identifier: Apache-2.0
--
-- Whether the ranks' memory holds a plan: a verdict for each kind of ranks.
local alike, memory, words = require "orrery.plan.alike", require "orrery.plan.memory", require "orrery.plan.words"
local size = words.size

local M = {}

local most_lines = 4

-- What a rank has, and of it what is kept back: { bytes, kept }, bytes nil if it is not known. `given`: what the
-- command line says, or 0.
function M.room(step, given)
  local figures = step.machine_says and step.machine_says.figures or {}
  local bytes = given > 0 and given or step.machine_memory_bytes
  return { bytes = bytes, kept = bytes and figures.reserved_bytes or 0 }
end

-- By how many bytes the rank that needs most is above what may be taken; nil if that is not known.
function M.too_much(step, room)
  return room.bytes and alike.groups(step.kinds)[1].bytes - (room.bytes - room.kept)
end

local function verdict(group, room)
  local text = size(group.bytes)
  if not room.bytes then return ("not known: %s on %s"):format(text, words.ranks(group.ranks)) end
  local excess = group.bytes - (room.bytes - room.kept)
  text = ("%s of %s on %s"):format(text, size(room.bytes), words.ranks(group.ranks))
  if excess <= 0 then return "yes: " .. text end
  return ("no: %s, %s too much:%s"):format(text, size(excess), memory.parts(group.kind))
end

-- What has been kept back, or how to say what a rank has. `machines`: the names of those that are known.
local function note(room, machines)
  if not room.bytes then
    return ("--memory 80GiB or --machine NAME says what a rank has; there are %s"):format(table.concat(machines, ", "))
  end
  if room.kept == 0 then return "nothing is kept back for driver, libraries and fragmentation" end
  return ("%s are kept back for driver, libraries, buffers of communication and fragmentation"):format(size(room.kept))
end

-- The lines, ranks that need most first.
function M.text(step, room, machines)
  local groups, lines = alike.groups(step.kinds), {}
  for i, group in ipairs(groups) do
    if i == most_lines and #groups > i then
      lines[i] = ("          %d more kinds of ranks need %s to %s\n"):format(#groups - i + 1,
        size(groups[#groups].least), size(group.bytes))
      break
    end
    lines[i] = (i == 1 and "  fits    " or "          ") .. verdict(group, room) .. "\n"
  end
  return table.concat(lines) .. "          " .. note(room, machines) .. "\n"
end

return M
