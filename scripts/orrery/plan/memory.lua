-- SPDX-License-Identifier: Apache-2.0
--
-- The text about the memory of a kind of ranks.
local words = require "orrery.plan.words"
local size = words.size

local M = {}

local function each_line(lines)
  return function(name, bytes, note)
    lines[#lines + 1] = ("    %-18s %14d  %10s  %s\n"):format(name, bytes, size(bytes), note or "")
  end
end

function M.text(kind)
  local lines = { ("  memory  %14d bytes  %10s\n"):format(kind.memory_bytes, size(kind.memory_bytes)) }
  local line = each_line(lines)
  for name, bytes in pairs(kind.memory) do
    if name ~= "buckets" and name ~= "arena" then line(name, bytes) end
  end
  line("buckets", kind.memory.buckets, "registered with the comm backend")
  if kind.outside_bytes > 0 then line("outside", kind.outside_bytes, "of driver and libraries, beside the plan") end
  line("arena peak", kind.memory.arena, "of it, when it is fullest:")
  for name, bytes in pairs(kind.arena) do line("  " .. name, bytes) end
  for _, away in ipairs(kind.away) do
    line(away.tier == "disk" and "on disk" or "in host memory", away.bytes, "beside the rank's memory, of it:")
    for name, bytes in pairs(away.parts) do line("  " .. name, bytes) end
  end
  return table.concat(lines)
end

-- Bytes for each parameter, by role.
function M.ledger(ledger)
  if ledger.parameters == 0 then return "" end
  local terms, sum = {}, 0
  for i, role in ipairs(ledger.roles) do
    local each = role.bytes / ledger.parameters
    terms[i] = ("%.2f %s"):format(each, role.role)
    sum = sum + each
  end
  return ("  ledger  %s = %.2f bytes for each of %d parameters\n"):format(table.concat(terms, " + "), sum,
    ledger.parameters)
end

-- What a kind of ranks holds at its peak, most first.
function M.parts(kind)
  local sums, parts = { outside = kind.outside_bytes }, {}
  for name, bytes in pairs(kind.arena) do sums[name] = (sums[name] or 0) + bytes end
  for name, bytes in pairs(kind.memory) do
    if name ~= "arena" then sums[name] = (sums[name] or 0) + bytes end
  end
  for name, bytes in pairs(sums) do
    if bytes > 0 then parts[#parts + 1] = { name = name, bytes = bytes } end
  end
  table.sort(parts, function(a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    return a.name > b.name
  end)
  for i, part in ipairs(parts) do parts[i] = (" %s %s"):format(part.name, size(part.bytes)) end
  return table.concat(parts, ",")
end

return M
