-- SPDX-License-Identifier: Apache-2.0
--
--- optim.momentum(options)
--- Gradient descent with momentum: v = momentum * v + (1 - dampening) * g, in the first update g; p - lr * v.
---@param options? table
---@option lr number|orrery.Schedule=0.01 the rate, or a function of the step
---@option momentum number|orrery.Schedule=0.9
---@option decay number|orrery.Schedule=0
---@option nesterov boolean=false
---@option dampening number|orrery.Schedule=0 what later gradients lack in v; not with nesterov
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...

local options = { lr = 0.01, momentum = 0.9, decay = 0, nesterov = false, dampening = 0 }

local function update(p, g, s, o)
  if o.decay ~= 0 then g = g + p * o.decay end
  local added = g
  if o.dampening ~= 0 then added = g * o.count:gt(1):select(1 - o.dampening, 1) end
  local v = s.v * o.momentum + added
  local direction = o.nesterov and g + v * o.momentum or v
  return p - direction * o.lr, { v = v }
end

local plain = orrery.optim.define("momentum", { options = options, states = { "v" }, update = update })
local damped = orrery.optim.define("momentum", { options = options, states = { "v" }, counted = true, update = update })

-- Only what is dampened needs to know which update is the first.
local function is_damped(given)
  if (given.dampening or 0) == 0 then return false end
  if given.nesterov then orrery.fail "momentum: dampening and nesterov exclude each other: leave one out" end
  return true
end

return function(given)
  local any = type(given) == "table" and is_damped(given)
  local groups = type(given) == "table" and type(given.groups) == "table" and given.groups or {}
  for _, group in ipairs(groups) do
    if type(group) == "table" then
      local nesterov = group.nesterov
      if nesterov == nil then nesterov = given.nesterov end
      any = is_damped { dampening = group.dampening or given.dampening, nesterov = nesterov } or any
    end
  end
  return (any and damped or plain)(given)
end
