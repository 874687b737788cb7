-- SPDX-License-Identifier: Apache-2.0
--
-- optim.define(name, {options =, states =, scalars =, update =}): an optimizer in Lua. Its
-- update is traced once for each parameter and becomes part of the step's program.
--
-- options: {name = default}. lr, and every option whose value is a schedule, reaches the update
--   as a run-time scalar, of which every rank takes rank 0's; the others as numbers.
-- states: names of tensors like the parameter, zero at first.
-- scalars(step, o): further numbers for a step, from options that are numbers here.
-- update(p, g, s, o): returns the new p and a table of new states.
local _, orrery = ...
local engine = orrery.engine
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
    for name, value in pairs(options) do
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

-- What the update sees as `o`: numbers, and run-time scalars for the rest.
function Optimizer:handles(group)
  local options = self.options[group]
  return setmetatable({}, {
    __index = function(_, name)
      local value = options[name]
      if value ~= nil and not is_runtime(name, value) then return value end
      return engine.scalar(scalar_name(group, name))
    end,
  })
end

function Optimizer:states_of(parameter)
  local made = self.states[parameter.name]
  if not made then
    made = {}
    for _, name in ipairs(self.def.states) do
      made[name] = orrery.buffer(parameter.shape, {
        dtype = parameter.dtype, name = ("optim.%s.%s"):format(parameter.name, name),
      })
    end
    self.states[parameter.name] = made
  end
  return made
end

-- Traces the update of one parameter; returns its new value.
function Optimizer:trace(parameter, value, gradient)
  local states = self:states_of(parameter)
  local options = self:handles(self:group_of(parameter))
  local new, changed = self.def.update(value, gradient, states, options)
  for name, state in pairs(changed or {}) do
    if not states[name] then
      orrery.fail(("%s: update returned a state '%s' that 'states' does not list"):format(
        self.name, name))
    end
    states[name]:update(state)
  end
  return new
end

-- For own loops: an object whose update(gradients) changes the model's parameters. Words of the world
-- take it for the list of its states.
function Optimizer:attach(model)
  local params, step = {}, 0
  for _, parameter in ipairs(tree.parameters(model)) do
    if not parameter.frozen and not self:freezes(parameter) then params[#params + 1] = parameter end
  end
  local gradients
  local program = engine.func(function()
    for i, parameter in ipairs(params) do
      parameter:update(self:trace(parameter, parameter, gradients[i]))
    end
  end)
  local function states()
    local list = {}
    for _, parameter in ipairs(params) do
      for _, state in pairs(self:states_of(parameter)) do list[#list + 1] = state end
    end
    return list
  end
  return setmetatable({
    update = function(_, given)
      if #given ~= #params then
        orrery.fail(("update: %d gradients given for %d parameters"):format(#given, #params))
      end
      gradients, step = given, step + 1
      program:run({}, self:scalars(step))
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
    local optimizer = { name = name, def = def, groups = groups, options = options, states = {} }
    return setmetatable(optimizer, Optimizer)
  end
end
