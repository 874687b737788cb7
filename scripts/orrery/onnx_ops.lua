-- SPDX-License-Identifier: Apache-2.0
--
-- Ops of a program as nodes of ONNX: by kind, (graph, op, inputs, types of the inputs, types of the outputs) -> names of
-- the outputs. An output without a name is one that no result may need.
local M = {}

local function swapped(rank)
  local perm = {}
  for i = 1, rank do perm[i] = i - 1 end
  perm[rank], perm[rank - 1] = perm[rank - 1], perm[rank]
  return perm
end

local function cast(g, x, dtype) return g:node("Cast", { x }, { to = g.TYPES[dtype] }) end

function M.matmul(g, op, inputs, types, made)
  local a, b = inputs[1], inputs[2]
  if op.attributes.ta == 1 then a = g:node("Transpose", { a }, { perm = swapped(#types[1].dims) }) end
  if op.attributes.tb == 1 then b = g:node("Transpose", { b }, { perm = swapped(#types[2].dims) }) end
  if made[1].dtype == types[1].dtype then return { g:node("MatMul", { a, b }) } end
  return { g:node("MatMul", { cast(g, a, made[1].dtype), cast(g, b, made[1].dtype) }) }
end

local REDUCTIONS = { sum = "ReduceSum", sumsq = "ReduceSumSquare", max = "ReduceMax", min = "ReduceMin" }

function M.reduce(g, op, inputs, types, made)
  local axes, x = {}, inputs[1]
  for d = op.attributes.begin, op.attributes["end"] - 1 do axes[#axes + 1] = d end
  if made[1].dtype ~= types[1].dtype then x = cast(g, x, made[1].dtype) end
  if #axes == 0 then return { g:node("Identity", { x }) } end
  return { g:node(REDUCTIONS[op.attributes.fn or "sum"], { x, g:wholes(axes) }, { keepdims = 0 }) }
end

function M.reshape(g, op, inputs) return { g:node("Reshape", { inputs[1], g:wholes(op.attributes.dims) }) } end
function M.transpose(g, op, inputs) return { g:node("Transpose", inputs, { perm = op.attributes.perm }) } end
function M.concat(g, op, inputs) return { g:node("Concat", inputs, { axis = op.attributes.dim }) } end
function M.stop_gradient(g, _, inputs) return { g:node("Identity", inputs) } end
function M.user_gradient(g, _, inputs) return { g:node("Identity", { inputs[1] }) } end
function M.softmax(g, _, inputs) return { g:node("Softmax", inputs, { axis = -1 }) } end
function M.argmax(g, _, inputs) return { g:node("ArgMax", inputs, { axis = -1, keepdims = 0 }) } end
function M.gather(g, _, inputs) return { g:node("Gather", inputs, { axis = 0 }) } end

-- ONNX has no product by index: each row gets its matrix.
function M.gather_matmul(g, op, inputs, types, made)
  local x, w, index = table.unpack(inputs)
  local last, zero = #types[1].dims - 1, g:list({ 0 }, types[3].dtype)
  local matrices = g:node("Gather", { w, g:node("Max", { index, zero }) }, { axis = 0 })
  if op.attributes.tb == 1 then matrices = g:node("Transpose", { matrices }, { perm = swapped(last + 2) }) end
  local y = g:node("MatMul", { g:node("Unsqueeze", { x, g:wholes { last } }), matrices })
  local none = g:node("Unsqueeze", { g:node("Less", { index, zero }), g:wholes { last } })
  return { g:node("Where", { none, g:list({ 0 }, made[1].dtype), g:node("Squeeze", { y, g:wholes { last } }) }) }
end

function M.split(g, op, inputs)
  local sizes = op.attributes.sizes
  return { g:node("Split", { inputs[1], g:wholes(sizes) }, { axis = op.attributes.dim }, #sizes) }
end

function M.topk(g, op, inputs)
  return { g:node("TopK", { inputs[1], g:wholes { op.attributes.k } }, { axis = -1 }, 2) }
end

function M.iota(g, _, _, _, made)
  local numbers = {}
  for i = 1, made[1].dims[1] do numbers[i] = i - 1 end
  return { g:list(numbers, made[1].dtype) }
end

function M.layernorm(g, op, inputs)
  return { g:node("LayerNormalization", inputs, { axis = -1, epsilon = op.attributes.eps }) }
end

function M.rmsnorm(g, op, inputs, types)
  local x, last = inputs[1], g:wholes { -1 }
  local mean = g:node("ReduceMean", { g:node("Mul", { x, x }), last }, { keepdims = 1 })
  local root = g:node("Sqrt", { g:node("Add", { mean, g:number(op.attributes.eps, types[1].dtype) }) })
  return { g:node("Mul", { g:node("Div", { x, root }), inputs[2] }) }
end

-- The places from `at` on.
function M.slice_at(g, op, inputs)
  local numbers = {}
  for i = 1, op.attributes.size do numbers[i] = i - 1 end
  local places = g:node("Add", { g:wholes(numbers), inputs[2] })
  return { g:node("Gather", { inputs[1], places }, { axis = op.attributes.dim }) }
end

-- [..., L..., C] -> [..., O..., K..., C]: each of these dims becomes two, whose places are known.
function M.windows(g, op, inputs, types)
  local a, dims = op.attributes, types[1].dims
  local n, x = #a.size, inputs[1]
  local first = #dims - 1 - n -- of the dims that windows lie over, from 0
  for i = 1, n do
    local places, step, wide = {}, a.stride[i], a.dilation[i]
    local count = (dims[first + i] - wide * (a.size[i] - 1) - 1) // step + 1
    for o = 0, count - 1 do
      for k = 0, a.size[i] - 1 do places[#places + 1] = o * step + k * wide end
    end
    x = g:node("Gather", { x, g:list(places, "i64", { count, a.size[i] }) }, { axis = first + 2 * (i - 1) })
  end
  local perm = {}
  for d = 0, first - 1 do perm[#perm + 1] = d end
  for i = 0, n - 1 do perm[#perm + 1] = first + 2 * i end
  for i = 0, n - 1 do perm[#perm + 1] = first + 2 * i + 1 end
  perm[#perm + 1] = first + 2 * n
  return { g:node("Transpose", { x }, { perm = perm }) }
end

-- [B, T, heads * D] -> [B, heads, T, D]
local function by_heads(g, x, type, heads)
  local batch, time, width = table.unpack(type.dims)
  local apart = g:node("Reshape", { x, g:wholes { batch, time, heads, width // heads } })
  return g:node("Transpose", { apart }, { perm = { 0, 2, 1, 3 } })
end

-- Key s is seen by query t if s - S <= t - T.
local function causal_bias(g, queries, keys, dtype)
  local list = {}
  for t = 1, queries do
    for s = 1, keys do list[#list + 1] = s - keys <= t - queries and 0.0 or -math.huge end
  end
  local bias = g:list(list, "f32", { queries, keys })
  return dtype == "f32" and bias or cast(g, bias, dtype)
end

function M.attention(g, op, inputs, types, made, refuse)
  if #inputs > 4 then refuse "attention with dropout" end
  local heads, dtype = op.attributes.heads, types[1].dtype
  local queries, keys = types[1].dims[2], types[2].dims[2]
  local q, k = by_heads(g, inputs[1], types[1], heads), by_heads(g, inputs[2], types[2], heads)
  local v = by_heads(g, inputs[3], types[3], heads)
  local scores = g:node("MatMul", { q, g:node("Transpose", { k }, { perm = { 0, 1, 3, 2 } }) })
  scores = g:node("Mul", { scores, g:number(op.attributes.scale, dtype) })
  if inputs[4] then scores = g:node("Add", { scores, inputs[4] }) end
  if op.attributes.causal == 1 then scores = g:node("Add", { scores, causal_bias(g, queries, keys, dtype) }) end
  local weights = g:node("Softmax", { scores }, { axis = -1 })
  if inputs[4] or queries > keys then -- a query that sees no key is 0
    weights = g:node("Where", { g:node("IsNaN", { weights }), g:number(0, dtype), weights })
  end
  local y = g:node("Transpose", { g:node("MatMul", { weights, v }) }, { perm = { 0, 2, 1, 3 } })
  return { g:node("Reshape", { y, g:wholes(made[1].dims) }) }
end

return M
