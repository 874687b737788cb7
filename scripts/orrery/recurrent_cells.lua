-- SPDX-License-Identifier: Apache-2.0
--
-- The cells of nn.lstm, nn.gru and nn.rnn, as orrery.nn_recurrent wants them.
local _, orrery = ...
local M = {}

-- The state of layer i, [batch, hidden], of those of all, [batch, layers, hidden]; and all from each.
local function of_layer(state, i)
  local dims = state.shape
  return state:slice(2, i, i):reshape(dims[1], dims[3])
end

local function layers(states)
  for i, state in ipairs(states) do
    local dims = state.shape
    states[i] = state:reshape(dims[1], 1, dims[2])
  end
  return #states == 1 and states[1] or orrery.concat(states, 2)
end

-- Hochreiter and Schmidhuber 1997, with Gers' forget gate; gates in PyTorch's order: input, forget, cell, output.
M.lstm = { gates = 4, names = { "h", "c" } }

function M.lstm.bias(p) return p.bias_ih and p.bias_ih + p.bias_hh end

function M.lstm.step(p, state, z)
  -- Added before it is split, so that its gradient is joined once, for both summands.
  if state then z = z + state.h:matmul(p.weight_hh, { transpose_b = true }) end
  local i, f, g, o = z:split(-1, 4)
  local c = i:sigmoid() * g:tanh()
  if state then c = c + f:sigmoid() * state.c end
  local h = o:sigmoid() * c:tanh()
  return { h = h, c = c }, h
end

function M.lstm.part(state, i) return { h = of_layer(state.h, i), c = of_layer(state.c, i) } end

function M.lstm.join(states)
  local h, c = {}, {}
  for i, state in ipairs(states) do h[i], c[i] = state.h, state.c end
  return { h = layers(h), c = layers(c) }
end

-- Cho et al. 2014 (arXiv:1406.1078), with the reset gate behind the product, as PyTorch and cuDNN have it; gates in
-- their order: reset, update, new.
M.gru = { gates = 3 }

function M.gru.bias(p) return p.bias_ih end

function M.gru.step(p, state, z)
  local with = p.bias_hh
  if state then
    with = state:matmul(p.weight_hh, { transpose_b = true })
    if p.bias_hh then with = with + p.bias_hh end
  end
  local zr, zu, zn = z:split(-1, 3)
  if not with then
    local h = (1 - zu:sigmoid()) * zn:tanh()
    return h, h
  end
  local hr, hu, hn = with:split(-1, 3)
  local new = (zn + (zr + hr):sigmoid() * hn):tanh()
  local keep = (zu + hu):sigmoid()
  local h = (1 - keep) * new
  if state then h = h + keep * state end
  return h, h
end

function M.gru.part(state, i) return of_layer(state, i) end

function M.gru.join(states) return layers(states) end

-- Elman 1990: act(W x + U h + b).
M.rnn = { gates = 1, act = orrery.nn.tanh }

function M.rnn.bias(p) return p.bias_ih and p.bias_ih + p.bias_hh end

function M.rnn.step(p, state, z)
  if state then z = z + state:matmul(p.weight_hh, { transpose_b = true }) end
  local h = p.act(z)
  return h, h
end

M.rnn.part, M.rnn.join = M.gru.part, M.gru.join

return M
