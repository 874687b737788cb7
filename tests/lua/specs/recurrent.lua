-- SPDX-License-Identifier: Apache-2.0
--
-- A recurrence against the same sums in Lua; an LSTM in two halves, the state carried, against it in one.
local orrery = require "orrery"
local nn = orrery.nn

local running = orrery.func(function(x)
  local sums, last = orrery.scan(function(s, x_t) local y = s and s * 0.5 + x_t or x_t return y, y end, nil, x)
  return sums, last
end)
local sums, last = running { { 8.0, 4.0, 2.0, 1.0 }, { 1.0, 1.0, 1.0, 1.0 } }
local wanted = { { 8, 8, 6, 4 }, { 1, 1.5, 1.75, 1.875 } }
for i, row in ipairs(sums:tolist()) do
  for t, value in ipairs(row) do assert(value == wanted[i][t], value) end
  assert(last:tolist()[i] == wanted[i][4])
end

local x = {}
for i = 1, 2 do
  x[i] = {}
  for t = 1, 6 do x[i][t] = { math.sin(i + t), math.cos(i * t), 0.1 * t } end
end
local function columns(from, to)
  return orrery.tensor { table.move(x[1], from, to, 1, {}), table.move(x[2], from, to, 1, {}) }
end
local function same(a, b)
  if type(a) ~= "table" then return assert(math.abs(a - b) < 1e-6, a) end
  for i in ipairs(a) do same(a[i], b[i]) end
end

local lstm = nn.lstm(3, 5, { layers = 2 })
local begin = orrery.func(function(b) local y, s = lstm(b) return y, s.h, s.c end)
local go_on = orrery.func(function(b, h, c) local y, s = lstm(b, { h = h, c = c }) return y, s.h, s.c end)
local whole, h, c = begin(columns(1, 6))
local first, h1, c1 = begin(columns(1, 2))
local rest, h2, c2 = go_on(columns(3, 6), h1, c1)
same(h:tolist(), h2:tolist())
same(c:tolist(), c2:tolist())
for i, row in ipairs(whole:tolist()) do
  same(table.move(row, 1, 2, 1, {}), first:tolist()[i])
  same(table.move(row, 3, 6, 1, {}), rest:tolist()[i])
end
-- Lengths: what is behind an end does not matter, and what is no length is refused.
local gru = nn.gru(3, 4, { bidirectional = true })
local within = orrery.func(function(b, n) local y, s = gru(b, { lengths = n }) return y, s end)
local given = columns(1, 6)
local changed = given:tolist()
for t = 4, 6 do changed[1][t] = { 9.0, -9.0, 9.0 } end
local lengths = orrery.tensor { 3, 6 }
local y, last_of_y = within(given, lengths)
local z, last_of_z = within(orrery.tensor(changed), lengths)
same(y:tolist(), z:tolist())
same(last_of_y:tolist(), last_of_z:tolist())
assert(y:tolist()[1][4][1] == 0 and y:tolist()[1][6][8] == 0 and y:tolist()[1][3][1] ~= 0)
local function refused(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
refused("gru: lengths are f32[2], expected integers [2], one for each sample", within, given, orrery.tensor({ 1, 2 }, "f32"))
refused("gru: lengths are i64[1], expected integers [2]", within, given, orrery.tensor { 1 })
refused("7", within, given, orrery.tensor { 3, 7 })
refused("gru: the state is a table, expected a tensor", orrery.func(function(b, n) return (gru(b, { h = n })) end), given, lengths)
refused("lstm: the state is a table, expected {h =, c =}", orrery.func(function(b, n) return (lstm(b, { c = n })) end), given, lengths)
refused("gru: unknown option 'length'", orrery.func(function(b, n) return (gru(b, nil, { length = n })) end), given, lengths)

local names = {}
for _, p in ipairs(orrery.parameters(nn.gru(3, 5, { bidirectional = true, bias = false }))) do names[#names + 1] = p.name end
assert(table.concat(names, " ") == "weight_hh_l0 weight_hh_l0_reverse weight_ih_l0 weight_ih_l0_reverse",
  table.concat(names, " "))
