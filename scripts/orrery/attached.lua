-- SPDX-License-Identifier: Apache-2.0
--
-- An optimizer in a loop of the script's own, with its states.
local _, orrery = ...
local engine = orrery.engine
local tree = require "orrery.nn.module_tree"
local weights = require "orrery.weights"

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

-- By the identity of a parameter, what its gradient of `gradients` is multiplied by, so that norms are within limits.
local function factors_of(clips, gradients)
  local factors = {}
  for _, clip in ipairs(clips) do
    local squares
    for _, parameter in ipairs(clip.params) do
      local gradient = gradients[parameter:identity()]
      if gradient then
        local own = (gradient.dtype:find "16" and gradient:cast "f32" or gradient):sumsq()
        squares = squares and squares + own or own
      end
    end
    local factor = squares and (clip.limit / (squares:sqrt() + 1e-6)):minimum(1)
    for _, parameter in ipairs(clip.params) do factors[parameter:identity()] = factor end
  end
  return factors
end

-- A compiled update of those of `params` that are not frozen, by gradients like these.
local function updating(optimizer, params, given)
  local states = {}
  for i, gradient in ipairs(given) do
    states[i] = orrery.type(gradient) == "State" and gradient
  end
  return engine.func(function(...)
    local inputs, next_input, gradients = { ... }, 0, {}
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
      gradients[parameter:identity()] = not parameter.frozen and gradient or nil
    end
    local factors = factors_of(optimizer.clips, gradients)
    for _, parameter in ipairs(params) do
      local gradient, factor = gradients[parameter:identity()], factors[parameter:identity()]
      if gradient and factor then gradient = gradient * factor:cast(gradient.dtype) end
      if gradient then parameter:update(optimizer:trace(parameter, parameter, gradient)) end
    end
  end)
end

local Attached = { __name = "Attached" }
Attached.__index = Attached

-- Of all parameters, in their order.
function Attached:__states()
  local list = {}
  for _, parameter in ipairs(self.params) do
    for _, state in pairs(self.optimizer:states_of(parameter)) do list[#list + 1] = state end
  end
  return list
end

--- Attached:update(gradients)
--- Changes the parameters by these gradients, one for each, in the order of orrery.parameters(model).
---@param gradients any[] a state or a HostTensor for each
function Attached:update(given)
  self.unchanged()
  if #given ~= #self.params then
    orrery.fail(("update: %d gradients given for %d parameters"):format(#given, #self.params))
  end
  local inputs, key = inputs_of(given)
  for i, parameter in ipairs(self.params) do
    if parameter.frozen then key = ("%s %d frozen"):format(key, i) end
  end
  local programs = self.programs
  programs[key] = programs[key] or updating(self.optimizer, self.params, given)
  self.steps = self.steps + 1
  programs[key]:run(inputs, self.optimizer:scalars(self.steps))
end

-- What a file has: states by their parameters' names, or places where these have none, and the number of updates.
function Attached:tensors()
  self.count = self.count or orrery.buffer({ 1 }, { dtype = "i64" })
  local tensors = { steps = self.count }
  for i, parameter in ipairs(self.params) do
    local key = parameter.name:find "^unnamed%." and tostring(i) or parameter.name
    tensors[key] = self.optimizer:states_of(parameter)
  end
  return tensors
end

--- Attached:save(path)
--- Writes the optimizer's states and how many updates it has made to a safetensors file; all ranks call it. The
--- model's weights are its own save_weights'.
---@param path string
function Attached:save(path)
  local tensors = self:tensors()
  self.count:write { self.steps }
  weights.save_weights(tensors, path)
end

-- The counts of updates that a file lacks, by the keys of their parameters: it was saved before updates were counted.
local function uncounted(tensors, path)
  local has, lacking = {}, {}
  for _, name in ipairs(engine.weights(path):names()) do has[name] = true end
  for key, states in pairs(tensors) do
    if type(states) == "table" and states.count and not has[key .. ".count"] then lacking[key] = states.count end
  end
  return lacking
end

--- Attached:load(path)
--- Goes on from such a file.
---@param path string
function Attached:load(path)
  local tensors, wanted = self:tensors(), {}
  local lacking = uncounted(tensors, path)
  for key, states in pairs(tensors) do
    wanted[key] = states
    if lacking[key] then
      wanted[key] = {}
      for name, state in pairs(states) do wanted[key][name] = name ~= "count" and state or nil end
    end
  end
  weights.load_weights(wanted, path)
  self.steps = self.count:read():tolist()[1]
  for _, count in pairs(lacking) do count:write(orrery.tensor(self.steps + 0.0)) end
end

local checked = require "orrery.checked"
for _, name in ipairs { "update", "save", "load" } do Attached[name] = checked("Attached", name, Attached[name], "attached") end

return function(optimizer, model)
  local bound, params = optimizer:bound(model, orrery.buffer), {}
  for _, parameter in ipairs(bound.params) do
    if not parameter.frozen then params[#params + 1] = parameter end
  end
  return setmetatable({
    params = params, steps = 0, programs = {}, unchanged = tree.watch(model), optimizer = bound,
  }, Attached)
end
