-- SPDX-License-Identifier: Apache-2.0
--
-- Which layouts a search plans, and in which order. What seems best is planned first; before that, a search that may end
-- early probes the microbatch of the layout, and estimates anew all layouts that have the same. A layout is left out for
-- good only where a bound proves that it cannot fit or cannot be among the ten.
local _, orrery = ...
local layouts, bounds = require "orrery.search.layouts", require "orrery.search.bounds"
local estimate, learning = require "orrery.search.estimate", require "orrery.search.learn"
local words = require "orrery.plan.words"

local most_waiting = 40000 -- layouts that a search which may end early keeps in mind; the others seem worse
local front_size = 400 -- of them those that are compared anew after each plan

local function by_time(a, b)
  if a.plan.seconds ~= b.plan.seconds then return a.plan.seconds < b.plan.seconds end
  return a.layout.number < b.layout.number
end

-- Says on stderr how far a search is, if it takes longer than some seconds.
local function progress()
  local begin, said = orrery.time(), orrery.time()
  return function(planned, waiting, best, o)
    local now = orrery.time()
    if now - said < 3 then return end
    said = now
    if o.tries > 0 then waiting = math.min(waiting, o.tries - planned) end
    local left = (now - begin) / math.max(planned, 1) * waiting
    if o.seconds > 0 then left = math.max(math.min(left, begin + o.seconds - now), 0) end
    io.stderr:write(("search: %d planned, best %s, about %.0f s left\n"):format(planned,
      best and words.duration(best.plan.seconds) or "none", left))
  end
end

local Hunt = {}
Hunt.__index = Hunt

-- What seems to be the time of a layout, longer if it does not seem to fit or to be refused.
function Hunt:score(l)
  local learnt = (l.probe or l.akin) and self.probed or self.guessed
  local bytes = learnt.memory:apply(l, l.bytes)
  local over = bytes / self.found.room
  local factor = over > 1.08 and 100 * over or over > 1 and 1.05 or 1
  if l.probe == false then factor = 100 * factor end
  local planned = self.planned[l.place] or 0
  return learnt.time:apply(l, l.seconds) * self.refusals:penalty(l) * factor * 1.02 ^ planned
end

-- Estimates a layout from the probe with its key, or else from one of its family.
function Hunt:estimate(l)
  if l.probe ~= nil then return end
  local samples = self.facts.samples
  l.probe = self.probes[estimate.key(l, samples)]
  local known = l.probe == nil and self.families[estimate.family(l)]
  if l.probe then
    l.seconds, l.bytes = estimate.refined(l, self.facts, l.probe, 1)
  elseif known then
    l.seconds, l.bytes = estimate.refined(l, self.facts, known.probe, estimate.rows(l, samples) / known.rows)
    l.akin = true
  end
end

local function sorted_front(hunt)
  for _, l in ipairs(hunt.waiting) do
    hunt:estimate(l)
    l.score = hunt:score(l)
  end
  table.sort(hunt.waiting, function(a, b)
    if a.score ~= b.score then return a.score > b.score end
    return a.number > b.number
  end)
end

