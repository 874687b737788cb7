-- SPDX-License-Identifier: Apache-2.0
--
-- How every state and every result of a step lies over the ranks, as one rank has it (`orrery plan --layouts`).
local M = {}

local function padded(rows)
  local width = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do width[i] = math.max(width[i] or 0, #cell) end
  end
  local lines = {}
  for n, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do cells[i] = cell .. (" "):rep(width[i] - #cell) end
    lines[n] = "  " .. table.concat(cells, "  "):gsub("%s+$", "")
  end
  return table.concat(lines, "\n") .. "\n"
end

-- answer: that of the planner (core/plan/layouts.h).
function M.text(answer)
  local axes = {}
  for i, axis in ipairs(answer.axes) do axes[i] = ("%s %d"):format(axis.name, axis.size) end
  local head = ("rank %d; axes: %s; batch: %s in %d microbatches\n"):format(answer.rank,
    #axes > 0 and table.concat(axes, ", ") or "none",
    answer.batch_axis ~= "" and "over " .. answer.batch_axis or "on every rank", answer.microbatches)
  local states, parts, phase, rows = {}, {}, nil, {}
  for i, s in ipairs(answer.states) do states[i] = { s.name, s.type, s.layout } end
  local function close()
    if phase then parts[#parts + 1] = phase .. "\n" .. padded(rows) end
  end
  for _, op in ipairs(answer.ops) do
    if op.phase ~= phase then
      close()
      phase, rows = op.phase, {}
    end
    rows[#rows + 1] = { op.kind .. (op.over and " over " .. op.over or ""), op.type or "", op.layout or "", op.region }
  end
  close()
  return head .. "states\n" .. padded(states) .. table.concat(parts)
end

return M
