-- SPDX-License-Identifier: Apache-2.0
--
-- The layouts that a search chooses from: the sizes of a stack's axes, the microbatches, and those options of the
-- strategies that change time and memory only. What only a person knows, such as the layers that `tensor` cuts, stays.
local _, orrery = ...

local M = {}

-- The options of the strategies that a search varies, by name (false: it does not use the strategy), and the stack's
-- other entries in their order. `auto`: the options of strategy.auto, if the stack has it.
function M.template(stack, auto)
  local varied = { data = {}, zero = {}, recompute = {}, pipeline = false, tensor = false, context = false, expert = false }
  for name, options in pairs(auto and auto.varied or {}) do varied[name] = options end
  local template = { rest = {}, varied = varied, fixed = 1 } -- fixed: the ranks that axes of the rest take
  for _, entry in ipairs(stack) do
    if varied[entry.name] ~= nil then
      varied[entry.name] = entry.given or entry.options
    elseif entry.name ~= "accumulate" and entry.name ~= "auto" then
      table.insert(template.rest, entry)
      template.fixed = template.fixed * math.max((entry.given or entry.options).size or 1, 1)
    end
  end
  return template
end

local function divisors(n)
  local found = {}
  for i = 1, n do
    if n % i == 0 then found[#found + 1] = i end
  end
  return found
end

-- How many microbatches a rank may have: powers of two that deal the samples evenly, and one for each sample.
local function pieces(samples, ranks)
  local each, found = samples // ranks, {}
  if samples % ranks ~= 0 then return each > 0 and { 1 } or {} end
  local k = 1
  while k < each do
    if each % k == 0 then found[#found + 1] = k end
    k = 2 * k
  end
  found[#found + 1] = each
  return found
end

local one_stage = { {} }
local most_chunks = 10 -- of a stage: with more the bubble is small beside what messages take

-- Into how many chunks a stage may be cut so that all have equally many of the model's elements; 2 if there is none.
local function evenly(elements, stages)
  local found = {}
  for chunks = 2, most_chunks do
    if elements % (chunks * stages) == 0 then found[#found + 1] = chunks end
  end
  return #found > 0 and found or { 2 }
end

-- Orders that `stages` or a function of the script decide stay.
local function orders(pipeline, stages, elements)
  if stages == 1 then return one_stage end
  if type(pipeline.schedule) == "function" then return { { schedule = pipeline.schedule } } end
  if pipeline.stages then return { { schedule = pipeline.schedule, chunks = pipeline.chunks } } end
  local found = { { schedule = "1f1b" }, { schedule = "zb1" }, { schedule = "zbv" } }
  for _, chunks in ipairs(evenly(elements, stages)) do
    found[#found + 1] = { schedule = "interleaved", chunks = chunks }
  end
  return found
end

local function with(options, more)
  local all = {}
  for name, value in pairs(options or {}) do all[name] = value end
  for name, value in pairs(more) do all[name] = value end
  return all
end

-- What may be computed again: options of `recompute`, by what is said of them.
local function recomputations(options)
  local found = { { said = false } }
  if not options then return found end
  if not options.offload or options.offload == "none" then
    found[2] = { said = "selective", options = with(options, { mode = "selective" }) }
    options = with(options, {})
    options.mode = nil
  end
  found[#found + 1] = { said = "full", options = options }
  return found
end

-- Ways to cut what tensor ranks share, and to hold what a sequence's ranks share.
local function tensors(size)
  if size == 1 then return { {} } end
  return { { sequence = true, vocab = true }, { sequence = false, vocab = true }, { sequence = true, vocab = false } }
end

local function contexts(size) return size > 1 and { "gathered", "ulysses", "ring" } or { false } end

-- zero's stages, and whether pieces are exchanged with each microbatch where these run one after another.
local function zeros(varied, l)
  local found = { { stage = 0 } }
  if not varied.zero or l.data * l.dealt == 1 then return found end
  for stage = 1, 3 do
    found[#found + 1] = { stage = stage, each = false }
    if stage > 1 and l.pipe == 1 and l.each > 1 then found[#found + 1] = { stage = stage, each = true } end
  end
  return found
end

-- The stack's entries as { name, options }: the axis of `tensor` is the innermost, so that its ranks are neighbours.
function M.entries(l, template)
  local list, varied = {}, template.varied
  local function add(name, options) list[#list + 1] = { name = name, options = options } end
  if l.pipe > 1 then
    local options = with(varied.pipeline, { size = l.pipe, schedule = l.schedule })
    options.chunks = l.chunks
    add("pipeline", options)
  end
  add("data", with(varied.data, { size = l.data }))
  if l.zero > 0 then add("zero", with(varied.zero, { stage = l.zero, each = l.zero_each })) end
  if l.context > 1 then add("context", with(varied.context, { size = l.context, kind = l.kind })) end
  if l.expert > 1 then add("expert", with(varied.expert, { size = l.expert })) end
  if l.tensor > 1 then
    add("tensor", with(varied.tensor, { size = l.tensor, sequence = l.sequence, vocab = l.vocab }))
  end
  for _, entry in ipairs(template.rest) do
    list[#list + 1] = { name = entry.name, options = entry.given or entry.options, made = entry }
  end
  if l.recompute then add("recompute", l.again) end
  if l.pipe == 1 and l.each > 1 then add("accumulate", {}) end
  return list
end

-- The strategies of a layout.
function M.strategies(layout, template)
  local made = {}
  for i, entry in ipairs(M.entries(layout, template)) do
    made[i] = entry.made or orrery.strategy[entry.name](entry.options)
  end
  return made
end

-- Calls visit(mesh) for all sizes whose product is n.
local function each_mesh(n, varied, visit)
  local function sizes(name, ranks) return varied[name] and divisors(ranks) or { 1 } end
  for _, tensor in ipairs(sizes("tensor", n)) do
    for _, expert in ipairs(sizes("expert", n // tensor)) do
      for _, context in ipairs(sizes("context", n // tensor // expert)) do
        for _, pipe in ipairs(sizes("pipeline", n // tensor // expert // context)) do
          visit {
            pipe = pipe, data = n // tensor // expert // context // pipe, context = context, expert = expert,
            tensor = tensor, dealt = varied.expert and varied.expert.over == "batch" and expert or 1,
          }
        end
      end
    end
  end
end

-- Calls visit(layout) for all options of a layout whose sizes, microbatches and order are known.
local function each_option(l, varied, visit)
  for _, zero in ipairs(zeros(varied, l)) do
    for _, again in ipairs(recomputations(varied.recompute)) do
      for _, tensor in ipairs(tensors(l.tensor)) do
        for _, kind in ipairs(contexts(l.context)) do
          visit(with(l, {
            zero = zero.stage, zero_each = zero.each, recompute = again.said, again = again.options,
            sequence = tensor.sequence, vocab = tensor.vocab, kind = kind,
          }))
        end
      end
    end
  end
end

-- Calls visit(layout) for all layouts on the facts' ranks, which it numbers. `microbatches`: 0: any number.
function M.each(facts, template, microbatches, visit)
  local varied, number = template.varied, 0
  if facts.ranks % template.fixed ~= 0 then return end
  local function numbered(l)
    number = number + 1
    l.number = number
    visit(l)
  end
  each_mesh(facts.ranks // template.fixed, varied, function(mesh)
    local ranks = mesh.data * mesh.dealt
    for _, k in ipairs(microbatches > 0 and { -(-microbatches // ranks) } or pieces(facts.samples, ranks)) do
      for _, order in ipairs(orders(varied.pipeline, mesh.pipe, facts.elements)) do
        local l = with(mesh, order)
        l.each, l.microbatches = k, microbatches > 0 and microbatches or k * ranks
        each_option(l, varied, numbered)
      end
    end
  end)
end

return M
