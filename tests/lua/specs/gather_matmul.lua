-- SPDX-License-Identifier: Apache-2.0
--
-- Tensor:gather_matmul against all matrices for all rows, of which one-hot rows take their own: results and gradients,
-- with matrices that no row chooses and rows that choose none.
local orrery = require "orrery"

local function random(...)
  local t, n = {}, 1
  for _, d in ipairs { ... } do n = n * d end
  for i = 1, n do t[i] = math.random() * 2 - 1 end
  return orrery.tensor(t, "f64"):reshape(...)
end

local function by_one_hot(x, w, index, turned)
  local E = w.shape[1]
  local hot = index:unsqueeze(-1):eq(orrery.iota(E)):cast(x.dtype) -- none is 1 where the index is -1
  local all = x:unsqueeze(1):matmul(w, { transpose_b = turned })
  return (all * hot:transpose():unsqueeze(3)):sum(1)
end

math.randomseed(5)
for _, case in ipairs { { 7, 4, 3, 5 }, { 300, 3, 9, 4 }, { 5, 1, 2, 2 }, { 2, 6, 1, 1 } } do
  local n, E, d, f = table.unpack(case)
  for _, turned in ipairs { false, true } do
    local chosen = {}
    for i = 1, n do chosen[i] = (i * 5 + i // 3) % (E + 1) - 1 end
    for i = 1, n do if chosen[i] == 1 then chosen[i] = 0 end end
    local x, w, by = random(n, d), turned and random(E, f, d) or random(E, d, f), random(n, f)
    local index = orrery.tensor(chosen, "i64")
    local far = orrery.func(function(x, w, by, index)
      local largest = orrery.full({}, 0, "f64")
      local ours = x:gather_matmul(w, index, { transpose_b = turned })
      local theirs = by_one_hot(x, w, index, turned)
      local a = { ours, table.unpack(orrery.grad((ours * ours * by):sum(), { x, w })) }
      local b = { theirs, table.unpack(orrery.grad((theirs * theirs * by):sum(), { x, w })) }
      for i = 1, 3 do largest = largest:maximum((a[i] - b[i]):reshape(-1):abs():max()) end
      return largest
    end)(x, w, by, index):item()
    assert(far < 1e-11, ("%s: off by %g"):format(table.concat(case, "x"), far))
  end
end

local ok, why = pcall(function()
  return orrery.func(function(x, w, i) return (x:gather_matmul(w, i)) end)(random(2, 3), random(4, 3, 2),
    orrery.tensor({ 0, 4 }, "i32"))
end)
assert(not ok and tostring(why):find("index 4 in row 1 is outside the 4 matrices (0..3, or -1 for none)", 1, true), why)
