-- SPDX-License-Identifier: Apache-2.0
--
--- nn.lstm(inputs, hidden, options)
--- Long short-term memory over the time of x [batch, time, inputs]. Called with x and, to go on where another batch ended,
--- its last state; gives [batch, time, hidden] (2 * hidden in both directions) and the last state {h =, c =}, each
--- [batch, layers * directions, hidden]. Parameters are named and laid out as PyTorch's (weight_ih_l0, bias_hh_l1_reverse).
---@param inputs integer
---@param hidden integer
---@param options? table
---@option layers integer=1
---@option bias boolean=true
---@option dropout number=0 between layers, in training
---@option bidirectional boolean=false
---@option dtype orrery.DType='f32'
---@return orrery.Module

-- Hochreiter and Schmidhuber 1997, with Gers' forget gate; gates in PyTorch's order: input, forget, cell, output.
local _, orrery = ...
local recurrent = require "orrery.nn_recurrent"

local cell = {}

function cell.bias(p) return p.bias_ih and p.bias_ih + p.bias_hh end

function cell.step(p, state, z)
  -- Added before it is split, so that its gradient is joined once, for both summands.
  if state then z = z + state.h:matmul(p.weight_hh, { transpose_b = true }) end
  local i, f, g, o = z:split(-1, 4)
  local c = i:sigmoid() * g:tanh()
  if state then c = c + f:sigmoid() * state.c end
  local h = o:sigmoid() * c:tanh()
  return { h = h, c = c }, h
end

function cell.part(state, i) return { h = recurrent.of_layer(state.h, i), c = recurrent.of_layer(state.c, i) } end

function cell.join(states)
  local h, c = {}, {}
  for i, state in ipairs(states) do h[i], c[i] = state.h, state.c end
  return { h = recurrent.layers(h), c = recurrent.layers(c) }
end

return recurrent.module("lstm", 4, cell)
