-- SPDX-License-Identifier: Apache-2.0
--
-- Two LSTM cells, one after the other, learn to continue sines in f64 by L-BFGS, as PyTorch's example of time sequences
-- does with larger ones: a line for each step with the loss before it, then the evaluations and the loss at the end.
-- lbfgs.py is the same in PyTorch, lbfgs.json its figures.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { kind = "", steps = 3, microbatches = 1, again = "" }
local hidden, time, batch = 5, 12, 6

local Sequence = nn.module("Sequence", function(m)
  m.first = nn.lstm_cell(1, hidden, { dtype = "f64" })
  m.second = nn.lstm_cell(hidden, hidden, { dtype = "f64" })
  m.head = nn.linear(hidden, 1, { dtype = "f64" })
  return function(x) -- [batch, time, 1]
    local y = orrery.scan(function(states, now)
      local h, one, two
      h, one = m.first(now, states and states[1])
      h, two = m.second(h, states and states[2])
      return { one, two }, m.head(h)
    end, nil, x)
    return y
  end
end)

local kinds = {
  plain = { lr = 0.2, max_iter = 8, history = 3 },
  wolfe = { lr = 0.8, line_search = "strong_wolfe" },
  wolfe_short = { line_search = "strong_wolfe", max_iter = 6, max_eval = 9, history = 2 },
  wolfe_coarse = { line_search = "strong_wolfe", tolerance_change = 1e-4, tolerance_grad = 3e-3 },
}

local function make()
  local net = Sequence()
  for n, p in ipairs(orrery.parameters(net)) do
    local at = -1
    local function filled(level)
      if level > #p.shape then
        at = at + 1
        return 0.4 * math.sin(0.7 * at + 1.3 * n)
      end
      local list = {}
      for i = 1, p.shape[level] do list[i] = filled(level + 1) end
      return list
    end
    p:write(orrery.tensor(filled(1), "f64"))
  end
  local options = { params = net, microbatches = args.microbatches }
  for name, value in pairs(kinds[args.kind]) do options[name] = value end
  return net, optim.lbfgs(function(b) return nn.mse(net(b.x), b.y) end, options)
end

local x, y = {}, {}
for i = 1, batch do
  x[i], y[i] = {}, {}
  for t = 1, time do x[i][t], y[i][t] = { math.sin(0.5 * t + i) }, { math.sin(0.5 * (t + 1) + i) } end
end
local data = { x = orrery.tensor(x, "f64"), y = orrery.tensor(y, "f64") }
local net, lbfgs = make()
for step = 1, args.steps do
  orrery.log("%.15g", lbfgs:step(data))
  if step == 1 and args.again ~= "" then
    lbfgs:save(args.again .. "/lbfgs.safetensors")
    net:save_weights(args.again .. "/net.safetensors")
    net, lbfgs = make()
    net:load_weights(args.again .. "/net.safetensors")
    lbfgs:load(args.again .. "/lbfgs.safetensors")
  end
end
orrery.log("%d", lbfgs.evaluations)
orrery.log("%.15g", orrery.func(function(a, b) return nn.mse(net(a), b) end)(data.x, data.y):item())
