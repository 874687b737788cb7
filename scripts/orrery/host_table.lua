-- SPDX-License-Identifier: Apache-2.0
--
-- A HostTensor as the prompt shows it: its type and statistics, then its numbers in rows and columns; of more than two
-- dims each matrix below its place. Of what is long the front and the end.
local orrery = require "orrery"
local engine = orrery.engine

local most = { rows = 12, columns = 10, blocks = 6 }

-- The places of n that are shown; 0 stands for those in the middle.
local function shown_places(n, limit)
  local places = {}
  for place = 1, n do
    if n <= limit or place <= limit // 2 or place > n - limit // 2 then
      places[#places + 1] = place
    elseif places[#places] ~= 0 then
      places[#places + 1] = 0
    end
  end
  return places
end

local function word_of(value)
  return math.type(value) == "float" and ("%.5g"):format(value) or tostring(value)
end

-- Lines of a matrix, or of a vector as one row.
local function add_rows(lines, x)
  local rows, width = {}, 0
  local columns = shown_places(x.shape[-1], most.columns)
  for i, row in ipairs(#x.shape == 1 and { 1 } or shown_places(#x, most.rows)) do
    if row == 0 then
      rows[i] = { "..." }
    else
      local values = (#x.shape == 1 and x or x[row]):tolist()
      rows[i] = {}
      for k, column in ipairs(columns) do
        rows[i][k] = column == 0 and "..." or word_of(values[column])
        width = math.max(width, #rows[i][k])
      end
    end
  end
  for _, words in ipairs(rows) do
    for k, word in ipairs(words) do words[k] = (" "):rep(width - #word) .. word end
    lines[#lines + 1] = "  " .. table.concat(words, "  ")
  end
end

-- Calls visit(matrix, place) for the matrices of x that are shown, and visit(nil) for those left out.
local function each_matrix(x, place, visit)
  if #x.shape <= 2 then return visit(x, place) end
  for _, at in ipairs(shown_places(#x, most.blocks)) do
    if at == 0 then visit(nil) else each_matrix(x[at], place .. at .. ",", visit) end
  end
end

return function(x)
  local lines = { (engine.told(x):gsub("; first .*$", "")) }
  if #x.shape == 0 then return lines[1]:match "^[^:]*" .. " " .. word_of(x:item()) end
  for _, size in ipairs(x.shape) do
    if size == 0 then return lines[1] end
  end
  each_matrix(x, "", function(matrix, place)
    if #x.shape > 2 then lines[#lines + 1] = matrix and ("[%s]"):format(place:sub(1, -2)) or "..." end
    if matrix then add_rows(lines, matrix) end
  end)
  return table.concat(lines, "\n")
end
