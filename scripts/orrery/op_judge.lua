-- SPDX-License-Identifier: Apache-2.0
--
--- orrery.check_op(name, what)
--- Tries an op of orrery.op, or of a plugin, on its examples, in f64, and is an error where it does not hold what it
--- says: its shape; its derivative and that one's own against central differences; along each dim that a plugin says may
--- be cut, that of the parts of its inputs it makes the parts of its results, or summands of them; that two and three
--- ranks with parts of its inputs make its results, where a plugin writes what they do; that a kernel makes of them what
--- the known ops of the plugin do.
---@param name string as in orrery.ops
---@param what? 'shape'|'gradient'|'second'|'factors'|'parts'|'known'|'training' one of these alone; "training" prints the bits of three steps
local _, orrery = ...
local op = require "orrery.op"

local function flat(value, into)
  into = into or {}
  if type(value) ~= "table" then
    into[#into + 1] = value
  else
    for _, each in ipairs(value) do flat(each, into) end
  end
  return into
end

-- numbers[at + 1], ... in the shape, nested; a scalar as itself.
local function nested(numbers, shape, dim, at)
  if dim > #shape then return numbers[at.next], (function() at.next = at.next + 1 end)() end
  local list = {}
  for i = 1, shape[dim] do list[i] = nested(numbers, shape, dim + 1, at) end
  return list
end

local function elements(shape)
  local n = 1
  for i = 1, #shape do n = n * shape[i] end
  return n
end

local is_real = { f32 = true, f64 = true, bf16 = true, f16 = true }

-- Between 0.5 and 1.5, without a pattern; whole numbers 0 and 1 where integers are wanted.
local function values(input, seed)
  local numbers = {}
  for i = 1, elements(input.shape) do
    local x = math.sin(seed * 131 + i * 37) * 43758.5453
    x = x - math.floor(x)
    numbers[i] = is_real[input.dtype] and 0.5 + x or math.floor(2 * x)
  end
  return numbers
end

local function tensor(input, numbers)
  return orrery.tensor(nested(numbers, input.shape, 1, { next = 1 }), is_real[input.dtype] and "f64" or input.dtype)
end

-- What is differentiated, and its derivatives by the real inputs, as functions of lists of numbers.
local function functions(d, inputs, second)
  local reals = {}
  for i, input in ipairs(inputs) do
    if is_real[input.dtype] then reals[#reals + 1] = i end
  end
  local function scalar(xs)
    local sum = 0
    for k, y in ipairs { d.call(table.unpack(xs)) } do
      local waves = (orrery.iota(elements(y.shape)):cast "f64" + k):reshape(y.shape):sin() + 1.5
      sum = (y:cast "f64" * waves):sum() + sum
    end
    return sum
  end
  local function slopes(y, xs)
    local by = {}
    for k, i in ipairs(reals) do by[k] = xs[i] end
    return orrery.grad(y, by)
  end
  -- Zeros keep what does not depend on an input differentiable by it.
  local function whole(xs)
    local zero = 0
    for _, i in ipairs(reals) do zero = (xs[i] * 0):sum() + zero end
    local y = scalar(xs) + zero
    if not second then return y end
    for k, slope in ipairs(slopes(y, xs)) do zero = zero + (slope * (1 + 0.25 * k)):sum() end
    return zero
  end
  return reals, orrery.func(function(...) return whole { ... } end), orrery.func(function(...)
    local xs = { ... }
    return table.unpack(slopes(whole(xs), xs))
  end)
end

local function check_slopes(d, inputs, second)
  local numbers, tensors = {}, {}
  for i, input in ipairs(inputs) do
    numbers[i] = values(input, i)
    tensors[i] = tensor(input, numbers[i])
  end
  local reals, value, derivative = functions(d, inputs, second)
  local slopes = { derivative(table.unpack(tensors)) }
  for k, i in ipairs(reals) do
    local got = flat(slopes[k]:tolist())
    for e = 1, math.min(#numbers[i], 48) do
      local function at(step)
        local moved = { table.unpack(numbers[i]) }
        moved[e] = moved[e] + step
        local xs = { table.unpack(tensors) }
        xs[i] = tensor(inputs[i], moved)
        return value(table.unpack(xs)):item()
      end
      local want = (at(1e-5) - at(-1e-5)) / 2e-5
      if not (math.abs(got[e] - want) <= 1e-5 + 1e-4 * math.abs(want)) then
        orrery.fail(("ops.%s: the %s by element %d of input %d is %.8g, central differences say %.8g"):format(d.name,
          second and "second derivative" or "derivative", e, i, got[e], want))
      end
    end
  end
end

-- The places of the dims that belong to a factor, by input; and the extent that they share.
local function cut_by(factor, factors, inputs)
  local places, extent = {}, nil
  for i, list in ipairs(factors) do
    for dim, each in ipairs(list) do
      if each == factor then places[i], extent = dim, inputs[i].shape[dim] end
    end
  end
  return places, extent
end

-- The dim of this factor; nil: there is none.
local function dim_of(factor, factors)
  for dim, each in ipairs(factors) do
    if each == factor then return dim end
  end
end

local function are_near(got, want)
  for e = 1, math.max(#got, #want) do
    local a, b = got[e] or 0 / 0, want[e] or 0 / 0
    if not (math.abs(a - b) <= 1e-9 * (1 + math.abs(b))) then return false, a, b end
  end
  return true
end

local function compare_part(d, k, dim, part, got, want)
  local near, a, b = are_near(got, want)
  if near then return end
  orrery.fail(("ops.%s: factors say that dim %d of the result%s may be cut, but of the inputs' elements %d to %d along "
    .. "it the op makes %.8g where the whole result has %.8g: give that dim the factor -1"):format(d.name, dim,
    d.results > 1 and " " .. k or "", part[1], part[2], a, b))
end

local function compare_sum(d, k, factor, got, want)
  local near, a, b = are_near(got, want)
  if near then return end
  orrery.fail(("ops.%s: factors say that result %d is a sum over the factor %d, but what the op makes of two parts of its "
    .. "inputs adds up to %.8g where the whole result has %.8g: give the inputs' dims the factor -1"):format(d.name, k,
    factor, a, b))
end

-- Adds the numbers of `more` to those of `sum`.
local function add_to(sum, more)
  for e = 1, math.max(#sum, #more) do sum[e] = (sum[e] or 0) + (more[e] or 0 / 0) end
end

-- Computes the op of two parts of its inputs, cut along one factor, and compares with parts of the whole results, or, of
-- results that do not have the factor, their sum with the whole.
local function check_factor(d, inputs, tensors, factors, dims, factor)
  local places, extent = cut_by(factor, factors, inputs)
  if not extent or extent < 2 then return end
  local wholes, sums = { orrery.func(d.call)(table.unpack(tensors)) }, {}
  local middle = extent // 2
  for _, part in ipairs { { 1, middle }, { middle + 1, extent } } do
    local function cut(x, at) return at and x:slice(at, part[1], part[2]) or x end
    local parts = { orrery.func(function(...)
      local xs = { ... }
      for i = 1, #xs do xs[i] = cut(xs[i], places[i]) end
      return d.call(table.unpack(xs))
    end)(table.unpack(tensors)) }
    for k, got in ipairs(parts) do
      if dims[k] then
        local want = orrery.func(function(y) return cut(y, dims[k]) end)(wholes[k])
        compare_part(d, k, dims[k], part, flat(got:tolist()), flat(want:tolist()))
      else
        sums[k] = sums[k] or {}
        add_to(sums[k], flat(got:tolist()))
      end
    end
  end
  for k, sum in pairs(sums) do compare_sum(d, k, factor, sum, flat(wholes[k]:tolist())) end
end

-- The factors of the inputs' dims, each once.
local function all_factors(factors)
  local found, seen = {}, {}
  for _, list in ipairs(factors or {}) do
    for _, factor in ipairs(list) do
      if factor >= 0 and not seen[factor] then
        found[#found + 1], seen[factor] = factor, true
      end
    end
  end
  return found
end

-- Tensors of such shapes in f64, or of integers, and their types.
local function tensors_of(inputs)
  local types, tensors = {}, {}
  for i, input in ipairs(inputs) do
    tensors[i] = tensor(input, values(input, i))
    types[i] = { shape = input.shape, dtype = tensors[i].dtype }
  end
  return tensors, types
end

local function check_factors(d, inputs)
  local tensors, types = tensors_of(inputs)
  local factors, out = (d.factors or function() end)(types)
  for _, factor in ipairs(all_factors(factors)) do
    local dims = {}
    for k = 1, d.results do dims[k] = dim_of(factor, out[k]) end
    check_factor(d, inputs, tensors, factors, dims, factor)
  end
end

-- Compares what ranks make of parts of the inputs along one factor with the whole results.
local function check_on_parts(d, tensors, factor, dims, ranks)
  local function parts(...) return d.on_parts({ ... }, factor, ranks) end
  local wholes = { orrery.func(d.call)(table.unpack(tensors)) }
  for k, y in ipairs { orrery.func(parts)(table.unpack(tensors)) } do
    local got, want = flat(y:tolist()), flat(wholes[k]:tolist())
    local all = {}
    for _ = 1, dims[k] and 1 or ranks do table.move(want, 1, #want, #all + 1, all) end
    local near, a, b = are_near(got, all)
    if not near then
      orrery.fail(("ops.%s: on_parts makes %.8g in result %d on %d ranks whose inputs are cut along the factor %d, where "
        .. "the whole result has %.8g"):format(d.name, a, k, ranks, factor, b))
    end
  end
end

local function check_parts(d, inputs)
  local tensors, types = tensors_of(inputs)
  local factors, out = (d.part_factors or function() end)(types)
  for _, factor in ipairs(all_factors(factors)) do
    local dims = {}
    for k = 1, d.results do dims[k] = dim_of(factor, out[k]) end
    local _, extent = cut_by(factor, factors, inputs)
    for ranks = 2, math.min(extent, 3) do check_on_parts(d, tensors, factor, dims, ranks) end
  end
end

-- By dtype, how far two ways to compute something may be apart, of 1 + its size.
local agreement = { f64 = 1e-9, f32 = 1e-4 }

-- Compares what kernels make of the inputs with what known ops do, in the example's dtypes and in f64.
local function check_known(d, inputs)
  if not d.in_known_ops then return end
  for _, wide in ipairs { false, true } do
    local xs = {}
    for i, input in ipairs(inputs) do
      xs[i] = wide and tensor(input, values(input, i))
        or orrery.tensor(nested(values(input, i), input.shape, 1, { next = 1 }), input.dtype)
    end
    local got, want = { orrery.func(d.call)(table.unpack(xs)) }, { orrery.func(d.in_known_ops)(table.unpack(xs)) }
    for k, y in ipairs(got) do
      local mine, theirs = flat(y:tolist()), flat(want[k]:tolist())
      for e, x in ipairs(mine) do
        if not (math.abs(x - theirs[e]) <= (agreement[y.dtype] or 1e-2) * (1 + math.abs(theirs[e]))) then
          orrery.fail(("ops.%s: element %d of result %d, %s, is %.8g by a kernel and %.8g by known ops"):format(
            d.name, e, k, y.dtype, x, theirs[e]))
        end
      end
    end
  end
end

-- `shared`: by number, whether an input comes with the batch; the others are parameters.
local function train_with(d, inputs, shared)
  local params, trained, batch = {}, {}, {}
  for i, input in ipairs(inputs) do
    local data = orrery.tensor(nested(values(input, i), input.shape, 1, { next = 1 }), input.dtype)
    if shared[i] then
      batch["x" .. i] = data
    else
      params[i] = is_real[input.dtype] and orrery.parameter(input.shape, { dtype = input.dtype }) or data
      if is_real[input.dtype] then
        params[i]:write(data)
        trained[#trained + 1] = params[i]
      end
    end
  end
  local real = is_real[inputs[1].dtype]
  local scale = orrery.parameter({}, { init = orrery.nn.init.ones, dtype = real and inputs[1].dtype or "f32" })
  local run = orrery.compile(function(b)
    local xs = {}
    for i in ipairs(inputs) do xs[i] = shared[i] and b["x" .. i] or params[i] end
    if real then xs[1] = xs[1] * scale end
    local loss = 0
    for _, y in ipairs { d.call(table.unpack(xs)) } do
      y = y * (real and 1 or scale)
      loss = (y * y):mean() + loss
    end
    return loss
  end, {
    params = { scale = scale, of_op = trained }, optimizer = orrery.optim.sgd { lr = 0.01 },
    microbatches = math.min(inputs[1].shape[1], 8), strategy = { orrery.strategy.data {} },
  })
  for _ = 1, 3 do orrery.log("bits %.17g", run:step(batch):mean()) end
  orrery.log("bits %s", orrery.digest { scale = scale, of_op = trained })
end

-- Whether the first dims of two inputs belong to one factor, so that both must come with the batch.
local function share_batch(d, inputs)
  local shared = { true }
  local factors = (d.factors or function() end)(inputs)
  for i = 2, #inputs do
    shared[i] = factors ~= nil and #inputs[i].shape > 0 and factors[i][1] >= 0 and factors[i][1] == factors[1][1]
  end
  return shared
end

-- Without factors, of an op that is written in others, the other inputs are parameters if they can be.
local function train(d, inputs)
  local shared = share_batch(d, inputs)
  local ok, why = pcall(train_with, d, inputs, shared)
  if ok then return end
  local extent, again = inputs[1].shape[1], false
  for i = 2, #inputs do
    if not shared[i] and inputs[i].shape[1] == extent then shared[i], again = true, true end
  end
  if not again then error(why, 0) end
  train_with(d, inputs, shared)
end

local trials = {
  shape = function(d, inputs)
    local xs = {}
    for i, input in ipairs(inputs) do xs[i] = tensor(input, values(input, i)) end
    orrery.func(function(...) return d.call(...) end)(table.unpack(xs))
  end,
  gradient = function(d, inputs) check_slopes(d, inputs, false) end,
  second = function(d, inputs) check_slopes(d, inputs, true) end,
  factors = check_factors,
  parts = check_parts,
  known = check_known,
  training = train,
}

return function(name, what)
  local d = op.definition(name)
  local examples = d.examples()
  if #examples == 0 then orrery.fail(("ops.%s has no examples to be tried on: give some"):format(name)) end
  for _, each in ipairs(what and { what } or { "shape", "gradient", "second", "factors", "parts", "known" }) do
    if not trials[each] then orrery.fail(("check_op: there is no trial '%s'"):format(tostring(each))) end
    for _, inputs in ipairs(examples) do trials[each](d, inputs) end
  end
end
