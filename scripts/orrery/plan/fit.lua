-- SPDX-License-Identifier: Apache-2.0
--
-- Looks for the largest microbatch whose plan fits into a rank's memory.
local words = require "orrery.plan.words"
local size = words.size

local Fit = {}
Fit.__index = Fit

-- `facts`: samples, one_by_one and the counts of microbatches that are possible, ascending; peak(count): the bytes of
-- the rank that needs most, and which it is, or why the engine refuses the count.
local function new(facts, limit, peak)
  return setmetatable({ facts = facts, limit = limit, of = peak, peaks = {} }, Fit)
end

function Fit:peak(i)
  self.peaks[i] = self.peaks[i] or self.of(self.facts.counts[i])
  return self.peaks[i]
end

function Fit:fits(i) return self:peak(i).bytes <= self.limit end

-- Of the counts that were tried, that with the smallest peak.
function Fit:least()
  local least
  for i in pairs(self.peaks) do
    if not least or self.peaks[i].bytes < self.peaks[least].bytes then least = i end
  end
  return least
end

-- The first of the counts 1, 2, 4, 8, ... in the list that fits, or the last count.
function Fit:stride()
  local at, step, last = 1, 1, #self.facts.counts
  while at < last and not self:fits(at) do at, step = math.min(at + step, last), 2 * step end
  return at
end

-- Memory need not fall steadily: activations shrink with the microbatch, but more tree nodes wait. So the counts around
-- the best one that was tried may fit.
function Fit:valley()
  local least = self:least()
  local first, last = least, least
  while first > 1 and not self.peaks[first - 1] do first = first - 1 end
  while last < #self.facts.counts and not self.peaks[last + 1] do last = last + 1 end
  for i = first, last do
    if self:fits(i) then return i end
  end
end

-- Whether the count was tried and takes too much. One that the engine refuses says nothing about its neighbours.
function Fit:is_too_large(i) return self.peaks[i] and not self.peaks[i].refused and not self:fits(i) end

-- The index of the fewest microbatches that fit; nil if none do.
function Fit:search()
  local best = self:stride()
  if not self:fits(best) then best = self:valley() end
  if not best then return nil end
  local first, last = best - 1, best
  while first > 0 and not self:is_too_large(first) do first = first - 1 end
  while first > 0 and last - first > 1 do
    local middle = (first + last) // 2
    local at = middle
    while at < last and self:peak(at).refused do at = at + 1 end
    if at < last and self:is_too_large(at) then
      first = at
    else
      best, last = at < last and at or best, middle
    end
  end
  return best
end

function Fit:samples(i)
  local count = self.facts.counts[i]
  return ("%s a microbatch (microbatches = %d)"):format(words.count(-(-self.facts.samples // count), "sample"), count)
end

function Fit:nothing()
  local least = self:least()
  local peak = self.peaks[least]
  if peak.refused then return peak.refused end
  return ("--fit %s: nothing fits; %s take %s on rank %d, %s too much: %s"):format(size(self.limit),
    self:samples(least), size(peak.bytes), peak.rank, size(peak.bytes - self.limit), self.facts.one_by_one
      and "add ranks, shard states, or compute activations again in backward"
      or "run microbatches one after another, add ranks, or shard states")
end

-- The number of microbatches that fits, and a text for the user; nil and why, if nothing fits.
return function(facts, limit, peak)
  local fit = new(facts, limit, peak)
  local i = fit:search()
  if not i then return nil, fit:nothing() end
  local text = ("fit: %s hold %s: %s on rank %d\n"):format(size(limit), fit:samples(i), size(fit:peak(i).bytes),
    fit:peak(i).rank)
  if i > 1 then text = ("%s  %s take %s\n"):format(text, fit:samples(i - 1), size(fit:peak(i - 1).bytes)) end
  return facts.counts[i], text
end
