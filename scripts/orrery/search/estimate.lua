-- SPDX-License-Identifier: Apache-2.0
--
-- What a layout may take, which only says what to plan first. A probe (core/plan/probe.h) has what one rank does for
-- one microbatch of the whole model; pipelines, numbers of microbatches and zero's stages follow from it by arithmetic,
-- so that one probe serves many layouts. Before it there is a guess from the facts of the model.
local M = {}

-- How much of a microbatch's time a stage waits for the others, by schedule, beside that of 1f1b. That of zbv is smaller
-- only where forward and both parts of backward take as long.
local bubbles = { ["1f1b"] = 1, interleaved = 1, zb1 = 0.4, zbv = 1 }

-- Layouts with equal keys share a probe.
function M.key(l, samples)
  return ("%d %d %d %s %s %s %s %d"):format(l.tensor, l.context, l.expert, l.kind, l.sequence, l.vocab, l.recompute,
    M.rows(l, samples))
end

-- Samples of a microbatch.
function M.rows(l, samples) return math.max(1, samples // (l.each * l.data * l.dealt)) end

-- The layout of the probe: a microbatch for each rank that shares the batch.
function M.probed(l, samples)
  local data = math.max(1, samples // (M.rows(l, samples) * l.dealt))
  return {
    pipe = 1, data = data, context = l.context, expert = l.expert, tensor = l.tensor, dealt = l.dealt, each = 1, zero = 0,
    recompute = l.recompute, again = l.again, sequence = l.sequence, vocab = l.vocab, kind = l.kind,
    microbatches = data * l.dealt, ranks = data * l.context * l.expert * l.tensor,
  }
end

-- A chunk has whole elements of the model, so that the largest has more than its part.
local function uneven(l, facts)
  local chunks = l.pipe * (l.chunks or l.schedule == "zbv" and 2 or 1)
  if l.pipe == 1 then return 1 end
  return math.ceil(facts.elements / chunks) * chunks / facts.elements
end

-- How many times the activations of a microbatch in a stage are kept at once.
local function alive(l)
  if l.pipe == 1 then return 1 end
  local most = l.pipe
  if l.schedule == "interleaved" then most = (2 * (l.pipe - 1) + (l.chunks - 1) * l.pipe + 1) / l.chunks end
  if l.schedule == "zbv" then most = l.pipe + 0.5 end
  return math.min(most, l.each)
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

-- Seconds and bytes of a step from a probe.
function M.refined(l, facts, probe)
  local exchanged = 0
  for axis, seconds in pairs(probe.exchanged_seconds) do
    if axis ~= "data" then exchanged = exchanged + seconds end
  end
  local one = (probe.compute_seconds + exchanged) / l.pipe * uneven(l, facts)
  local held = probe.memory
  local gradients = (held["compute copy"] or held.parameter or 0) / l.pipe
  local adding = l.each > 1 and 3 * gradients / facts.memory_bandwidth or 0
  local shards = l.zero > 0 and l.data or 1
  local seconds = l.each * (one * (1 + bubble(l)) + adding) + probe.update_seconds / l.pipe / shards
    + exchanged_with_replicas(l, facts, gradients)
  local parameters = (held.parameter or 0) + (held["compute copy"] or 0)
  local bytes = parameters / l.pipe / (l.zero == 3 and l.data or 1) + (held.state or 0) / l.pipe / shards
    + 2 * gradients / (l.zero > 1 and l.zero_each and l.data or 1)
    + probe.kept_bytes / l.pipe * alive(l) * uneven(l, facts) + probe.working_bytes / (l.recompute and 1 or l.pipe)
    + probe.outside_bytes
  return seconds, bytes
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
