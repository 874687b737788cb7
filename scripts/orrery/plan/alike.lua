-- SPDX-License-Identifier: Apache-2.0
--
-- Ranks and remarks that a reader need not tell apart: kinds of ranks that need nearly as much memory, equal texts.
local M = {}

local near = 0.01 -- kinds whose memory differs by at most this share are told of together

-- The bytes of a rank's memory that a kind needs, with what driver and libraries are known to take.
function M.bytes(kind) return kind.memory_bytes + kind.outside_bytes end

-- Runs { first, last } of the ranks of several kinds, sorted and joined.
local function runs_of(kinds)
  local all, joined = {}, {}
  for _, kind in ipairs(kinds) do table.move(kind.ranks, 1, #kind.ranks, #all + 1, all) end
  table.sort(all, function(a, b) return a[1] < b[1] end)
  for _, run in ipairs(all) do
    local last = joined[#joined]
    if last and run[1] == last[2] + 1 then
      last[2] = run[2]
    else
      joined[#joined + 1] = { run[1], run[2] }
    end
  end
  return joined
end

-- Kinds in groups, that with the most memory first: { ranks, bytes, least, kind }, where `kind` is that which needs
-- most of the group, `bytes`, and `least` what the one that needs least does.
function M.groups(kinds)
  local sorted, groups, members = table.move(kinds, 1, #kinds, 1, {}), {}, {}
  table.sort(sorted, function(a, b)
    if M.bytes(a) ~= M.bytes(b) then return M.bytes(a) > M.bytes(b) end
    return a.ranks[1][1] < b.ranks[1][1]
  end)
  for _, kind in ipairs(sorted) do
    local group = groups[#groups]
    if not group or M.bytes(kind) < (1 - near) * group.bytes then
      group = { kind = kind, bytes = M.bytes(kind) }
      groups[#groups + 1], members[#members + 1] = group, {}
    end
    group.least = M.bytes(kind)
    table.insert(members[#members], kind)
  end
  for i, group in ipairs(groups) do group.ranks = runs_of(members[i]) end
  return groups
end

-- Texts in their order, each once: { text, times }.
function M.counted(texts)
  local found, at = {}, {}
  for _, text in ipairs(texts) do
    if not at[text] then
      found[#found + 1] = { text = text, times = 0 }
      at[text] = found[#found]
    end
    at[text].times = at[text].times + 1
  end
  return found
end

return M
