-- SPDX-License-Identifier: Apache-2.0
--
-- What nn.lstm, nn.gru and nn.rnn share: layers and directions, with PyTorch's names of their parameters. Products with x
-- are one for all times; only those with the state are in the recurrence. And the same cells for one time.
local _, orrery = ...
local nn = orrery.nn
local M = {}

local function parameters(m, name, o, inputs, hidden, gates)
  local bound = nn.init.uniform(-1 / math.sqrt(hidden), 1 / math.sqrt(hidden))
  local function make(kind, ...)
    local parameter = orrery.parameter({ gates * hidden, ... }, { init = bound, dtype = o.dtype })
    m[kind .. name] = parameter
    return parameter
  end
  return {
    weight_ih = make("weight_ih", inputs), weight_hh = make("weight_hh", hidden),
    bias_ih = o.bias and make "bias_ih", bias_hh = o.bias and make "bias_hh", act = o.act,
  }
end

-- The products of x with the weights of a cell, and its bias.
local function product(p, cell, x)
  local z, bias = x:matmul(p.weight_ih, { transpose_b = true }), cell.bias(p)
  return bias and z + bias or z
end

local function reversed(x)
  local parts = { x:split(2, x.shape[2]) }
  local n = #parts
  for i = 1, n // 2 do parts[i], parts[n + 1 - i] = parts[n + 1 - i], parts[i] end
  return orrery.concat(parts, 2)
end

local function check(x, inputs)
  local shape = x.shape
  if #shape ~= 3 or shape[3] ~= inputs then
    orrery.fail(("x is %s, expected [batch, time, %d]"):format(tostring(shape), inputs))
  end
end

local function options_of(kind, cell, given, defaults)
  defaults.bias, defaults.dtype, defaults.act = true, "f32", cell.act
  return orrery.options(kind, given, defaults)
end

-- A constructor of modules `kind`. `cell` has `gates`, how many blocks of rows each weight has; `bias(p)`, what is added
-- to all products with x (nil: nothing); `step(p, state, z)`, the next state and the output from the last state (nil:
-- zeros) and the product z; `part(state, i)` and `join(states)`, from the states of all layers to that of one and back;
-- and perhaps `act`, by default its option of this name, which is p.act.
function M.module(kind, cell)
  local gates = cell.gates
  return nn.module(kind, function(m, inputs, hidden, options)
    local o = options_of(kind, cell, options, { layers = 1, dropout = 0, bidirectional = false })
    local layers, width = {}, inputs
    for layer = 1, o.layers do
      layers[layer] = { parameters(m, "_l" .. layer - 1, o, width, hidden, gates) }
      if o.bidirectional then
        layers[layer][2] = parameters(m, ("_l%d_reverse"):format(layer - 1), o, width, hidden, gates)
      end
      width = hidden * #layers[layer]
    end

    local function run(p, x, state, backwards)
      if backwards then x = reversed(x) end
      local y, last = orrery.scan(function(s, at) return cell.step(p, s, at) end, state, product(p, cell, x))
      return backwards and reversed(y) or y, last
    end

    return function(x, state)
      check(x, inputs)
      local last = {}
      for i, layer in ipairs(layers) do
        if i > 1 and o.dropout > 0 then x = orrery.dropout(x, o.dropout) end
        local found = {}
        for d, p in ipairs(layer) do
          local at = #last + 1
          found[d], last[at] = run(p, x, state and cell.part(state, at), d == 2)
        end
        x = #found == 2 and orrery.concat(found, -1) or found[1]
      end
      return x, cell.join(last)
    end
  end)
end

-- A constructor of modules that are such a cell, for x [batch, inputs] and a state of one layer.
function M.cell(kind, cell)
  return nn.module(kind, function(m, inputs, hidden, options)
    local p = parameters(m, "", options_of(kind, cell, options, {}), inputs, hidden, cell.gates)
    return function(x, state)
      if #x.shape ~= 2 or x.shape[2] ~= inputs then
        orrery.fail(("x is %s, expected [batch, %d]"):format(tostring(x.shape), inputs))
      end
      local new, h = cell.step(p, state, product(p, cell, x))
      return h, new
    end
  end)
end

return M
