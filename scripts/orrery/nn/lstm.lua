-- SPDX-License-Identifier: Apache-2.0
--
--- nn.lstm(inputs, hidden, options)
--- Long short-term memory over the time of x [batch, time, inputs]. Called with x and, to go on where another batch ended,
--- its last state; gives [batch, time, hidden] (2 * hidden in both directions) and the last state {h =, c =}, each
--- [batch, layers * directions, hidden]. Called with a table of `lengths`, integers [batch], behind x or the state,
--- results behind the end of a sequence are zeros, and its last state is that of its last time, as of PyTorch's packed
--- sequences. Parameters are named and laid out as PyTorch's (weight_ih_l0, bias_hh_l1_reverse).
---@param inputs integer
---@param hidden integer
---@param options? table
---@option layers integer=1
---@option bias boolean=true
---@option dropout number=0 between layers, in training
---@option bidirectional boolean=false
---@option dtype orrery.DType='f32'
---@return orrery.Module
local recurrent, cells = require "orrery.nn_recurrent", require "orrery.recurrent_cells"

return recurrent.module("lstm", cells.lstm)
