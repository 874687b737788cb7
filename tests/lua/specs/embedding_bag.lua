-- SPDX-License-Identifier: Apache-2.0
--
-- Bags of rows against sums in Lua, and their gradient.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local table_of_rows = { { 1.0, -2.0 }, { 3.0, 4.0 }, { -5.0, 0.5 }, { 7.0, 8.0 } }
local ids = orrery.tensor({ { 1, 3, 1 }, { 2, 0, 0 }, { 0, 0, 0 } }, "i32")

for _, case in ipairs {
  { { mode = "sum" }, { { 13, 16 }, { -3, -3.5 }, { 3, -6 } } },
  { { mode = "mean" }, { { 13 / 3, 16 / 3 }, { -1, -3.5 / 3 }, { 1, -2 } } },
  { { mode = "max" }, { { 7, 8 }, { 1, 0.5 }, { 1, -2 } } },
  { { mode = "sum", padding = 0 }, { { 13, 16 }, { -5, 0.5 }, { 0, 0 } } },
  { { mode = "mean", padding = 0 }, { { 13 / 3, 16 / 3 }, { -5, 0.5 }, { 0, 0 } } },
  { { mode = "max", padding = 0 }, { { 7, 8 }, { -5, 0.5 }, { 0, 0 } } },
} do
  local bag = nn.embedding_bag(4, 2, case[1])
  bag.weight:write(table_of_rows)
  local found = orrery.func(function(x) return bag(x) end)(ids):tolist()
  for i, row in ipairs(case[2]) do
    for j, value in ipairs(row) do
      assert(math.abs(found[i][j] - value) < 1e-6, ("%s %s: %g, wanted %g"):format(
        case[1].mode, tostring(case[1].padding), found[i][j], value))
    end
  end
end

-- Of the mean over three bags of their sums, row 3 is in one bag alone, row 1 twice in one.
local bag = nn.embedding_bag(4, 2, { mode = "sum", padding = 0 })
bag.weight:write(table_of_rows)
local run = orrery.compile(function(b) return bag(b.ids):mean() end, { params = bag, optimizer = optim.sgd { lr = 6 } })
run:step { ids = ids }
local after = bag.weight:read():tolist()
for i, moved in ipairs { 0, 2, 1, 1 } do
  assert(math.abs(after[i][1] - (table_of_rows[i][1] - moved)) < 1e-6, after[i][1])
end
