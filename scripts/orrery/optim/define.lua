-- SPDX-License-Identifier: Apache-2.0
--
--- optim.define(name, definition)
--- An optimizer in Lua. Its update is traced once for each parameter and becomes part of the step's
--- program.
---@param name string
---@param definition table
---@option options table={} {name = default}; lr, and what is given as a function of the step, reaches the update as a run-time scalar, of which every rank takes rank 0's; the others as numbers
---@option states string[]={} names of tensors like the parameter, zero at first
---@option shapes table={} {name = function(dims)}: the dims of a state that is not like a parameter of these dims; nil: that parameter has none. A single number is f32 beside 16 bits
---@option scalars fun(step,o):table=false further numbers for a step of the run, from options that are numbers here
---@option counted boolean=false o.count is how many updates the parameter has taken, with this one: an f32 number (exact to 2^24, where it stays) that is kept with its states. It is less than the run's step after steps in which the parameter was frozen or which a loss scale took back
---@option update fun(p,g,s,o) returns the new p and a table of new states; o.path is the parameter's, and o.held_by["linear"] is true if it is a part of a module of that kind; required
---@return fun(options:table):orrery.Optimizer
local _, orrery = ...
local engine = orrery.engine
local any_next = require "orrery.globals".next
local attach = require "orrery.attached"
local averages = require "orrery.averages"
local is_callable = require "orrery.callable"
local grouping = require "orrery.optimizer_groups"
local tree = require "orrery.nn.module_tree"

local Optimizer = { __name = "Optimizer", __metatable = false }
Optimizer.__index = Optimizer

-- The definition that a group's parameters follow.
function Optimizer:def_of(group)
  local other = group > 0 and self.groups[group].optimizer
  return other and other.def or self.def
end

-- Says it if this optimizer trains a parameter in another run, or loop, too: somebody may expect one momentum of both.
local function tell_shared(self, params, groups)
  local shared
  for _, parameter in ipairs(params) do
    local key = parameter:identity()
    local def = self:def_of(groups[key])
    if def.counted or #def.states > 0 then
      if self.users[key] == parameter then shared = shared or parameter end
      self.users[key] = parameter
    end
  end
  if shared and orrery.world.rank == 0 then
    io.stderr:write(("orrery: %s: this %s trains '%s' elsewhere too: each run keeps optimizer states of its own\n"):format(
      engine.here(), self.name, shared.name))
  end
end

