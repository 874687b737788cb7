-- SPDX-License-Identifier: Apache-2.0
--
-- From a loss function to something that runs: compile, value_and_grad, func.
local _, orrery = ...
local engine = orrery.engine
local args = require "orrery.args"
local grouping = require "orrery.optimizer_groups"
local plan, search = require "orrery.plan", require "orrery.search"
local tree = require "orrery.nn.module_tree"

local function no_scalars() return {} end

local function check_loss(what, loss)
  if type(loss) ~= "function" and orrery.type(loss) ~= "Module" then
    orrery.fail(("%s: the loss is %s, expected a function of the batch"):format(
      what, orrery.type(loss)))
  end
  return type(loss) == "function" and loss or function(batch) return loss(batch) end
end

local M = {}

-- The batch is dealt where its strategy is installed.
function M.default_stack()
  for _, name in ipairs(engine.strategies()) do
    if name == "data" then return { orrery.strategy.data {} } end
  end
  return {}
end

-- One entry or a list of entries, as strategy.NAME{} makes them.
local function strategies(given)
  local list = given.name and { given } or given
  for i, entry in ipairs(list) do
    if type(entry) ~= "table" or not entry.name then
      orrery.fail(("compile: strategy[%d] is %s; write strategy.NAME{...}"):format(
        i, orrery.type(entry)))
    end
  end
  return list
end

local function parameters_of(what, model)
  local all = tree.parameters(model)
  if #all == 0 then
    orrery.fail(what .. ": the model has no parameters: parts that are kept in m.name = ... count")
  end
  return all
end

--- orrery.compile(loss, options)
--- A training step. The loss gets the batch as a table of tensors and returns the loss and, if wanted,
--- {name = tensor} to fetch by result:get(name).
---@param loss orrery.Module|fun(batch:table):orrery.Tensor
---@param options table
---@option params orrery.Module|table the model whose parameters are trained; required
---@option optimizer orrery.Optimizer required; each run keeps optimizer states of its own
---@option microbatches integer=0 pieces of the batch whose gradients are added in one order, which the bits depend on; 0:
---as many as ranks share the batch
---@option clip number=0 the largest norm of all gradients together, but of groups with a `clip_norm`; 0: any
---@option clip_value number=0 the largest element of a gradient, after that, and in groups without their own; 0: any
---@option grad_norm boolean=true results tell the norm of all gradients before clipping
---@option numerics string="exact" "fast": matrix products in any order, on GPUs in TF32, on CPUs of bf16 by AMX and 3 x 3 convolutions by Winograd
---@option reduce string="canonical" "fast": sums over the batch in any order, one gradient for all microbatches
---@option strategy orrery.Strategy|orrery.Strategy[]={strategy.data{}} how the work is spread
---@option name string="" of the run where it is watched, and of its directory in the run's; left out: "run-2" of the second
---@return orrery.Run
function M.compile(loss, options)
  args.settle()
  local o = orrery.options("compile", options, {
    params = false, optimizer = false, microbatches = 0, clip = 0, clip_value = 0,
    grad_norm = true, -- also where nothing is clipped
    numerics = "exact", -- "fast": kernels may compute matrix products in any order, and of f32 in TF32
    reduce = "canonical", -- "fast": not the bits of one process
    strategy = M.default_stack(),
    name = "",
  })
  if o.numerics ~= "exact" and o.numerics ~= "fast" then
    orrery.fail(("compile: numerics is '%s': write \"exact\" or \"fast\""):format(tostring(o.numerics)))
  end
  if o.reduce ~= "canonical" and o.reduce ~= "fast" then
    orrery.fail(("compile: reduce is '%s': write \"canonical\" or \"fast\""):format(tostring(o.reduce)))
  end
  loss = check_loss("compile", loss)
  if not o.params then
    orrery.fail "compile: params is missing: the model whose parameters are trained"
  end
  if not o.optimizer then
    orrery.fail "compile: optimizer is missing: for example optim.adamw{lr = 1e-3}"
  end
  local optimizer = o.optimizer
  if orrery.type(optimizer) == "Lbfgs" then
    orrery.fail "compile: optim.lbfgs is a loop of its own: call its :step(batch), without orrery.compile"
  end
  if orrery.type(optimizer) ~= "Optimizer" then
    orrery.fail(("compile: optimizer is %s; write optim.adamw{lr = 1e-3}"):format(
      orrery.type(optimizer)))
  end
  parameters_of("compile", o.params)
  for _, limit in ipairs { "clip", "clip_value" } do grouping.check_limit("compile", limit, o[limit]) end
  optimizer = optimizer:bound(o.params, engine.buffer, o.clip, o.clip_value)
  local stack = strategies(o.strategy)
  local run = engine.run {
    loss = loss,
    params = optimizer.params, -- a step trains those that are not frozen when it is taken
    states = tree.states(o.params),
    unchanged = tree.watch(o.params),
    gradients = {},
    update = function(...) return optimizer:trace(...) end,
    scalars = function(step) return optimizer:scalars(step) end,
    microbatches = o.microbatches,
    clips = optimizer.clips,
    grad_norm = o.grad_norm,
    alone = false,
    fast = o.numerics == "fast",
    fast_sums = o.reduce == "fast",
    strategies = stack,
    watched = tree.functions(o.params),
    name = o.name,
  }
  plan.remember(run, stack)
  search.watch(run, stack, o.microbatches)
  return run
end

-- A run whose steps leave the gradients of the parameters that are not frozen in states, and these: run, gradients,
-- parameters. `alone`: those of this rank, without the others.
function M.gradients(what, loss, model, microbatches, stack, alone)
  args.settle()
  local params, gradients = {}, {}
  for _, parameter in ipairs(parameters_of(what, model)) do
    if not parameter.frozen then
      params[#params + 1] = parameter
      gradients[#gradients + 1] = engine.buffer(parameter.shape, {
        dtype = parameter.dtype, name = "grad." .. parameter.name,
      })
    end
  end
  local run = engine.run {
    loss = check_loss(what, loss), params = params, gradients = gradients,
    states = tree.states(model), unchanged = tree.watch(model),
    scalars = no_scalars, microbatches = microbatches, clips = {}, grad_norm = false, alone = alone, fast = false,
    fast_sums = false, strategies = stack, name = "", watched = tree.functions(model),
  }
  return run, gradients, params
end

--- orrery.value_and_grad(loss, model)
--- A function of a batch that returns the loss and the gradients of this rank alone, in the order of
--- orrery.parameters(model). The next call overwrites the gradients.
---@param loss orrery.Module|fun(batch:table):orrery.Tensor
---@param model orrery.Module|table
---@return fun(batch:table):number,orrery.State[]
function M.value_and_grad(loss, model)
  local run, gradients = M.gradients("value_and_grad", loss, model, 1, {}, true)
  return function(batch) return run:step(batch):mean(), gradients end
end

--- orrery.func(fn)
--- The compiled form of a function of tensors. Called with HostTensors, fields of a batch, numbers or
--- lists; returns HostTensors.
---@param fn fun(...):orrery.Tensor
---@return fun(...):orrery.HostTensor
function M.func(fn)
  if type(fn) ~= "function" then
    orrery.fail(("func: %s given, expected a function"):format(orrery.type(fn)))
  end
  local program = engine.func(fn)
  return function(...) return program:run { ... } end
end

return M
