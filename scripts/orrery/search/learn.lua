-- SPDX-License-Identifier: Apache-2.0
--
-- What a search learns from plans about the layouts that it has not planned: by how much estimates are wrong, which
-- layouts are refused, and which options make no difference.
local M = {}

-- Learns by which factors estimates are wrong, for every choice in a layout, and for all layouts: the estimate times
-- these factors is made to approach what was planned, by a part of what is missing. A half of that is put down to all
-- layouts, so that those with other choices do not seem worse than those that were planned.
local Correction = {}
Correction.__index = Correction

function M.correction(part) return setmetatable({ part = part, all = 0, logs = {} }, Correction) end

local function choices(l)
  l.choices = l.choices or {
    "tensor" .. l.tensor, "pipe" .. l.pipe, "context" .. l.context .. tostring(l.kind), "each" .. l.each,
    "zero" .. l.zero .. tostring(l.zero_each), "recompute" .. tostring(l.recompute),
    tostring(l.schedule) .. (l.chunks or ""), "sequence" .. tostring(l.sequence), "vocab" .. tostring(l.vocab),
    "expert" .. l.expert,
  }
  return l.choices
end

function Correction:apply(l, guess)
  local sum = self.all
  for _, choice in ipairs(choices(l)) do sum = sum + (self.logs[choice] or 0) end
  return guess * math.exp(sum)
end

function Correction:learn(l, guess, planned)
  local all = choices(l)
  local half = self.part * math.log(planned / self:apply(l, guess)) / 2
  self.all = self.all + half
  for _, choice in ipairs(all) do self.logs[choice] = (self.logs[choice] or 0) + half / #all end
end

-- Learns from refusals: from how many chunks of the model on layouts were refused and none was planned, and which other
-- sizes were refused and never planned.
local Refusals = {}
Refusals.__index = Refusals

function M.refusals() return setmetatable({ least = math.huge, most = 0, refused = {}, planned = {} }, Refusals) end

local function chunks(l) return l.pipe * (l.chunks or l.schedule == "zbv" and 2 or 1) end
local function sizes(l)
  return { "tensor" .. l.tensor, "context" .. l.context .. tostring(l.kind), "each" .. l.each, "expert" .. l.expert,
    "zero" .. l.zero .. tostring(l.zero_each) }
end

function Refusals:note(l, refused)
  if not refused then
    self.most = math.max(self.most, chunks(l))
  elseif l.pipe > 1 then
    self.least = math.min(self.least, chunks(l))
  end
  for _, size in ipairs(sizes(l)) do (refused and self.refused or self.planned)[size] = true end
end

-- A factor: layouts that seem to be refused come later.
function Refusals:penalty(l)
  local factor = chunks(l) >= self.least and chunks(l) > self.most and 4 or 1
  for _, size in ipairs(sizes(l)) do
    if self.refused[size] and not self.planned[size] then factor = 1.2 * factor end
  end
  return factor
end

-- Options of which some values may make no difference, each with what a layout has of it.
local options = {
  zero = function(l) return l.zero .. tostring(l.zero_each) end,
  sequence = function(l) return tostring(l.sequence) end,
  vocab = function(l) return tostring(l.vocab) end,
  recompute = function(l) return tostring(l.recompute) end,
}

-- What a layout is beside one option.
local function rest(l, left_out)
  local words = { l.pipe, l.data, l.context, l.expert, l.tensor, l.each, tostring(l.schedule), l.chunks or 0,
    tostring(l.kind) }
  for _, name in ipairs { "zero", "sequence", "vocab", "recompute" } do
    words[#words + 1] = name ~= left_out and options[name](l) or "*"
  end
  return table.concat(words, " ")
end

-- Learns which layouts have twins: the same plan with another value of one option.
local Twins = {}
Twins.__index = Twins

function M.twins() return setmetatable({ planned = {}, alike = {} }, Twins) end

function Twins:note(l, plan)
  for name, value in pairs(options) do
    local key, mine = name .. " " .. rest(l, name), value(l)
    self.planned[key] = self.planned[key] or {}
    for other, known in pairs(self.planned[key]) do
      local same = known.seconds == plan.seconds and known.bytes == plan.bytes
      self.alike[name .. other .. mine], self.alike[name .. mine .. other] = same, same
    end
    self.planned[key][mine] = plan
  end
end

-- Whether a layout seems to be the twin of one that was planned.
function Twins:is_one(l)
  for name, value in pairs(options) do
    local mine = value(l)
    for other in pairs(self.planned[name .. " " .. rest(l, name)] or {}) do
      if self.alike[name .. other .. mine] then return true end
    end
  end
  return false
end

return M