-- The optimizer as one program uses it for a model, with states of its own, which `make` makes; groups are by the names
-- of now. Its `params` are those parameters that no group freezes. `clip` and `clip_value`: of gradients whose group does
-- not say it.
function Optimizer:bound(model, make, clip, clip_value)
  local all, paths = tree.parameters(model), tree.paths(model)
  grouping.refuse_idle(self.name, self.groups, all, paths)
  local groups, params = {}, {}
  for _, parameter in ipairs(all) do
    local index = grouping.index_of(self.groups, parameter, paths)
    groups[parameter:identity()] = index
    if index == 0 or not self.groups[index].frozen then params[#params + 1] = parameter end
  end
  tell_shared(self, params, groups)
  local bound = {
    states = {}, group = groups, make = make, params = params, holders = tree.holders(model), clip_value = clip_value,
    clips = grouping.clips(self.groups, params, groups, clip or 0),
  }
  return setmetatable(bound, { __index = self })
end

local function scalar_name(group, option) return ("optim.%d.%s"):format(group, option) end

local function is_runtime(name, value) return name == "lr" or is_callable(value) end

-- A group's options as numbers at a step.
local function at_step(options, step)
  local numbers = {}
  for name, value in pairs(options) do
    numbers[name] = is_callable(value) and value(step) or value
  end
  return numbers
end

-- The numbers of a step by the names that the program knows.
function Optimizer:scalars(step)
  if self.averages and self.averages.made ~= averages.made and self.averages.count ~= averages.count(self.params) then
    orrery.fail "averaged: the average was made after the first step of this run, which would not update it: make it before"
  end
  local values = {}
  for group = 0, #self.groups do
    local options = self.options[group]
    local numbers = at_step(options, step)
    for name, value in any_next, options do
      if is_runtime(name, value) then values[scalar_name(group, name)] = numbers[name] end
    end
    local scalars = self:def_of(group).scalars
    if scalars then
      for name, value in pairs(scalars(step, numbers)) do
        values[scalar_name(group, name)] = value
      end
    end
  end
  return values
end

-- What the update of a parameter sees as `o`: numbers, and run-time scalars for the rest. `count`: of its updates, if
-- they are counted.
function Optimizer:handles(group, parameter, count)
  local options = self.options[group]
  local dtype = parameter.dtype == "f64" and "f64" or "f32"
  local known = {
    count = count and count:cast(dtype), path = parameter.name, held_by = self.holders[parameter:identity()] or {},
  }
  return setmetatable(known, {
    __index = function(_, name)
      local value = options[name]
      if value ~= nil and not is_runtime(name, value) then return value end
      return engine.scalar(scalar_name(group, name), dtype)
    end,
  })
end

-- The shape of a parameter's state, nil if it has none of this name, and the dtype.
local function shape_of(def, name, parameter)
  local of_dims = def.shapes[name]
  if not of_dims then return parameter.shape, parameter.dtype end
  local shape = of_dims(parameter.shape)
  local single = shape and #shape == 0 and parameter.dtype:find "16"
  return shape, single and "f32" or parameter.dtype
end

-- Of a bound optimizer.
function Optimizer:states_of(parameter)
  local key = parameter:identity()
  local made = self.states[key]
  if not made then
    local def = self:def_of(self.group[key])
    local function make(name, shape, dtype)
      made[name] = self.make(shape, { dtype = dtype, name = ("optim.%s.%s"):format(parameter.name, name) })
    end
    made = {}
    for _, name in ipairs(def.states) do
      local shape, dtype = shape_of(def, name, parameter)
      if shape then make(name, shape, dtype) end
    end
    if def.counted then
      make("count", {}, "f32")
      engine.counts(made.count, made[def.states[1]] or parameter)
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

-- A count with this update.
local function counted(count)
  local now = count + 1
  count:update(now)
  return now
end

-- Traces the update of one parameter by a bound optimizer; returns its new value.
function Optimizer:trace(parameter, value, gradient)
  local states, wide = self:states_of(parameter), {}
  local group = self.group[parameter:identity()]
  local def = self:def_of(group)
  for _, name in ipairs(def.states) do wide[name] = states[name] and widened(states[name]) end
  local options = self:handles(group, parameter, def.counted and counted(states.count))
  local largest = group > 0 and self.groups[group].clip_value or self.clip_value or 0
  gradient = widened(gradient)
  if largest > 0 then gradient = gradient:clamp(-largest, largest) end
  local new, changed = def.update(widened(value), gradient, wide, options)
  for name, state in pairs(changed or {}) do
    if not wide[name] then
      orrery.fail(("%s: update returned a state '%s' that 'states' does not list"):format(
        self.name, name))
    end
    states[name]:update(rounded(state, states[name]))
  end
  new = rounded(new, parameter)
  if not self.averages or self.averages.made ~= averages.made then
    self.averages = { made = averages.made, count = averages.count(self.params) }
  end
  averages.follow(parameter, new, self.params)
  return new
end

--- Optimizer:attach(model)
--- For own loops: an object whose update(gradients) changes the model's parameters, but those that are frozen then.
--- Words of the world take it for the list of its states.
---@param model orrery.Module|table
---@return orrery.Attached
function Optimizer:attach(model) return attach(self, model) end

Optimizer.attach = require "orrery.checked"("Optimizer", "attach", Optimizer.attach, "optim/define")

return function(name, def)
  def = orrery.options("define", def, {
    options = {}, states = {}, shapes = {}, scalars = false, counted = false, update = false,
  })
  if not def.update then
    orrery.fail "define: update is missing: function(p, g, s, o) return new_p, {state = new} end"
  end
  for _, state in ipairs(def.counted and def.states or {}) do
    if state == "count" then orrery.fail "define: with counted = true the state 'count' is the library's: rename yours" end
  end
  grouping.refuse_options(def.options)
  return function(given)
    local defaults = { groups = {} }
    for option, value in pairs(def.options) do defaults[option] = value end
    local own = orrery.options(name, given, defaults)
    local groups = own.groups
    own.groups, defaults.groups = nil, nil
    grouping.check_values(name, own, defaults)
    grouping.check(name, groups, defaults)
    local options = { [0] = own }
    for i, group in ipairs(groups) do options[i] = grouping.options_of(group, own) end
    local optimizer = {
      name = name, def = def, groups = groups, options = options,
      users = setmetatable({}, { __mode = "v" }), -- the parameters that programs train with it, by identity
    }
    return setmetatable(optimizer, Optimizer)
  end
end
