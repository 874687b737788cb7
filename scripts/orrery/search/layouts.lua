-- SPDX-License-Identifier: Apache-2.0
--
-- The layouts that a search chooses from: the sizes of a stack's axes, the microbatches, the pipeline's schedule,
-- zero's stage and recomputation. What only a person knows, such as the layers that `tensor` cuts, stays as it is.
local _, orrery = ...

local M = {}

-- The options of the strategies that a search varies, by name (false: it does not use the strategy), and the stack's
-- other entries in their order. `auto`: the options of strategy.auto, if the stack has it.
function M.template(stack, auto)
  local varied = { data = {}, zero = {}, recompute = {}, pipeline = false, tensor = false, context = false }
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
local schedules = {
  { schedule = "1f1b" }, { schedule = "interleaved", chunks = 2 }, { schedule = "interleaved", chunks = 4 },
  { schedule = "zb1" }, { schedule = "zbv" },
}

-- Orders that `stages` or a function of the script decide stay.
local function orders(pipeline, stages)
  if stages == 1 then return one_stage end
  if type(pipeline.schedule) == "function" then return { { schedule = pipeline.schedule } } end
  if pipeline.stages then return { { schedule = pipeline.schedule, chunks = pipeline.chunks } } end
  return schedules
end

local function with(options, more)
  local all = {}
  for name, value in pairs(options or {}) do all[name] = value end
  for name, value in pairs(more) do all[name] = value end
  return all
end

-- The stack's entries as { name, options }: the axis of `tensor` is the innermost, so that its ranks are neighbours.
local function entries(l, varied, rest)
  local list = {}
  local function add(name, options) list[#list + 1] = { name = name, options = options } end
  if l.pipe > 1 then
    local options = with(varied.pipeline, { size = l.pipe, schedule = l.schedule })
    options.chunks = l.chunks
    add("pipeline", options)
  end
  add("data", with(varied.data, { size = l.data }))
  if l.zero > 0 then add("zero", with(varied.zero, { stage = l.zero })) end
  if l.context > 1 then add("context", with(varied.context, { size = l.context })) end
  if l.tensor > 1 then add("tensor", with(varied.tensor, { size = l.tensor })) end
  for _, entry in ipairs(rest) do
    list[#list + 1] = { name = entry.name, options = entry.given or entry.options, made = entry }
  end
  if l.recompute then add("recompute", varied.recompute) end
  if l.pipe == 1 and l.each > 1 then add("accumulate", {}) end
  return list
end

-- The strategies of a layout.
function M.strategies(layout)
  local made = {}
  for i, entry in ipairs(layout.entries) do
    made[i] = entry.made or orrery.strategy[entry.name](entry.options)
  end
  return made
end

-- Calls visit(pipe, data, context, tensor) for all sizes whose product is n.
local function each_mesh(n, varied, visit)
  local function sizes(name, ranks) return varied[name] and divisors(ranks) or { 1 } end
  for _, tensor in ipairs(sizes("tensor", n)) do
    for _, context in ipairs(sizes("context", n // tensor)) do
      for _, pipe in ipairs(sizes("pipeline", n // tensor // context)) do
        visit(pipe, n // tensor // context // pipe, context, tensor)
      end
    end
  end
end

-- All layouts on n ranks. `microbatches`: 0: any number.
function M.all(n, samples, template, microbatches)
  local found, varied = {}, template.varied
  if n % template.fixed ~= 0 then return found end
  each_mesh(n // template.fixed, varied, function(pipe, data, context, tensor)
    for _, k in ipairs(microbatches > 0 and { -(-microbatches // data) } or pieces(samples, data)) do
      for _, order in ipairs(orders(varied.pipeline, pipe)) do
        for zero = 0, varied.zero and data > 1 and 3 or 0 do
          for _, recompute in ipairs(varied.recompute and { false, true } or { false }) do
            local l = {
              pipe = pipe, data = data, context = context, tensor = tensor, each = k, zero = zero, recompute = recompute,
              schedule = order.schedule, chunks = order.chunks,
              microbatches = microbatches > 0 and microbatches or k * data,
            }
            l.entries = entries(l, varied, template.rest)
            found[#found + 1] = l
          end
        end
      end
    end
  end)
  return found
end

return M
