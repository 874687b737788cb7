-- SPDX-License-Identifier: Apache-2.0
--
-- Numbers that look random, [rows, columns] or, of one column, [rows]: the same in PyTorch by `filled` of the scripts that
-- make the figures. `n` tells tensors apart.
return function(n, rows, columns)
  local list = {}
  for i = 0, rows - 1 do
    local row = {}
    for j = 1, columns do row[j] = math.sin(0.7 * (i * columns + j - 1) + 1.3 * n) end
    list[i + 1] = columns == 1 and row[1] or row
  end
  return list
end
