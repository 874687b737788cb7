-- SPDX-License-Identifier: Apache-2.0
--
-- What is known of a layout before it is planned: bounds, which hold for every plan, and estimates, which only say
-- what to plan first. `facts` are the answer to "facts" (core/plan/planner.h).
local M = {}

-- A rank holds at least this many bytes: the parameters and optimizer states are spread over so many ranks at most.
-- What is offloaded may be elsewhere, and other strategies of the stack may keep f32 values in 16 bits.
function M.bytes(l, facts, template)
  local zero = template.varied.zero
  if zero and zero.offload and zero.offload ~= "none" then return 0 end
  local cut = l.tensor * l.pipe * template.fixed
  local all = facts.parameter_bytes / (l.zero == 3 and cut * l.data or cut)
    + facts.state_bytes / (l.zero > 0 and cut * l.data or cut)
  return #template.rest > 0 and all / 2 or all
end

-- A step takes at least this long: the model's products at the highest rate, spread evenly. In a pipeline whose stages
-- run whole microbatches (1f1b), a stage also waits for the stages before it to run the first microbatch forward and
-- the last one backward. If stage s needs c(s) for a microbatch forward and backward, the step takes at least
-- c(1) + ... + c(s-1) + m c(s) for every s. The c(s) that add up to C and make the largest of these least make all
-- equal, and then it is C / (1 - (1 - 1/m)^stages).
function M.seconds(l, facts)
  local all = facts.product_flops / facts.product_rate / facts.ranks
  if l.schedule ~= "1f1b" then return all end
  local m = l.each
  return all * l.pipe / m / (1 - (1 - 1 / m) ^ l.pipe)
end

-- Beside that of 1f1b. That of zbv is smaller only where forward and both parts of backward take as long.
local bubbles = { ["1f1b"] = 1, interleaved = 1, zb1 = 0.4, zbv = 1 }

local function communication(l, facts)
  local per_host = facts.ranks_per_host
  local function link(span) return span <= per_host and facts.inside or facts.between end
  local sums = 2 * facts.parameter_bytes / (l.tensor * l.pipe) * (l.data - 1) / l.data
  if l.zero == 3 then sums = sums * (1 + l.each) end
  local cut = facts.product_bytes / (l.data * l.context * l.pipe) * (l.recompute and 1.3 or 1)
  local tensor, context = cut * (l.tensor - 1) / l.tensor, cut * (l.context - 1) / l.context
  return 0.5 * sums / link(l.data * l.context * l.tensor) + tensor / link(l.tensor)
    + context / link(l.context * l.tensor)
end

-- Seconds of a step, roughly.
function M.guess_seconds(l, facts)
  local compute = 1.3 * facts.product_flops * (l.recompute and 4 / 3 or 1) / facts.product_rate / facts.ranks
  local bubble = l.pipe > 1 and (l.pipe - 1) / l.each / (l.chunks or 1) * (bubbles[l.schedule] or 1) or 0
  return compute * (1 + bubble) + communication(l, facts)
end

-- Bytes of a rank, roughly.
function M.guess_bytes(l, facts, template)
  local cut = l.tensor * l.pipe
  local gradients = facts.parameter_bytes / (l.zero > 1 and cut * l.data or cut)
  local alive = l.pipe > 1 and math.min(l.pipe, l.each) or 1
  local activations = 3 * facts.product_bytes / (l.data * l.each * cut * l.context) * alive
  return M.bytes(l, facts, template) + gradients + activations * (l.recompute and 0.15 or 1)
end

-- Learns by which factors guesses are wrong, for every choice in a layout, and for all layouts: the guess times these
-- factors is made to approach what was planned. A half of what is missing is put down to all layouts, so that those
-- with other choices do not seem worse than those that were planned.
local Correction = {}
Correction.__index = Correction

function M.correction() return setmetatable({ all = 0, logs = {} }, Correction) end

local function choices(l)
  l.choices = l.choices or {
    "tensor" .. l.tensor, "pipe" .. l.pipe, "context" .. l.context, "each" .. l.each, "zero" .. l.zero,
    "recompute" .. tostring(l.recompute), tostring(l.schedule) .. (l.chunks or ""),
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
  local half = math.log(planned / self:apply(l, guess)) / 2
  self.all = self.all + half
  for _, choice in ipairs(all) do self.logs[choice] = (self.logs[choice] or 0) + half / #all end
end

-- Learns from refusals: from how many chunks of the model on layouts were refused and none was planned, and which other
-- sizes were refused and never planned.
local Refusals = {}
Refusals.__index = Refusals

function M.refusals() return setmetatable({ least = math.huge, most = 0, refused = {}, planned = {} }, Refusals) end

local function chunks(l) return l.pipe * (l.chunks or l.schedule == "zbv" and 2 or 1) end
local function sizes(l) return { "tensor" .. l.tensor, "context" .. l.context, "each" .. l.each } end

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

return M
