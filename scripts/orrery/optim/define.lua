-- SPDX-License-Identifier: Apache-2.0
--
--- optim.define(name, definition)
--- An optimizer in Lua. Its update is traced once for each parameter and becomes part of the step's
--- program.
---@param name string
---@param definition table
---@option options table={} {name = default}; lr, and what is given as a function of the step, reaches the update as a run-time scalar, of which every rank takes rank 0's; the others as numbers
---@option states string[]={} names of tensors like the parameter, zero at first
---@option scalars fun(step,o):table=false further numbers for a step, from options that are numbers here
---@option update fun(p,g,s,o) returns the new p and a table of new states; required
---@return fun(options:table):orrery.Optimizer
local _, orrery = ...
local engine = orrery.engine
local any_next = require "orrery.globals".next
local tree = require "orrery.nn.module_tree"

local Optimizer = { __name = "Optimizer", __metatable = false }
Optimizer.__index = Optimizer

local function matches(group, path)
  local patterns = type(group.match) == "table" and group.match or { group.match }
  for _, pattern in ipairs(patterns) do
    if orrery.glob(pattern, path) then return true end
  end
  return false
end

-- The index of a parameter's group; 0 is the optimizer's own options. The first match counts.
function Optimizer:group_of(parameter)
  for i, group in ipairs(self.groups) do
    if matches(group, parameter.name) then return i end
  end
  return 0
end

-- The optimizer as one program uses it, with states of its own, which `make` makes; groups are by
-- the names of now.
function Optimizer:bound(params, make)
  local groups = {}
  for _, parameter in ipairs(params) do
    groups[parameter:identity()] = self:group_of(parameter)
  end
  return setmetatable({ states = {}, group = groups, make = make }, { __index = self })
end

function Optimizer:freezes(parameter)
  local index = self:group_of(parameter)
  return index > 0 and self.groups[index].frozen == true
end

local function scalar_name(group, option) return ("optim.%d.%s"):format(group, option) end

local function is_runtime(name, value) return name == "lr" or type(value) == "function" end

-- A group's options as numbers at a step.
local function at_step(options, step)
  local numbers = {}
  for name, value in pairs(options) do
    numbers[name] = type(value) == "function" and value(step) or value
  end
  return numbers
end

-- The numbers of a step by the names that the program knows.
function Optimizer:scalars(step)
  local values = {}
  for group = 0, #self.groups do
    local options = self.options[group]
    local numbers = at_step(options, step)
    for name, value in any_next, options do
      if is_runtime(name, value) then values[scalar_name(group, name)] = numbers[name] end
    end
    if self.def.scalars then
      for name, value in pairs(self.def.scalars(step, numbers)) do
        values[scalar_name(group, name)] = value
      end
    end
  end
  return values
end

-- What the update of a parameter of this dtype sees as `o`: numbers, and run-time scalars for the rest.
function Optimizer:handles(group, dtype)
  local options = self.options[group]
  return setmetatable({}, {
    __index = function(_, name)
      local value = options[name]
      if value ~= nil and not is_runtime(name, value) then return value end
      return engine.scalar(scalar_name(group, name), dtype == "f64" and dtype or "f32")
    end,
  })
end

-- Of a bound optimizer.
function Optimizer:states_of(parameter)
  local key = parameter:identity()
  local made = self.states[key]
  if not made then
    made = {}
    for _, name in ipairs(self.def.states) do
      made[name] = self.make(parameter.shape, {
        dtype = parameter.dtype, name = ("optim.%s.%s"):format(parameter.name, name),
      })
    end
    self.states[key] = made
  end
  return made
end

-- A new value in the dtype of what will hold it.
local function rounded(value, like)
  return value.dtype == like.dtype and value or value:cast(like.dtype)
end

-- An update of 16 bits is computed in f32 and rounded once: 16 bits hold the squares of few gradients.
local function widened(value) return value.dtype:find "16" and value:cast "f32" or value end

-- Traces the update of one parameter by a bound optimizer; returns its new value.
function Optimizer:trace(parameter, value, gradient)
  local states, wide = self:states_of(parameter), {}
  for name, state in pairs(states) do wide[name] = widened(state) end
  local options = self:handles(self.group[parameter:identity()], parameter.dtype)
  local new, changed = self.def.update(widened(value), widened(gradient), wide, options)
  for name, state in pairs(changed or {}) do
    if not states[name] then
      orrery.fail(("%s: update returned a state '%s' that 'states' does not list"):format(
        self.name, name))
    end
    states[name]:update(rounded(state, states[name]))
  end
  return rounded(new, parameter)
