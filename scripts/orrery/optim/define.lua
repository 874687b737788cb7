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
local tree = require "orrery.nn.module_tree"

local Optimizer = { __name = "Optimizer", __metatable = false }
Optimizer.__index = Optimizer

local function matches(pattern, paths)
  for _, path in ipairs(paths) do
    if orrery.glob(pattern, path) then return true end
  end
  return false
end

local function patterns_of(group) return type(group.match) == "table" and group.match or { group.match } end

-- The index of the group of a parameter with these paths; 0 is the optimizer's own options. The first match counts.
function Optimizer:group_of(paths)
  for i, group in ipairs(self.groups) do
    for _, pattern in ipairs(patterns_of(group)) do
      if matches(pattern, paths) then return i end
    end
  end
  return 0
end

-- Some of the paths, the one that is most like the pattern first.
local function shown(pattern, paths)
  table.sort(paths, orrery.natural_less)
  local near = orrery.did_you_mean(pattern:gsub("%*", ""), paths)
  local more = #paths > 6 and (", ... (%d in all)"):format(#paths) or ""
  return near .. "; there are " .. table.concat(paths, ", ", 1, math.min(#paths, 6)) .. more
end

-- Fails if a pattern of a group matches no parameter, or a group gets none because those before it have taken them.
local function refuse_idle_groups(self, params, paths)
  local taken, all = {}, {}
  for _, parameter in ipairs(params) do
    local own = paths[parameter:identity()]
    taken[self:group_of(own)] = true
    table.move(own, 1, #own, #all + 1, all)
  end
  for i, group in ipairs(self.groups) do
    for _, pattern in ipairs(patterns_of(group)) do
      if not matches(pattern, all) then
        orrery.fail(("%s group %d: match '%s' matches no parameter%s"):format(self.name, i, pattern, shown(pattern, all)))
      end
    end
    if not taken[i] then
      orrery.fail(("%s group %d: what match '%s' matches is in groups before it, and the first that matches counts: list "
        .. "it earlier"):format(self.name, i, table.concat(patterns_of(group), "', '")))
    end
  end
end

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
-- of now. Its `params` are those parameters that no group freezes.
function Optimizer:bound(model, make)
  local all, paths = tree.parameters(model), tree.paths(model)
  refuse_idle_groups(self, all, paths)
  local groups, params = {}, {}
  for _, parameter in ipairs(all) do
    local index = self:group_of(paths[parameter:identity()])
    groups[parameter:identity()] = index
    if index == 0 or not self.groups[index].frozen then params[#params + 1] = parameter end
  end
  tell_shared(self, params, groups)
  local bound = { states = {}, group = groups, make = make, params = params, holders = tree.holders(model) }
  return setmetatable(bound, { __index = self })
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
  local new, changed = def.update(widened(value), widened(gradient), wide, options)
  for name, state in pairs(changed or {}) do
    if not wide[name] then
      orrery.fail(("%s: update returned a state '%s' that 'states' does not list"):format(
        self.name, name))
    end
    states[name]:update(rounded(state, states[name]))
  end
  return rounded(new, parameter)
end

--- Optimizer:attach(model)
--- For own loops: an object whose update(gradients) changes the model's parameters, but those that are frozen then.
--- Words of the world take it for the list of its states.
---@param model orrery.Module|table
---@return orrery.Attached
function Optimizer:attach(model) return attach(self, model) end

Optimizer.attach = require "orrery.checked"("Optimizer", "attach", Optimizer.attach, "optim/define")

local function check_group_optimizer(name, group)
  local other = group.optimizer
  if orrery.type(other) ~= "Optimizer" then
    orrery.fail(("%s group: optimizer is %s; write optim.adamw{lr = 1e-3}"):format(name, orrery.type(other)))
  end
  if #other.groups > 0 then
    orrery.fail(("%s group: its optimizer %s has groups of its own: list them in one place"):format(name, other.name))
  end
end

local anything = { match = true, optimizer = true } -- checked where they are used

-- Numbers may be functions of the step; what is neither a number nor true or false by default may be anything.
local function check_values(name, values, defaults)
  for option, default in pairs(defaults) do
    local value, flag = values[option], type(default) == "boolean" and not anything[option]
    local number = type(value) == "number" or type(value) == "function"
    if flag and type(value) ~= "boolean" or type(default) == "number" and not number then
      orrery.fail(("%s: %s is %s, expected %s"):format(name, option, engine.describe(value),
        flag and "true or false" or "a number or a function of the step"))
    end
  end
end

local function check_match(name, match)
  if not match then orrery.fail(name .. " group: match is missing: a path pattern or a list of them") end
  local list = type(match) == "table" and match or { match }
  for i = 1, math.max(#list, 1) do
    if type(list[i]) ~= "string" then
      orrery.fail(("%s group: match is %s, expected a path pattern or a list of them"):format(
        name, engine.describe(#list > 0 and list[i] or match)))
    end
  end
end

-- A group with an optimizer has its options there.
local function check_groups(name, groups, defaults)
  if type(groups) ~= "table" then
    orrery.fail(("%s: groups is %s, expected a list of tables"):format(name, engine.describe(groups)))
  end
  local allowed = { match = false, frozen = false, optimizer = false }
  local of_others = { match = false, frozen = false, optimizer = false }
  for key, value in pairs(defaults) do allowed[key] = value end
  for key in pairs(groups) do
    if math.type(key) ~= "integer" then
      orrery.fail(("%s: groups has '%s', expected a list of tables"):format(name, tostring(key)))
    end
  end
  for _, group in ipairs(groups) do
    local known = group.optimizer and of_others or allowed
    check_values(name .. " group", orrery.options(name .. " group", group, known), known)
    check_match(name, group.match)
    if group.optimizer then check_group_optimizer(name, group) end
  end
end

-- The options of a group: those of its optimizer, or else `own` but for what it says.
local function options_of(group, own)
  if group.optimizer then return group.optimizer.options[0] end
  local options = {}
  for option, value in pairs(own) do
    if group[option] ~= nil then value = group[option] end
    options[option] = value
  end
  return options
end

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
  return function(given)
    local defaults = { groups = {} }
    for option, value in pairs(def.options) do defaults[option] = value end
    local own = orrery.options(name, given, defaults)
    local groups = own.groups
    own.groups, defaults.groups = nil, nil
    check_values(name, own, defaults)
    check_groups(name, groups, defaults)
    local options = { [0] = own }
    for i, group in ipairs(groups) do options[i] = options_of(group, own) end
    local optimizer = {
      name = name, def = def, groups = groups, options = options,
      users = setmetatable({}, { __mode = "v" }), -- the parameters that programs train with it, by identity
    }
    return setmetatable(optimizer, Optimizer)
  end
end
