-- SPDX-License-Identifier: Apache-2.0
--
-- Tensors with other dims, in another order, and masked: against plain loops over their elements.
local orrery = require "orrery"

-- A list of numbers as a tensor of these dims, and back as "dims: elements".
local function shown(values, ...) return table.concat({ ... }, ",") .. ": " .. table.concat(values, " ") end
local function flat(list, to)
  for _, each in ipairs(list) do
    if type(each) == "table" then flat(each, to) else to[#to + 1] = type(each) == "number" and math.tointeger(each) or tostring(each) end
  end
  return to
end
local function told(t) return shown(flat({ t:tolist() }, {}), table.unpack(t.shape)) end

local A, B, C = 2, 3, 4
local elements = {}
for i = 1, A * B * C do elements[i] = (i * 7) % 11 - 3 end
local function at(i, j, k) return elements[((i - 1) * B + j - 1) * C + k] end
local nested = {}
for i = 1, A do
  nested[i] = {}
  for j = 1, B do
    nested[i][j] = {}
    for k = 1, C do nested[i][j][k] = at(i, j, k) end
  end
end

-- What element (i, j, k) of three dims should be, for all of them in order.
local function loops(n, m, o, f)
  local list = {}
  for i = 1, n do
    for j = 1, m do
      for k = 1, o do list[#list + 1] = f(i, j, k) end
    end
  end
  return list
end

local function gives(wanted, f)
  for _, dtype in ipairs { "f32", "i64", "f16" } do
    local found = told(orrery.func(f)(orrery.tensor(nested, dtype)))
    assert(found == wanted, ("of %s\n%s, expected\n%s"):format(dtype, found, wanted))
  end
end
local function refused(why, f)
  local ok, message = pcall(orrery.func(f), orrery.tensor(nested, "f32"))
  assert(not ok and message:find(why, 1, true), ("%s\ndoes not say: %s"):format(message, why))
end

gives(shown(elements, 6, 4), function(x) return x:view(6, -1) end)
gives(shown(elements, 2, 1, 3, 4), function(x) return x:unsqueeze(2) end)
gives(shown(elements, 2, 3, 4, 1), function(x) return x:unsqueeze(-1) end)
gives(shown(elements, 1, 2, 3, 4), function(x) return x:unsqueeze(-4) end)
refused("dim 5 does not exist: the tensor has 4 dims", function(x) return x:unsqueeze(5) end)
refused("dim 0 does not exist", function(x) return x:unsqueeze(0) end)
gives(shown(elements, 2, 3, 4), function(x) return x:unsqueeze(2):squeeze { 2, 1 } end)
refused("squeeze: dims is nil", function(x) return x:squeeze() end)
gives(shown(elements, 24), function(x) return x:flatten() end)
gives(shown(elements, 2, 12), function(x) return x:flatten(2) end)
gives(shown(elements, 6, 4), function(x) return x:flatten(1, -2) end)
refused("flatten: dim 3 is behind dim 2", function(x) return x:flatten(3, 2) end)
gives(shown(loops(3, 2, 1, function(j, i) return at(i, j, 3) end), 3, 2),
  function(x) return (select(3, x:unbind(3))):transpose() end)
gives(shown(loops(5, A * B, C, function(_, ij, k) return elements[(ij - 1) * C + k] end), 5, 2, 3, 4),
  function(x) return x:unsqueeze(1):expand(5, -1, -1, 4) end)
gives(shown(loops(A * B, C, 2, function(ij, k, which) return which == 1 and elements[(ij - 1) * C + k] or 5 end), 2, 3, 4, 2),
  function(x) return orrery.stack({ x, orrery.full(x.shape, 5, x.dtype) }, -1) end)
gives(shown(loops(2, A * B, C, function(which, ij, k) return which == 1 and elements[(ij - 1) * C + k] or 5 end), 2, 2, 3, 4),
  function(x) return orrery.stack { x, orrery.full(x.shape, 5, x.dtype) } end)
refused("stack: tensors[2] is number, expected a tensor", function(x) return orrery.stack { x, 1 } end)
gives(shown(loops(A, B, C, function(i, j, k) return at(A + 1 - i, j, C + 1 - k) end), 2, 3, 4),
  function(x) return x:flip { 1, -1 } end)
for _, shift in ipairs { 1, -1, 3, 7, 0 } do
  gives(shown(loops(A, B, C, function(i, j, k) return at(i, j, (k - 1 - shift) % C + 1) end), 2, 3, 4),
    function(x) return x:roll(shift, 3) end)
end
gives(shown(loops(2 * A, B, 3 * C, function(i, j, k) return at((i - 1) % A + 1, j, (k - 1) % C + 1) end), 4, 3, 12),
  function(x) return x:tile(2, 1, 3) end)
gives(shown(loops(2 * A, B, C, function(i, j, k) return at((i - 1) % A + 1, j, k) end), 2, 2, 3, 4),
  function(x) return x:tile(2, 1, 1, 1) end)
gives(shown(loops(A, B, 2 * C, function(i, j, k) return at(i, j, (k - 1) % C + 1) end), 2, 3, 8), function(x) return x:tile(2) end)
refused("tile: 0 times along dim 3", function(x) return x:tile { 1, 1, 0 } end)

gives(shown(loops(A, B, C, function(i, j, k) return at(i, j, k) > 2 and -9 or at(i, j, k) end), 2, 3, 4),
  function(x) return x:masked_fill(x:gt(2), -9) end)
for _, diagonal in ipairs { -2, 0, 1, 9 } do
  gives(shown(loops(A, B, C, function(i, j, k) return k - j >= diagonal and at(i, j, k) or 0 end), 2, 3, 4),
    function(x) return x:triu(diagonal) end)
  gives(shown(loops(A, B, C, function(i, j, k) return k - j <= diagonal and at(i, j, k) or 0 end), 2, 3, 4),
    function(x) return x:tril(diagonal) end)
end
refused("a triangle is of two dims or more, not of [24]", function(x) return x:view(24):triu() end)

local function of_rows(f)
  return shown(loops(A, B, 1, function(i, j)
    local row = {}
    for k = 1, C do row[k] = at(i, j, k) end
    return f(row)
  end), 2, 3)
end
local function how_many(row, is)
  local n = 0
  for _, each in ipairs(row) do n = n + (is(each) and 1 or 0) end
  return n
end
gives(of_rows(function(row) return tostring(how_many(row, function(v) return v > 5 end) > 0) end),
  function(x) return x:gt(5):any(3) end)
gives(of_rows(function(row) return tostring(how_many(row, function(v) return v ~= 0 end) == C) end), function(x) return x:all(-1) end)
gives(shown({ "true" }), function(x) return x:any() end)
gives(shown({ "false" }, 1, 1, 1), function(x) return x:all(nil, { keep = true }) end)
gives(of_rows(function(row)
  local least = 1
  for k = 2, C do if row[k] < row[least] then least = k end end
  return least - 1
end), function(x) return x:argmin() end)
local bytes = orrery.func(function(x) return x:argmin(), x:ne(3):argmin() end)
local of_bytes, of_truth = bytes(orrery.tensor({ { 9, 3, 3 } }, "u8"))
assert(of_bytes:item() == 1 and of_truth:item() == 1)

-- Over 10 numbers in f64: the root of the mean of squares, by n - 1 and by n.
local numbers, sum, squares = {}, 0, 0
for i = 1, 10 do numbers[i] = math.sin(i) end
for _, v in ipairs(numbers) do sum = sum + v end
for _, v in ipairs(numbers) do squares = squares + (v - sum / 10) ^ 2 end
local less, all = orrery.func(function(x) return x:std(), x:std(1, { correction = 0, keep = true }) end)(orrery.tensor(numbers, "f64"))
assert(math.abs(less:item() - math.sqrt(squares / 9)) < 1e-14 and #less.shape == 0)
assert(math.abs(all:item() - math.sqrt(squares / 10)) < 1e-14 and #all.shape == 1)