end

-- Tensors given to a program are its inputs; parameters and buffers it reads where they are. The
-- inputs among `given`, and what tells lists apart that need programs of their own.
local function inputs_of(given)
  local inputs, key = {}, {}
  for i, gradient in ipairs(given) do
    local state = orrery.type(gradient) == "State"
    key[i] = state and tostring(gradient:identity()) or "input"
    if not state then inputs[#inputs + 1] = gradient end
  end
  return inputs, table.concat(key, " ")
end

-- A compiled update of those of `params` that are not frozen, by gradients like these.
local function updating(optimizer, params, given)
  local states = {}
  for i, gradient in ipairs(given) do
    states[i] = orrery.type(gradient) == "State" and gradient
  end
  return engine.func(function(...)
    local inputs, next_input = { ... }, 0
    for i, parameter in ipairs(params) do
      local gradient = states[i]
      if not gradient then
        next_input = next_input + 1
        gradient = inputs[next_input]
      end
      if tostring(gradient.shape) ~= tostring(parameter.shape) then
        orrery.fail(("update: gradient %d is %s, the parameter '%s' is %s"):format(
          i, tostring(gradient.shape), parameter.name, tostring(parameter.shape)))
      end
      if not parameter.frozen then parameter:update(optimizer:trace(parameter, parameter, gradient)) end
    end
  end)
end

--- Optimizer:attach(model)
--- For own loops: an object whose update(gradients) changes the model's parameters, but those that are frozen then.
--- Words of the world take it for the list of its states.
---@param model orrery.Module|table
---@return orrery.Attached

--- Attached:update(gradients)
--- Changes the parameters by these gradients, one for each, in the order of orrery.parameters(model).
---@param gradients (orrery.State|orrery.HostTensor)[]
function Optimizer:attach(model)
  local params, step, programs = {}, 0, {}
  for _, parameter in ipairs(tree.parameters(model)) do
    if not parameter.frozen and not self:freezes(parameter) then params[#params + 1] = parameter end
  end
  local unchanged, own = tree.watch(model), self:bound(params, orrery.buffer)
  local function states()
    local list = {}
    for _, parameter in ipairs(params) do
      for _, state in pairs(own:states_of(parameter)) do list[#list + 1] = state end
    end
    return list
  end
  return setmetatable({
    update = function(_, given)
      unchanged()
      if #given ~= #params then
        orrery.fail(("update: %d gradients given for %d parameters"):format(#given, #params))
      end
      local inputs, key = inputs_of(given)
      for i, parameter in ipairs(params) do
        if parameter.frozen then key = ("%s %d frozen"):format(key, i) end
      end
      programs[key] = programs[key] or updating(own, params, given)
      step = step + 1
      programs[key]:run(inputs, own:scalars(step))
    end,
  }, { __states = states })
end

local function check_groups(name, groups, defaults)
  local allowed = { match = false, frozen = false }
  for key, value in pairs(defaults) do allowed[key] = value end
  for _, group in ipairs(groups) do
    orrery.options(name .. " group", group, allowed)
    if not group.match then
      orrery.fail(name .. " group: match is missing: a path pattern or a list of them")
    end
  end
end

return function(name, def)
  def = orrery.options("define", def, {
    options = {}, states = {}, scalars = false, update = false,
  })
  if not def.update then
    orrery.fail "define: update is missing: function(p, g, s, o) return new_p, {state = new} end"
  end
  return function(given)
    local defaults = { groups = {} }
    for option, value in pairs(def.options) do defaults[option] = value end
    local own = orrery.options(name, given, defaults)
    local groups = own.groups
    own.groups = nil
    check_groups(name, groups, own)
    local options = { [0] = own }
    for i, group in ipairs(groups) do
      options[i] = {}
      for option, value in pairs(own) do
        if group[option] ~= nil then value = group[option] end
        options[i][option] = value
      end
    end
    local optimizer = { name = name, def = def, groups = groups, options = options }
    return setmetatable(optimizer, Optimizer)
  end
end
