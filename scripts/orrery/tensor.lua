-- SPDX-License-Identifier: Apache-2.0
--
-- Tensor methods and functions that are made of others.
local _, orrery = ...
local define = require "orrery.define"
local in_single = require "orrery.in_single"

-- How many elements a dim has.
local function extent(x, dim)
  local rank = #x.shape
  if dim == 0 or math.abs(dim) > rank then
    orrery.fail(("dim %d does not exist: the tensor has %d dims, counted 1..%d or -1..-%d"):format(dim, rank, rank, rank))
  end
  return x.shape[dim]
end

-- How many elements a reduction over these dims (nil: all, a dim or a list) makes one of.
local function reduced(x, dims)
  local list = type(dims) == "table" and #dims > 0 and dims or math.type(dims) and { dims } or nil
  local n = 1
  if list then
    for _, dim in ipairs(list) do n = n * extent(x, dim) end
  else
    for _, size in ipairs(x.shape) do n = n * size end
  end
  return n
end

define([[orrery.zeros(dims: integers, dtype: dtype = 'f32') -> Tensor; A tensor of zeros.]],
  function(dims, dtype) return orrery.full(dims, 0, dtype) end)
define([[orrery.ones(dims: integers, dtype: dtype = 'f32') -> Tensor; A tensor of ones.]],
  function(dims, dtype) return orrery.full(dims, 1, dtype) end)
define([[orrery.full_like(tensor: Tensor, value: number) -> Tensor; One value in the type of another tensor.]],
  function(x, value) return orrery.full(x.shape, value, x.dtype) end)
define([[orrery.zeros_like(tensor: Tensor) -> Tensor; Zeros in the type of another tensor.]],
  function(x) return orrery.full_like(x, 0) end)
define([[orrery.ones_like(tensor: Tensor) -> Tensor; Ones in the type of another tensor.]],
  function(x) return orrery.full_like(x, 1) end)

define([[Tensor:silu() -> Tensor; x * sigmoid(x).]], function(x) return x * x:sigmoid() end)

define([[Tensor:clamp(low: number, high: number) -> Tensor; No less than `low` and no more than `high`. At these
    two the gradient passes.]],
  function(x, low, high) return x:maximum(low):minimum(high) end)

define([[Tensor:one_hot(n: integer, dtype: dtype = 'f32') -> Tensor; 0-based ids as rows of n, 1 at the id and else 0. An
    id outside of 0 to n - 1 is an error.]],
  function(ids, n, dtype)
    if ids.dtype:find "^u" then ids = ids:cast "i64" end
    local classes = orrery.iota(n, ids.dtype)
    return classes:reshape(n, 1):gather(ids):eq(classes):cast(dtype) -- gather refuses other ids
  end)

define([[Tensor:var(dims?: integers, options?) -> Tensor; Variance over dims.
    @option keep: boolean = false; keep the reduced dims with size 1
    @option correction: integer = 1; of n elements n less this many are divided by]],
  in_single(function(x, dims, o)
    local centred = x - x:mean(dims, { keep = true })
    local n = reduced(x, dims)
    local others = math.max(n - o.correction, 0)
    local mean = (centred * centred):mean(dims, { keep = o.keep })
    return others == n and mean or mean * (n / others)
  end))

define([[Tensor:std(dims?: integers, options?) -> Tensor; Standard deviation over dims: the square root of var.
    @option keep: boolean = false; keep the reduced dims with size 1
    @option correction: integer = 1; of n elements n less this many are divided by]],
  in_single(function(x, dims, o) return x:var(dims, o):sqrt() end))

-- Of what is less than the largest, so that no power overflows.
define([[Tensor:logsumexp(dims?: integers, options?) -> Tensor; Logarithm of the sum of exp(x) over dims.
    @option keep: boolean = false; keep the reduced dims with size 1]],
  in_single(function(x, dims, o)
    local top = x:max(dims, { keep = true }):stop_gradient()
    top = top:isfinite():select(top, 0)
    local sum = (x - top):exp():sum(dims, { keep = o.keep })
    top = top:reshape(sum.shape)
    return sum:log() + top
  end))

-- In log2(n) additions: x[i] + x[i - 1], then + x[i - 2], + x[i - 4], ...
define([[Tensor:cumsum(dim: integer) -> Tensor; Sums of the elements of a dim up to and with each; of
    integers in i64.]],
  in_single(function(x, dim)
    if not x.dtype:find "f" then x = x:cast "i64" end
    local n, step = extent(x, dim), 1
    while step < n do
      x = x + x:slice(dim, 1, n - step):pad(dim, n, { before = step })
      step = 2 * step
    end
    return x
  end))

-- The tensor with the dim `from` at the place `to`.
local function moved(x, from, to)
  if from == to then return x end
  local order = {}
  for dim = 1, #x.shape do order[dim] = dim end
  table.remove(order, from)
  table.insert(order, to, from)
  return x:permute(order)
end

-- Numbers in the opposite order: of integers -1 - x, which none overflows; u8 and bool have no sign.
local function opposite(x) return x.dtype:find "f" and -x or -1 - x end
local function has_no_sign(x) return x.dtype == "u8" or x.dtype == "bool" end

define([[Tensor:argmin(dim: integer = -1, options?) -> Tensor; 0-based position of the smallest of a dim.
    @option keep: boolean = false; keep the reduced dims with size 1]],
  function(x, dim, o) return opposite(has_no_sign(x) and x:cast "i32" or x):argmax(dim, o) end)

-- All of the largest elements; where they ascend, of their opposites.
define([[Tensor:sort(dim: integer = -1, options?) -> orrery.Tensor, orrery.Tensor; The elements of a dim in ascending
    order and their 0-based positions. Equal elements keep their order; NaN comes first. The gradient compares the
    positions of each row with each other: n times n.
    @option descending: boolean = false; the largest first]],
  function(x, dim, o)
    if has_no_sign(x) then
      local values, positions = x:cast("i32"):sort(dim, o)
      return values:cast(x.dtype), positions
    end
    local function flip(value) return o.descending and value or opposite(value) end
    extent(x, dim)
    local last = #x.shape
    local from = dim > 0 and dim or last + 1 + dim
    local rows = moved(flip(x), from, last)
    local values, positions = rows:topk(rows.shape[-1])
    return flip(moved(values, last, from)), moved(positions, last, from)
  end)
