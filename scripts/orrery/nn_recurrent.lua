-- SPDX-License-Identifier: Apache-2.0
--
-- What nn.lstm, nn.gru and nn.rnn share: layers and directions, with PyTorch's names of their parameters. Products with x
-- are one for all times; only those with the state are in the recurrence. And the same cells for one time.
local _, orrery = ...
local nn = orrery.nn
local within = require "orrery.lengths"
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

-- Where a sequence has ended its state is the old one, nil for zeros.
local function kept(ended, old, new)
  if orrery.type(new) ~= "table" then return orrery.where(ended, old or 0, new) end
  local state = {}
  for name, part in pairs(new) do state[name] = kept(ended, old and old[name], part) end
  return state
end

-- A cell's recurrence over z [batch, time, gates * hidden], which may be in reverse: its results and the last state. With
-- `ended` [batch, time] each sequence is as long as this says: behind its end results are zeros.
local function recur(cell, p, state, z, ended, backwards)
  return orrery.scan(function(old, now, t)
    local new, h = cell.step(p, old, now)
    if not ended then return new, h end
    if backwards then t = z.shape[2] + 1 - t end
    local over = ended:slice(2, t, t)
    return kept(over, old, new), orrery.where(over, 0, h)
  end, state, z)
end

-- A state is a tensor, or a table of those that the cell names.
local function check_state(kind, cell, state)
  for _, name in ipairs(cell.names or {}) do
    if orrery.type(state) ~= "table" or state[name] == nil then
      orrery.fail(("%s: the state is %s, expected {%s =}"):format(kind, orrery.engine.describe(state), table.concat(cell.names, " =, ")))
    end
  end
  if not cell.names and orrery.type(state) == "table" then
    orrery.fail(("%s: the state is a table, expected a tensor"):format(kind))
  end
end

-- The arguments behind x: a state, and a table of `lengths`, either of which may be left out.
local function lengths_of(kind, cell, x, state, options)
  local is_state = orrery.type(state) ~= "table" or state.h ~= nil or state.c ~= nil
  if not is_state and options == nil then state, options = nil, state end
  if state then check_state(kind, cell, state) end
  local lengths = orrery.options(kind, options, { lengths = false }).lengths
  if not lengths then return state, nil end
  within.check(kind, "lengths", lengths, x)
  return state, within.ended(lengths, x.shape[2])
end

local function options_of(kind, cell, given, defaults)
  defaults.bias, defaults.dtype, defaults.act = true, "f32", cell.act
  return orrery.options(kind, given, defaults)
end

-- A constructor of modules `kind`. `cell` has `gates`, how many blocks of rows each weight has; `bias(p)`, what is added
-- to all products with x (nil: nothing); `step(p, state, z)`, the next state and the output from the last state (nil:
-- zeros) and the product z; `part(state, i)` and `join(states)`, from the states of all layers to that of one and back;
-- perhaps `names`, of the tensors of a state that is a table; and perhaps `act`, by default its option of this name, which
-- is p.act.
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

    local function run(p, x, state, ended, backwards)
      if backwards then x = reversed(x) end
      local y, last = recur(cell, p, state, product(p, cell, x), ended, backwards)
      return backwards and reversed(y) or y, last
    end

    return function(x, given, options)
      check(x, inputs)
      local last, state, ended = {}, lengths_of(kind, cell, x, given, options)
      for i, layer in ipairs(layers) do
        if i > 1 and o.dropout > 0 then x = orrery.dropout(x, o.dropout) end
        local found = {}
        for d, p in ipairs(layer) do
          local at = #last + 1
          found[d], last[at] = run(p, x, state and cell.part(state, at), ended, d == 2)
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
