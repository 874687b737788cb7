-- SPDX-License-Identifier: Apache-2.0
--
--- nn.lstm_cell(inputs, hidden, options)
--- One time of nn.lstm, for loops of your own and orrery.scan. Called with x [batch, inputs] and the last state, if there is
--- one, it gives h [batch, hidden] and the next state {h =, c =}. Parameters are named as PyTorch's.
---@param inputs integer
---@param hidden integer
---@param options? table
---@option bias boolean=true
---@option dtype orrery.DType='f32'
---@return orrery.Module
local recurrent, cells = require "orrery.nn_recurrent", require "orrery.recurrent_cells"

return recurrent.cell("lstm_cell", cells.lstm)