-- Keeps those that seem best, where there are too many.
function Hunt:shorten()
  sorted_front(self)
  local more = #self.waiting - most_waiting // 2
  table.move(self.waiting, more + 1, #self.waiting, 1)
  for i = #self.waiting, #self.waiting - more + 1, -1 do self.waiting[i] = nil end
  self.found.left = self.found.left + more
end

-- Notes the layouts that may fit, with guesses.
function Hunt:collect()
  local facts, found = self.facts, self.found
  layouts.each(facts, self.template, self.o.microbatches, function(l)
    found.all = found.all + 1
    local least = bounds.bytes(l, facts, self.template)
    if least > found.room then
      found.cannot_fit = found.cannot_fit + 1
      return
    end
    l.bound = bounds.seconds(l, facts)
    l.place = ("%d %d %s"):format(l.pipe, l.data, estimate.family(l))
    l.seconds, l.bytes = estimate.guess(l, facts, least)
    self.waiting[#self.waiting + 1] = l
    if self.early and #self.waiting > most_waiting then self:shorten() end
  end)
end

-- Removes and returns the layout that seems best: of the front, which is chosen anew after some plans.
function Hunt:take()
  if self.taken % 8 == 0 then sorted_front(self) end
  self.taken = self.taken + 1
  local waiting, least, at = self.waiting, math.huge, #self.waiting
  for i = #waiting, math.max(1, #waiting - front_size), -1 do
    self:estimate(waiting[i])
    local score = self:score(waiting[i])
    if score < least then least, at = score, i end
  end
  return table.remove(waiting, at)
end

-- Probes the microbatch of a layout. The guesses learn from it what they can.
function Hunt:probe(l)
  local samples = self.facts.samples
  local found = self.asked.probe(estimate.probed(l, samples)) or false
  self.probes[estimate.key(l, samples)] = found
  if found then self.families[estimate.family(l)] = { probe = found, rows = estimate.rows(l, samples) } end
  self.found.probed = self.found.probed + 1
  local seconds, bytes, guessed = l.seconds, l.bytes, not l.akin
  self:estimate(l)
  if found and guessed then
    self.guessed.time:learn(l, seconds, self.probed.time:apply(l, l.seconds))
    self.guessed.memory:learn(l, bytes, self.probed.memory:apply(l, l.bytes))
  end
  if not self.seeding then table.insert(self.waiting, l) end
end

-- Probes one layout of each family whose exchanges stay within a host, with the fewest samples of a microbatch, so that
-- what is guessed of whole families is not in the way. It takes a quarter of the time at most.
function Hunt:seed(begin)
  local first, best = {}, {}
  for _, l in ipairs(self.waiting) do
    local family = estimate.family(l)
    if l.context * l.expert * l.tensor <= self.facts.ranks_per_host then
      local known = best[family]
      if not known then first[#first + 1] = family end
      if not known or l.seconds * estimate.rows(l, self.facts.samples)
          < known.seconds * estimate.rows(known, self.facts.samples) then
        best[family] = l
      end
    end
  end
  table.sort(first, function(a, b)
    local x, y = best[a], best[b]
    if x.seconds ~= y.seconds then return x.seconds < y.seconds end
    return a < b
  end)
  self.seeding = true
  for i, family in ipairs(first) do
    if self.o.seconds > 0 and orrery.time() - begin > self.o.seconds / 4 or self.o.tries > 0 and 4 * i > self.o.tries then
      break
    end
    self:probe(best[family])
  end
  self.seeding = false
end

function Hunt:note_refusal(why)
  local found = self.found
  found.refused = found.refused + 1
  why = why:match "[^\n]*":gsub("^[%w_/.-]+:%d+: ", ""):gsub(" %b()", ""):gsub("%d+", "N")
  found.reasons[why] = (found.reasons[why] or 0) + 1
end

-- Plans a layout, or its first rank if that does not fit, and lets the estimates learn from the plan.
function Hunt:plan(l)
  local found = self.found
  local plan, why = self.asked.plan(l, self.early and "sketch" or "layout", found.room)
  self.refusals:note(l, not plan)
  if not plan then return self:note_refusal(why) end
  found.planned = found.planned + 1
  local learnt = (l.probe or l.akin) and self.probed or self.guessed
  learnt.memory:learn(l, l.bytes, plan.bytes)
  if plan.seconds then
    self.planned[l.place] = (self.planned[l.place] or 0) + 1
    learnt.time:learn(l, l.seconds, plan.seconds)
  end
  self.twins:note(l, plan)
  if plan.bytes > found.room then
    found.too_large = found.too_large + 1
  else
    table.insert(found.best, { layout = l, plan = plan })
    table.sort(found.best, by_time)
  end
end

function Hunt:step()
  local l, tenth = self:take(), self.found.best[10]
  if tenth and l.bound > tenth.plan.seconds then
    self.found.cannot_win = self.found.cannot_win + 1
  elseif self.early and l.probe == nil then
    self:probe(l)
  elseif self.early and self.twins:is_one(l) then
    self.found.twins = self.found.twins + 1
  else
    self:plan(l)
  end
end

-- Plans the first exactly, as `orrery plan` does, until the first is one that was.
function Hunt:settle()
  local best = self.found.best
  while self.early and best[1] and not best[1].exact do
    local one = best[1]
    one.plan, one.exact = self.asked.plan(one.layout, "layout"), true
    if one.plan.bytes > self.found.room then
      table.remove(best, 1)
      self.found.too_large = self.found.too_large + 1
    end
    table.sort(best, by_time)
  end
end

function Hunt:may_go_on(begin)
  local o, found = self.o, self.found
  if o.tries > 0 and found.planned >= o.tries then return false end
  return o.seconds == 0 or orrery.time() - begin < o.seconds or #found.best == 0
end

-- What was found: the best layouts with their plans, and how many layouts there were of each fate. `asked`: plan(layout,
-- what) and probe(layout).
return function(facts, template, o, asked)
  local function pair(time) return { time = learning.correction(time), memory = learning.correction(1) } end
  local hunt = setmetatable({
    facts = facts, template = template, o = o, asked = asked, early = o.seconds > 0 or o.tries > 0,
    waiting = {}, taken = 0, probes = {}, families = {}, planned = {}, guessed = pair(1), probed = pair(0.4),
    refusals = learning.refusals(), twins = learning.twins(),
    found = {
      all = 0, ranks = facts.ranks, best = {}, reasons = {}, room = o.room or math.huge, planned = 0, probed = 0,
      refused = 0, cannot_fit = 0, too_large = 0, cannot_win = 0, twins = 0, left = 0,
      error = facts.figures.order_error or facts.figures.time_error,
    },
  }, Hunt)
  local say, begin = progress(), orrery.time()
  hunt:collect()
  if hunt.early then hunt:seed(begin) end
  while #hunt.waiting > 0 and hunt:may_go_on(begin) do
    hunt:step()
    say(hunt.found.planned, #hunt.waiting, hunt.found.best[1], o)
  end
  hunt.found.left = hunt.found.left + #hunt.waiting
  hunt:settle()
  return hunt.found
end
