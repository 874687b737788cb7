-- SPDX-License-Identifier: Apache-2.0
--
-- Trains the LSTM or the GRU of recurrent.py from the golden weights; a line for each step: loss, gradient norm. The
-- LSTM goes on in every batch with the state in which the last one ended.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { dir = "tests/golden", model = { "lstm", "gru" }, microbatches = 1 }
local vocab, width, hidden, time, batch, steps = 17, 8, 12, 10, 6, 20

local both = args.model == "gru"
local Model = nn.module("Recurrent", function(m)
  m.tok = nn.embedding(vocab, width)
  m.rnn = nn[args.model](width, hidden, { layers = 2, bidirectional = both })
  m.head = nn.linear(both and 2 * hidden or hidden, vocab)
  return function(ids, state)
    local y, last = m.rnn(m.tok(ids), state)
    return m.head(y), last
  end
end)
local model = Model()
local stem = ("%s/%s"):format(args.dir, args.model)
model:load_weights(stem .. ".safetensors")

local run = orrery.compile(function(b)
  local logits, last = model(b.x, not both and { h = b.h, c = b.c } or nil)
  return nn.cross_entropy(logits, b.y), not both and last or nil
end, { params = model, optimizer = optim.sgd { lr = 0.5 }, clip = 1.0, microbatches = args.microbatches })

local text = orrery.load(stem .. ".text.npy"):tolist()
local function columns(first)
  local rows = {}
  for i, row in ipairs(text) do rows[i] = table.move(row, first, first + time - 1, 1, {}) end
  return orrery.tensor(rows)
end
local function zeros()
  local rows = {}
  for i = 1, batch do
    rows[i] = {}
    for layer = 1, 2 do
      rows[i][layer] = {}
      for j = 1, hidden do rows[i][layer][j] = 0.0 end
    end
  end
  return orrery.tensor(rows)
end

local h, c
if not both then h, c = zeros(), zeros() end
for step = 1, steps do
  local first = (step - 1) * time + 1
  local result = run:step { x = columns(first), y = columns(first + 1), h = h, c = c }
  if not both then h, c = result:get "h", result:get "c" end
  orrery.log("%.9g %.9g", result:mean(), result:get "grad_norm")
end
