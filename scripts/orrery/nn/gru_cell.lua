-- SPDX-License-Identifier: Apache-2.0
--
--- nn.gru_cell(inputs, hidden, options)
--- One time of nn.gru, for loops of your own and orrery.scan. Called with x [batch, inputs] and the last state, if there is
--- one, it gives h [batch, hidden], which is the next state, twice. Parameters are named as PyTorch's.
---@param inputs integer
---@param hidden integer
---@param options? table
---@option bias boolean=true
---@option dtype orrery.DType='f32'
---@return orrery.Module
local recurrent, cells = require "orrery.nn_recurrent", require "orrery.recurrent_cells"

return recurrent.cell("gru_cell", cells.gru)
