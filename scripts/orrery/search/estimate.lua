-- SPDX-License-Identifier: Apache-2.0
--
-- What a layout may take, which only says what to plan first. A probe (core/plan/probe.h) has what one rank does for
-- one microbatch of the whole model; pipelines, numbers of microbatches and zero's stages follow from it by arithmetic,
-- so that one probe serves many layouts. Before it there is a guess from the facts of the model.
local M = {}

-- How much of a microbatch's time a stage waits for the others, by schedule, beside that of 1f1b. That of zbv is smaller
-- only where forward and both parts of backward take as long.
local bubbles = { ["1f1b"] = 1, interleaved = 1, zb1 = 0.4, zbv = 1 }

-- Samples of a microbatch.
function M.rows(l, samples) return math.max(1, samples // (l.each * l.data * l.dealt)) end

-- Layouts with equal families have probes that differ little but by the samples of a microbatch.
function M.family(l) return ("%d %d %d %s"):format(l.tensor, l.context, l.expert, l.recompute) end

-- Layouts with equal keys share a probe.
function M.key(l, samples)
  return ("%s %s %s %s %d"):format(M.family(l), l.kind, l.sequence, l.vocab, M.rows(l, samples))
end

-- The layout of the probe: a microbatch for each rank that shares the batch.
function M.probed(l, samples)
  local data = math.max(1, samples // (M.rows(l, samples) * l.dealt))
  return {
    pipe = 1, data = data, context = l.context, expert = l.expert, tensor = l.tensor, dealt = l.dealt, each = 1, zero = 0,
    recompute = l.recompute, again = l.again, sequence = l.sequence, vocab = l.vocab, kind = l.kind,
    microbatches = data * l.dealt, ranks = data * l.context * l.expert * l.tensor,
  }
end

-- How much more than its part the stage that has most takes. Chunks have whole elements of the model, and one of them
-- what comes after the elements (the head), which is as much as `head` elements; the others share the elements left.
local function uneven(l, facts)
  if l.pipe == 1 then return 1 end
  local each = l.chunks or l.schedule == "zbv" and 2 or 1
  local head, others = facts.elements * (1 / facts.elements_share - 1), l.pipe * each - 1
  local least, most = math.huge, 1
  for beside = 0, math.ceil(facts.elements / (others + 1)) do
    local part = (facts.elements - beside) / others
    local largest = math.max(math.ceil(part), beside + head)
    local stage = math.max(each * (part // 1) + (part % 1 > 0 and 1 or 0), (each - 1) * part + beside + head)
    if largest < least then least, most = largest, stage end
  end
  return math.max(1, most * l.pipe / (facts.elements + head))
end

-- Of how many microbatches a stage has room for activations, for each stage: each chunk has its own room, and the chunks
-- are not full at the same time; what zb1 and zbv put off waits, too.
local rooms = { ["1f1b"] = 1, interleaved = 1.5, zb1 = 2, zbv = 3.5 }

local function alive(l)
  if l.pipe == 1 then return 1 end
  return math.min((rooms[l.schedule] or 1) * l.pipe, l.each)
end

local function bubble(l)
  if l.pipe == 1 then return 0 end
  return (l.pipe - 1) / l.each / (l.chunks or 1) * (bubbles[l.schedule] or 1)
end

-- Sums of gradients, and zero's gathering.
local function exchanged_with_replicas(l, facts, bytes)
  local span = l.data * l.dealt * l.context * l.tensor
  local link = span <= facts.ranks_per_host and facts.inside or facts.between
  local sums = 2 * bytes * (l.data * l.context - 1) / (l.data * l.context) / link
  if l.zero == 3 then sums = sums * (l.zero_each and (1 + l.each) or 1.5) end
  if l.zero == 2 and l.zero_each then sums = sums * (1 + l.each) / 2 end
  return 0.5 * sums
end

-- What a probe holds for the whole model: parameters, what products read in their place, states, gradients as they are
-- made, and what waits for backward. A probe casts parameters anew and keeps the casts, where a run that has several
-- microbatches or pieces has copies.
local function held(probe, times)
  local memory = probe.memory
  local parameters, gradients = memory.parameter or 0, memory.buckets
  local copies = memory["compute copy"] or gradients < parameters and gradients or 0
  local casts = memory["compute copy"] and 0 or copies
  return {
    parameters = parameters, copies = copies, states = memory.state or 0, gradients = gradients,
    kept = times * math.max(0, probe.kept_bytes - casts), working = times * probe.working_bytes,
  }
end

local function bytes_of(l, facts, has)
  local shards = l.zero > 0 and l.data or 1
  local pieces = l.zero_each and l.data or 1
  local summed = l.each > 1 and math.max(has.parameters, has.gradients) or 0
  local stage = (has.parameters + has.states) / shards + has.copies / (l.zero == 3 and pieces or 1)
    + (has.gradients + summed) / pieces + has.kept * alive(l)
  return stage / l.pipe * uneven(l, facts) + has.working
end

-- Seconds and bytes of a step from a probe. `times`: how many times the probe's samples a microbatch has.
function M.refined(l, facts, probe, times)
  local exchanged = 0
  for axis, seconds in pairs(probe.exchanged_seconds) do
    if axis ~= "data" then exchanged = exchanged + seconds end
  end
  local one = times * (probe.compute_seconds + exchanged) / l.pipe * uneven(l, facts)
  local has = held(probe, times)
  local adding = l.each > 1 and 3 * has.gradients / l.pipe / facts.memory_bandwidth or 0
  local seconds = l.each * (one * (1 + bubble(l)) + adding)
    + probe.update_seconds / l.pipe / (l.zero > 0 and l.data or 1)
    + exchanged_with_replicas(l, facts, has.gradients / l.pipe)
  return seconds, bytes_of(l, facts, has) + probe.outside_bytes
end

-- The same from the facts alone.
function M.guess(l, facts, bound)
  local again = l.recompute == "full" and 4 / 3 or l.recompute and 1.02 or 1
  local compute = 1.3 * facts.product_flops * again / facts.product_rate / facts.ranks
  local cut = facts.product_bytes / (l.data * l.dealt * l.pipe) * (l.recompute == "full" and 1.3 or 1)
  local inner = l.context * l.expert * l.tensor
  local link = inner <= facts.ranks_per_host and facts.inside or facts.between
  local shared = l.tensor * l.pipe * l.expert
  local seconds = compute * (1 + bubble(l)) * uneven(l, facts)
    + exchanged_with_replicas(l, facts, facts.parameter_bytes / shared) + cut * (inner - 1) / inner / link
  local kept = l.recompute == "full" and 0.15 or l.recompute and 0.7 or 1
  local spread = l.data * l.dealt * l.each * l.context * l.tensor * l.pipe
  local bytes = bound + facts.parameter_bytes / (l.zero > 1 and shared * l.data or shared)
    + 3 * facts.product_bytes / spread * alive(l) * kept * (l.sequence == false and 1.5 or 1)
  return seconds, bytes
end

return M
