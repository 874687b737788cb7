-- SPDX-License-Identifier: Apache-2.0
--
--- optim.lbfgs(loss, options)
--- L-BFGS (Liu and Nocedal, 1989), which computes a loss several times for each step and therefore is a loop of its own:
--- local lbfgs = optim.lbfgs(loss, { params = model }), and lbfgs:step(batch) for each batch, which is best all of the
--- data. PyTorch's steps, on any number of ranks.
---@param loss orrery.Module|fun(batch:table):orrery.Tensor as orrery.compile takes it, with one result
---@param options table
---@option params orrery.Module|table the model whose parameters are trained; required
---@option lr number=1 the length of a step, or the first one that a line search tries
---@option max_iter integer=20 iterations of a step
---@option max_eval integer=0 evaluations of the loss in a step after which it ends; 0: 5/4 of max_iter
---@option tolerance_grad number=1e-7 a step ends where no element of the gradient is larger
---@option tolerance_change number=1e-9 and where neither loss nor parameters change by more
---@option history integer=100 pairs of changes that directions are made of
---@option line_search string='none' or strong_wolfe: the length of a step is looked for
---@option microbatches integer=0 as of orrery.compile
---@return orrery.Lbfgs
local _, orrery = ...
local averages = require "orrery.averages"
local compile, flat = require "orrery.compile", require "orrery.flat_vectors"
local checked, weights, wolfe = require "orrery.checked", require "orrery.weights", require "orrery.wolfe"

local Lbfgs = { __name = "Lbfgs", __metatable = false }
Lbfgs.__index = Lbfgs

-- Functions of vectors (flat_vectors.lua): g is the gradient, d the direction.
local function dot(a, b) return (a * b):sum() end
local function largest(a) return a:abs():max() end
local function total(a) return a:abs():sum() end
local function copy(to, from) to:update(from) end
local function negative(to, from) to:update(-from) end
local function scaled(to, factor) to:update(to * factor) end

-- y and s, what the gradient and the parameters have changed by: s y, and y y.
local function changes(g, before, d, t)
  local y = g - before
  return (y * (d * t)):sum(), (y * y):sum()
end
local function remember(ys, ss, g, before, d, t, at)
  local count = g.shape[1]
  ys:update(ys:update_slice((g - before):reshape(1, count), 1, at))
  ss:update(ss:update_slice((d * t):reshape(1, count), 1, at))
end

-- The two loops over the pairs: newest first, and oldest first.
local function row(rows, at) return rows:slice_at(1, at, 1):reshape(-1) end
local function back(ys, ss, d, ro, at)
  local a = (row(ss, at) * d):sum() * ro
  d:update(d - row(ys, at) * a)
  return a
end
local function forth(ys, ss, d, ro, a, at)
  local b = (row(ys, at) * d):sum() * ro
  d:update(d + row(ss, at) * (a - b))
end

-- Loss and gradient of the parameters as they are, the latter in a vector that none of the points has.
function Lbfgs:evaluate(batch, ...)
  local taken, g = {}, nil
  for _, point in ipairs { ... } do taken[point.g] = true end
  for _, vector in ipairs(self.vectors) do
    if not taken[vector] then g = vector end
  end
  local f = self.run:step(batch):mean()
  self.evaluations = self.evaluations + 1
  self.space:gather(g, self.gradients)
  return { f = f, g = g, t = 0 }
end

