-- SPDX-License-Identifier: Apache-2.0
--
-- Elementwise expressions as nodes of ONNX, one or some for each instruction.

local M = {}

local NAMES = {
  add = "Add", sub = "Sub", mul = "Mul", div = "Div", minimum = "Min", maximum = "Max", pow = "Pow", neg = "Neg", abs = "Abs",
  sign = "Sign", sqrt = "Sqrt", reciprocal = "Reciprocal", exp = "Exp", log = "Log", tanh = "Tanh", sigmoid = "Sigmoid",
  erf = "Erf", sin = "Sin", cos = "Cos", floor = "Floor", ceil = "Ceil", round = "Round", eq = "Equal", lt = "Less",
  le = "LessOrEqual", gt = "Greater", ge = "GreaterOrEqual", logical_and = "And", logical_or = "Or", logical_not = "Not",
  where = "Where",
}
local ARITY = {
  add = 2, sub = 2, mul = 2, div = 2, minimum = 2, maximum = 2, pow = 2, eq = 2, lt = 2, le = 2, gt = 2, ge = 2,
  logical_and = 2, logical_or = 2, where = 3,
}
local REAL = { f32 = true, f64 = true, f16 = true, bf16 = true }

local made = {} -- what takes several nodes: (graph, instruction, a, b, c) -> name

function made.cast(g, i, a) return g:node("Cast", { a }, { to = g.TYPES[i.dtype] }) end
function made.const(g, i) return g:number(i.number, i.dtype) end
function made.rsqrt(g, _, a) return g:node("Reciprocal", { g:node("Sqrt", { a }) }) end
function made.fma(g, _, a, b, c) return g:node("Add", { g:node("Mul", { a, b }), c }) end
function made.ne(g, _, a, b) return g:node("Not", { g:node("Equal", { a, b }) }) end
function made.gelu(g, _, a) return g:node("Gelu", { a }, { approximate = "tanh" }) end
function made.isfinite(g, _, a)
  return g:node("Not", { g:node("Or", { g:node("IsNaN", { a }), g:node("IsInf", { a }) }) })
end
function made.mod(g, i, a, b)
  if not REAL[i.dtype] then return g:node("Mod", { a, b }) end
  return g:node("Sub", { a, g:node("Mul", { g:node("Floor", { g:node("Div", { a, b }) }), b }) })
end

-- The names of an op's outputs; refuse(what) does not return.
function M.outputs(g, op, inputs, refuse)
  local registers = {}
  for k, each in ipairs(op.instructions) do
    local a, b, c = registers[each.a], registers[each.b], registers[each.c]
    if each.fn == "input" then
      registers[k] = inputs[each.a]
    elseif made[each.fn] then
      registers[k] = made[each.fn](g, each, a, b, c)
    elseif NAMES[each.fn] then
      local arity = ARITY[each.fn] or 1
      registers[k] = g:node(NAMES[each.fn], { a, arity > 1 and b or nil, arity > 2 and c or nil })
    else
      refuse(("'%s'"):format(each.fn))
    end
  end
  local dims, outputs = op.attributes.dims, {}
  for j, register in ipairs(op.registers) do
    outputs[j] = registers[register]
    if dims then outputs[j] = g:node("Expand", { outputs[j], g:wholes(dims) }) end
  end
  return outputs
end

return M
