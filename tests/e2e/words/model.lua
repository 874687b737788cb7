-- SPDX-License-Identifier: Apache-2.0
-- The words of orrery.world against plain Lua over the values of all ranks, which each rank can compute
-- alone: rank r's element i is f(r, i).
local orrery = require "orrery"
local world = orrery.world
local P, me = world.size, world.rank

local function f(r, i) return (r + 1) * (i * 7 % 5 - 1.5) end

-- rows x 2 of rank r, with elements counted from `first`.
local function rows_of(r, rows, first)
  local list = {}
  for i = 1, rows do list[i] = { f(r, first + 2 * i), f(r, first + 2 * i + 1) } end
  return list
end
local function same(got, want, what)
  if type(want) ~= "table" then
    if got ~= want then error(("%s: %s, the model says %s"):format(what, got, want), 2) end
    return
  end
  same(#got, #want, what .. ": length")
  for i = 1, #want do same(got[i], want[i], what .. "[" .. i .. "]") end
end

local folds = {
  sum = function(a, b) return a + b end,
  prod = function(a, b) return a * b end,
  min = math.min,
  max = math.max,
}
local function reduced(op, value)
  local x = value(0)
  for r = 1, P - 1 do x = (folds[op] or folds.sum)(x, value(r)) end
  return op == "mean" and x / P or x
end
local function reduced_rows(op, rows, first)
  local list = {}
  for i = 1, rows do
    list[i] = {}
    for j = 0, 1 do
      list[i][j + 1] = reduced(op, function(r) return f(r, first + 2 * i + j) end)
    end
  end
  return list
end

-- The mean of P ranks is exact where P is a power of two; the model divides once, as the word does.
local function f32(x) return orrery.tensor({ x }, "f32"):tolist()[1] end
local function rounded(x)
  if type(x) == "number" then return f32(x) end
  local list = {}
  for i = 1, #x do list[i] = rounded(x[i]) end
  return list
end

for _, op in ipairs { "sum", "mean", "min", "max", "prod" } do
  for _, rows in ipairs { 1, 3, 700 } do
    local x = orrery.tensor(rows_of(me, rows, 0), "f32")
    same(world:allreduce(x, { op = op }):tolist(), rounded(reduced_rows(op, rows, 0)), "allreduce " .. op)
    local part, first = rows // P + (me < rows % P and 1 or 0), me * (rows // P) + math.min(me, rows % P)
    local mine = world:reduce_scatter(x, { op = op })
    same(mine.shape[1], part, "reduce_scatter rows")
    same(mine:tolist(), rounded(reduced_rows(op, part, 2 * first)), "reduce_scatter " .. op)
  end
end

-- A list in one operation, of two dtypes; the same list again without waiting at once.
local list = { orrery.tensor(rows_of(me, 2, 0), "f32"), orrery.tensor({ me, 2 * me }, "i64"), orrery.tensor(f(me, 9), "f32") }
local triangle = P * (P - 1) // 2
for _, got in ipairs { world:allreduce(list, { name = "list" }), world:allreduce_async(list):wait() } do
  same(got[1]:tolist(), reduced_rows("sum", 2, 0), "grouped[1]")
  same(got[2]:tolist(), { triangle, 2 * triangle }, "grouped[2]")
  same(got[3]:item(), reduced("sum", function(r) return f(r, 9) end), "grouped[3]")
end
same(#world:allreduce {}, 0, "an empty list")

-- Rank r brings r + 1 rows, the last of several none: what one row leaves to it.
local function count(r) return P > 1 and r == P - 1 and 0 or r + 1 end
local none = world:reduce_scatter(orrery.tensor({ { 1, 2 } }, "f32"))
local mine = count(me) == 0 and none or orrery.tensor(rows_of(me, count(me), 0), "f32")
local all = {}
for r = 0, P - 1 do
  for _, row in ipairs(rows_of(r, count(r), 0)) do all[#all + 1] = row end
end
same(world:allgather(mine):tolist(), all, "allgather")
local two = world:allgather_async({ mine, orrery.tensor({ me }, "i32") }, { name = "two" })
local got = two:wait()
same(got[1]:tolist(), all, "allgather of a list")
for r = 0, P - 1 do same(got[2]:tolist()[r + 1], r, "allgather of a list, ranks") end
same(two:poll(), true, "poll after wait")
same(two:wait()[2].shape[1], P, "a second wait")

-- Rank s sends (2 s + r) % 3 rows to rank r.
local splits, sent, want, counts = {}, {}, {}, {}
for r = 0, P - 1 do
  splits[r + 1] = (2 * me + r) % 3
  for _, row in ipairs(rows_of(me, splits[r + 1], 10 * r)) do sent[#sent + 1] = row end
  counts[r + 1] = (2 * r + me) % 3
  for _, row in ipairs(rows_of(r, counts[r + 1], 10 * me)) do want[#want + 1] = row end
end
if P > 1 then
  local y, from = world:alltoall(orrery.tensor(sent, "f32"), { splits = splits })
  same(from, counts, "alltoall splits")
  same(y.shape[1], #want, "alltoall rows")
  if #want > 0 then same(y:tolist(), want, "alltoall") end
end
local even = {}
for r = 0, P - 1 do even[r + 1] = 10 * me + r end
for r, value in ipairs((world:alltoall(orrery.tensor(even, "i32"))):tolist()) do
  same(value, 10 * (r - 1) + me, "alltoall in equal parts")
end

for root = 0, P - 1 do
  same(world:broadcast(orrery.tensor({ f(me, 1), f(me, 2) }, "f32"), { root = root }):tolist(), { f(root, 1), f(root, 2) }, "broadcast")
  local value = { rank = me, list = { "a\0b", 2.5, true, { deep = me } }, [3] = false }
  local copy = world:broadcast_object(me == root and value or nil, { root = root })
  same(copy.rank, root, "object.rank")
  same(copy.list, { "a\0b", 2.5, true, copy.list[4] }, "object.list")
  same(math.type(copy.list[4].deep), "integer", "an integer stays one")
  same(copy[3], false, "object[3]")
end
for r, value in ipairs(world:allgather_object("rank " .. me)) do same(value, "rank " .. r - 1, "allgather_object") end
same(#world:allgather_object(nil), 0, "nils leave no trace in a list")

-- States change in place, a module's too.
local model = orrery.nn.sequential { orrery.nn.linear(1, 1), orrery.nn.linear(1, 1) }
local parameters = orrery.parameters(model)
for i, p in ipairs(parameters) do p:write(#p.shape == 2 and { { f(me, i) } } or { f(me, i) }) end
local function first(p)
  local value = p:read():tolist()
  while type(value) == "table" do value = value[1] end
  return value
end
world:broadcast(model, { root = P - 1, name = "model" })
for i, p in ipairs(parameters) do same(first(p), f(P - 1, i), "broadcast of " .. p.name) end
world:allreduce_async(parameters, { op = "mean" }):wait()
for i, p in ipairs(parameters) do
  same(first(p), f32(reduced("mean", function() return f(P - 1, i) end)), "mean of " .. p.name)
end

-- An optimizer's states, after steps that differed.
local optimizer = orrery.optim.adam { lr = 0.1 }:attach(model)
local gradients = {}
for i, p in ipairs(parameters) do
  gradients[i] = orrery.buffer(p.shape)
  gradients[i]:write(#p.shape == 2 and { { f(me, i) } } or { f(me, i) })
end
optimizer:update(gradients)
local states = world:broadcast(optimizer, { root = P - 1 })
same(#states, 3 * #parameters, "states of adam") -- m, v and the count of updates
for i, state in ipairs(states) do
  local pieces = world:allgather_object(first(state))
  for r = 1, P do same(pieces[r], pieces[P], "broadcast of " .. state.name) end
  if pieces[P] == 0 and i > 2 then error(state.name .. " has not moved") end
end

-- A ring of messages, even ranks first, so that nobody waits for who waits.
if P > 1 then
  local to, from, token = (me + 1) % P, (me - 1) % P, orrery.tensor({ me, me * me }, "i64")
  local function receive() same(world:recv(token, { from = from, tag = 5 }):tolist(), { from, from * from }, "recv") end
  if me == 0 then receive() end
  world:send(token, { to = to, tag = 5 })
  if me > 0 then receive() end
end

-- Words of overlapping groups, begun in one order and awaited in another.
if P > 2 then
  local ends, rest = world:group { P - 1, 0 }, world:group { 0, 1 }
  same(ends.size, 2, "group.size")
  same(ends.rank, me == 0 and 0 or me == P - 1 and 1 or nil, "group.rank")
  local handles = {}
  if ends.rank then handles[1] = ends:allreduce_async(orrery.tensor({ me }, "i64")) end
  if rest.rank then handles[#handles + 1] = rest:allreduce_async(orrery.tensor({ me }, "i64"), { op = "max" }) end
  local whole = world:allreduce(orrery.tensor({ 1 }, "i64"))
  same(whole:item(), P, "the world beside its groups")
  if rest.rank then same(handles[#handles]:wait():item(), 1, "group{0, 1}") end
  if ends.rank then same(handles[1]:wait():item(), P - 1, "group{0, P - 1}") end
  if ends.rank then same(ends:broadcast_object(me, { root = 1 }), P - 1, "a root counts in the group") end
end

-- Rank r has r + 1 batches; who has no more adds nothing, and divides by all.
for batch = 1, me + 1 do
  local active = 0
  for r = 0, P - 1 do if r + 1 >= batch then active = active + 1 end end
  same(world:allreduce(orrery.tensor({ 1, 2 }, "f32")):tolist(), { active, 2 * active }, "sum of the active")
  local pair = world:allreduce({ orrery.tensor({ 4 }, "f64"), orrery.tensor({ 4 }, "f32") }, { op = "mean" })
  same(pair[1]:item(), 4 * active / P, "mean with zeros")
  same(world:allreduce { orrery.tensor({ 1 }, "f32"), orrery.tensor({ 2 }, "f32") }[2]:item(), 2 * active, "a list with zeros")
  world:barrier()
end
same(world:join(), P - 1, "the last to join")
same(world:join(), P - 1, "joined at once: the highest rank")
same(world:allreduce(orrery.tensor({ 1 }, "i64")):item(), P, "all are back")
orrery.log("the model agrees on %d ranks", P)
