-- SPDX-License-Identifier: Apache-2.0
--
-- Tensors of a file that are parts of one of a module: the matrices of experts, of which a file has each by itself. Their
-- path is that of the module's tensor and the number along its first dim: "blocks.1.experts.up.3".
local _, orrery = ...
local engine = orrery.engine
local M = {}

-- The state of a path, and which part of it the path is; nil for the whole.
function M.find(by_path, path)
  if by_path[path] then return by_path[path] end
  local whole, number = path:match "^(.*)%.(%d+)$"
  local state, n = whole and by_path[whole], math.tointeger(number)
  if state and #state.shape > 1 and n >= 1 and n <= state.shape[1] then return state, n end
end

-- A state with the dims and the dtype of a part.
local function like_part(state)
  return engine.buffer({ table.unpack(state.shape, 2) }, { dtype = state.dtype, init = 0 })
end

-- The state's value of its parts in a file, each { name = , transpose = }; nil if one is not there.
function M.read(file, parts, state)
  local like, values = like_part(state), {}
  for i = 1, state.shape[1] do
    local part = parts[i]
    if not part then return nil end
    values[i] = file:read(part.name, like, part.transpose)
  end
  return orrery.stack(values)
end

-- A state of each part, transposed where `transposed` says so; on every rank.
function M.of(state, transposed)
  local value, states = state:read(), {}
  for i = 1, state.shape[1] do
    local part = value[i]
    if transposed[i] then part = part:transpose() end
    states[i] = engine.buffer(part.shape, { init = part, dtype = part.dtype })
  end
  return states
end

return M
