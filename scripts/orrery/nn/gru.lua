-- SPDX-License-Identifier: Apache-2.0
--
--- nn.gru(inputs, hidden, options)
--- Gated recurrent units over the time of x [batch, time, inputs]. Called with x and, to go on where another batch ended,
--- its last state; gives [batch, time, hidden] (2 * hidden in both directions) and the last state
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

-- Cho et al. 2014 (arXiv:1406.1078), with the reset gate behind the product, as PyTorch and cuDNN have it; gates in
-- their order: reset, update, new.
local _, orrery = ...
local recurrent = require "orrery.nn_recurrent"

local cell = {}

function cell.bias(p) return p.bias_ih end

function cell.step(p, state, z)
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

function cell.part(state, i) return recurrent.of_layer(state, i) end

function cell.join(states) return recurrent.layers(states) end

return recurrent.module("gru", 3, cell)
