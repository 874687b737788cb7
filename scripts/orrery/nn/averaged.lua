-- SPDX-License-Identifier: Apache-2.0
--
--- nn.averaged(model, options)
--- A frozen copy of a model (nn.copy) that follows it: after each step of a run, of optim.lbfgs or of an attached optimizer
--- that trains the model, each of its parameters becomes decay times itself plus 1 - decay times the model's, and the first
--- time the model's. Buffers are the model's. It predicts and samples as the model does and is part of checkpoints, in which
--- `name` tells several apart.
---@param model orrery.Module
---@param options? table
---@option decay number|boolean=0.999 false: the plain mean of all values, as stochastic weight averaging takes it
---@option from integer=1 the first step that counts
---@option every integer=1 steps from one that counts to the next
---@option name string='averaged' in front of the names of its parameters
---@return orrery.Module

-- Polyak and Juditsky, 1992; Izmailov et al., 2018 (arXiv:1803.05407).
local _, orrery = ...
local averages = require "orrery.averages"
local tree = require "orrery.nn.module_tree"
local nn = orrery.nn

local function check(o)
  if o.decay ~= false and not (type(o.decay) == "number" and o.decay >= 0 and o.decay < 1) then
    orrery.fail(("averaged: decay is %s, expected a number of at least 0 and less than 1, or false"):format(
      tostring(o.decay)))
  end
  for _, name in ipairs { "from", "every" } do
    if o[name] < 1 then orrery.fail(("averaged: %s = %d, expected at least 1"):format(name, o[name])) end
  end
end

return function(model, options)
  local o = orrery.options("averaged", options, { decay = 0.999, from = 1, every = 1, name = "averaged" })
  check(o)
  local average = nn.freeze(nn.copy(model))
  local entry, from, to = { o = o, pairs = {}, buffers = {} }, tree.states(model), tree.states(average)
  for i, state in ipairs(to) do
    state:rename(("%s.%s"):format(o.name, state.name))
    if state.trained then
      local count = orrery.buffer({}, { name = state.name .. ".count", dtype = "i64", init = 0 })
      table.insert(entry.pairs, { from = from[i], to = state, count = count })
    else
      table.insert(entry.buffers, { from = from[i], to = state })
    end
  end
  averages.add(average, entry)
  local kept = tree.info[model].averages or {}
  tree.info[model].averages = kept
  kept[#kept + 1] = average -- which is updated as long as there is the model
  return average
end