-- Takes the last iteration's changes into the history.
function Lbfgs:learn(g)
  local space, past = self.space, self.past
  local ys, yy = space:call(changes, { g, self.before, self.d }, self.t)
  if not (ys > 1e-10) then return end
  local at = #past
  if at == self.options.history then at = table.remove(past, 1).at end
  past[#past + 1] = { at = at, ro = 1 / ys }
  space:call(remember, { self.ys, self.ss, g, self.before, self.d }, self.t, at)
  self.scale = ys / yy
end

-- The direction from the gradient and the history.
function Lbfgs:turn(g)
  local space, past, a = self.space, self.past, {}
  space:call(negative, { self.d, g })
  if self.iterations == 1 then return end
  local rows = { self.ys, self.ss, self.d }
  for i = #past, 1, -1 do a[i] = space:call(back, rows, past[i].ro, past[i].at) end
  space:call(scaled, { self.d }, self.scale)
  for i, pair in ipairs(past) do space:call(forth, rows, pair.ro, a[i], pair.at) end
end

-- Moves the parameters along the direction and returns the point there, nil where it need not be known.
function Lbfgs:advance(batch, here, slope, left, is_last)
  local o, space, params = self.options, self.space, self.params
  space:gather(self.from, params)
  local function go(t) space:move(params, self.from, self.d, t) end
  if o.line_search == "none" then
    go(self.t)
    return not is_last and self:evaluate(batch) or nil
  end
  local function evaluate(t, ...)
    go(t)
    local point = self:evaluate(batch, ...)
    point.t, point.slope = t, space:call(dot, { point.g, self.d })
    return point
  end
  here.t, here.slope = 0, slope
  local size = space:call(largest, { self.d })
  local best = wolfe.search(evaluate, here, self.t, left, size, o.tolerance_change)
  self.t = best.t
  go(best.t)
  return best
end

-- One iteration from a point; returns the next one, nil at the end of the step. `left`: evaluations that remain.
function Lbfgs:iterate(batch, here, left, is_last)
  local o, space = self.options, self.space
  self.iterations = self.iterations + 1
  if self.iterations > 1 then self:learn(here.g) end
  self:turn(here.g)
  space:call(copy, { self.before, here.g })
  self.t = o.lr
  if self.iterations == 1 then self.t = math.min(1, 1 / space:call(total, { here.g })) * o.lr end
  local slope = space:call(dot, { here.g, self.d })
  if slope > -o.tolerance_change then return nil end
  local before = self.evaluations
  local there = self:advance(batch, here, slope, left, is_last)
  if is_last or not there or self.evaluations - before >= left then return nil end
  if space:call(largest, { there.g }) <= o.tolerance_grad then return nil end
  if space:call(largest, { self.d }) * self.t <= o.tolerance_change then return nil end
  return math.abs(there.f - here.f) >= o.tolerance_change and there or nil
end

-- The iterations of a step; returns the loss before them.
function Lbfgs:minimise(batch)
  local o = self.options
  local most = o.max_eval > 0 and o.max_eval or o.max_iter * 5 // 4
  local begin = self.evaluations
  local here = self:evaluate(batch)
  local first = here.f
  if self.space:call(largest, { here.g }) <= o.tolerance_grad then return first end
  for iteration = 1, o.max_iter do
    here = self:iterate(batch, here, most - (self.evaluations - begin), iteration == o.max_iter)
    if not here then break end
  end
  return first
end

--- Lbfgs:step(batch)
--- Some iterations on one batch, for which it computes the loss as often as it needs to; all ranks call it. Returns the
--- loss before the step.
---@param batch table as run:step takes it
---@return number
function Lbfgs:step(batch)
  local first = self:minimise(batch)
  averages.step(self.params, self)
  return first
end

-- What a file has: vectors, the history and, in `numbers`, all else.
function Lbfgs:tensors()
  self.numbers = self.numbers or orrery.buffer({ 5 + 2 * self.options.history }, { dtype = "f64" })
  return { d = self.d, before = self.before, ys = self.ys, ss = self.ss, numbers = self.numbers }
end

--- Lbfgs:save(path)
--- Writes the history and what else steps keep to a safetensors file; all ranks call it. The model's weights are its own
--- save_weights'.
---@param path string
function Lbfgs:save(path)
  local tensors, numbers = self:tensors(), { self.iterations, self.evaluations, self.t, self.scale, #self.past }
  for i = 1, self.options.history do
    local pair = self.past[i] or { at = 0, ro = 0 }
    numbers[#numbers + 1], numbers[#numbers + 2] = pair.at, pair.ro
  end
  self.numbers:write(orrery.tensor(numbers, "f64"))
  weights.save_weights(tensors, path)
end

--- Lbfgs:load(path)
--- Goes on from such a file.
---@param path string
function Lbfgs:load(path)
  weights.load_weights(self:tensors(), path)
  local numbers = self.numbers:read():tolist()
  self.iterations, self.evaluations = math.tointeger(numbers[1]), math.tointeger(numbers[2])
  self.t, self.scale, self.past = numbers[3], numbers[4], {}
  for i = 1, numbers[5] do self.past[i] = { at = math.tointeger(numbers[4 + 2 * i]), ro = numbers[5 + 2 * i] } end
end

for _, name in ipairs { "step", "save", "load" } do Lbfgs[name] = checked("Lbfgs", name, Lbfgs[name], "optim/lbfgs") end

local defaults = {
  params = false, lr = 1, max_iter = 20, max_eval = 0, tolerance_grad = 1e-7, tolerance_change = 1e-9, history = 100,
  line_search = "none", microbatches = 0,
}

local function check(o)
  if not o.params then orrery.fail "lbfgs: params is missing: the model whose parameters are trained" end
  for _, name in ipairs { "max_iter", "history" } do
    if o[name] < 1 then orrery.fail(("lbfgs: %s = %g, expected at least 1"):format(name, o[name])) end
  end
  if o.line_search ~= "none" and o.line_search ~= "strong_wolfe" then
    orrery.fail(("lbfgs: line_search = %q: give \"none\" or \"strong_wolfe\""):format(o.line_search))
  end
end

return function(loss, options)
  local o = orrery.options("lbfgs", options, defaults)
  check(o)
  local run, gradients, params = compile.gradients("lbfgs", loss, o.params, o.microbatches, compile.default_stack(), false)
  if #params == 0 then orrery.fail "lbfgs: all parameters are frozen" end
  local space = flat("lbfgs", "optim.lbfgs", params)
  return setmetatable({
    options = o, run = run, gradients = gradients, params = params, space = space,
    vectors = { space:vector(), space:vector(), space:vector() },
    d = space:vector(), before = space:vector(), from = space:vector(), ys = space:rows(o.history), ss = space:rows(o.history),
    past = {}, scale = 1, t = 0, iterations = 0, evaluations = 0,
  }, Lbfgs)
end
