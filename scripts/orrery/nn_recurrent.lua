-- SPDX-License-Identifier: Apache-2.0
--
-- What nn.lstm and nn.gru share: layers and directions, with PyTorch's names of their parameters. Products with x
-- are one for all times; only those with the state are in the recurrence.
local _, orrery = ...
local nn = orrery.nn
local M = {}

local function parameters(m, name, o, inputs, hidden, gates)
  local bound = nn.init.uniform(-1 / math.sqrt(hidden), 1 / math.sqrt(hidden))
  local function make(kind, ...)
    local parameter = orrery.parameter({ gates * hidden, ... }, { init = bound, dtype = o.dtype })
    m[kind .. "_" .. name] = parameter
    return parameter
  end
  return {
    weight_ih = make("weight_ih", inputs), weight_hh = make("weight_hh", hidden),
    bias_ih = o.bias and make "bias_ih", bias_hh = o.bias and make "bias_hh",
  }
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

-- A constructor of modules `kind` with `gates` blocks of rows in each weight. `cell` has `bias(p)`, what is added to
-- all products with x (nil: nothing); `step(p, state, z)`, the next state and the output from the last state (nil: zeros)
-- and the product z; `part(state, i)` and `join(states)`, from the states of all layers to that of one and back.
function M.module(kind, gates, cell)
  return nn.module(kind, function(m, inputs, hidden, options)
    local o = orrery.options(kind, options, {
      layers = 1, bias = true, dropout = 0, bidirectional = false, dtype = "f32",
    })
    local layers, width = {}, inputs
    for layer = 1, o.layers do
      layers[layer] = { parameters(m, "l" .. layer - 1, o, width, hidden, gates) }
      if o.bidirectional then
        layers[layer][2] = parameters(m, ("l%d_reverse"):format(layer - 1), o, width, hidden, gates)
      end
      width = hidden * #layers[layer]
    end

    local function run(p, x, state, backwards)
      if backwards then x = reversed(x) end
      local z, bias = x:matmul(p.weight_ih, { transpose_b = true }), cell.bias(p)
      if bias then z = z + bias end
      local y, last = orrery.scan(function(s, at) return cell.step(p, s, at) end, state, z)
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

-- The state of layer i, [batch, hidden], of those of all, [batch, layers, hidden]; and all from each.
function M.of_layer(state, i)
  local dims = state.shape
  return state:slice(2, i, i):reshape(dims[1], dims[3])
end

function M.layers(states)
  for i, state in ipairs(states) do
    local dims = state.shape
    states[i] = state:reshape(dims[1], 1, dims[2])
  end
  return #states == 1 and states[1] or orrery.concat(states, 2)
end

return M
