-- SPDX-License-Identifier: Apache-2.0
--
-- einsum against loops over all letters; normal numbers by their moments.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local sizes = { a = 2, b = 3, i = 4, j = 2, k = 3 }

local function filled(letters, seed)
  local function level(at, index)
    if at > #letters then return math.sin(seed + 1.7 * index) end
    local list = {}
    for n = 1, sizes[letters:sub(at, at)] do list[n] = level(at + 1, index * 7 + n) end
    return list
  end
  return level(1, 0)
end

local function at(list, letters, index)
  for letter in letters:gmatch "%a" do list = list[index[letter]] end
  return list
end

-- Calls body with every assignment of the letters.
local function each(letters, index, body)
  if letters == "" then return body(index) end
  local letter = letters:sub(1, 1)
  for n = 1, sizes[letter] do
    index[letter] = n
    each(letters:sub(2), index, body)
  end
end

for _, equation in ipairs {
  "aij,ajk->aik", "ij->ji", "ij->", "ij->j", "aij,kj->aki", "ai,bi->ab", "abi,abj->abij", "aij,abi->bj", "ai,ak,a->ik",
  "ij,k->kji", "aib,jb,kj->kia",
} do
  local inputs, result = equation:match "^(.-)%->(.*)$"
  local terms, values = {}, {}
  for term in inputs:gmatch "%a+" do
    terms[#terms + 1] = term
    values[#values + 1] = filled(term, #terms)
  end
  local all, seen = "", {}
  for letter in inputs:gmatch "%a" do
    if not seen[letter] then all, seen[letter] = all .. letter, true end
  end
  local inner = all:gsub("%a", function(letter) return result:find(letter) and "" or letter end)
  local y = orrery.func(function(...) return orrery.einsum(equation, ...) end)(table.unpack(values))
  local found = result == "" and y:item() or y:tolist()
  each(result, {}, function(index)
    local sum = 0
    each(inner, index, function()
      local one = 1
      for i, term in ipairs(terms) do one = one * at(values[i], term, index) end
      sum = sum + one
    end)
    local got = at(found, result, index)
    assert(math.abs(got - sum) < 1e-5, ("%s: %g, wanted %g"):format(equation, got, sum))
  end)
end

local x = orrery.func(function() return orrery.normal { 20000 } end)():tolist()
local mean, square, fourth = 0, 0, 0
for _, value in ipairs(x) do mean, square, fourth = mean + value, square + value ^ 2, fourth + value ^ 4 end
mean, square, fourth = mean / #x, square / #x, fourth / #x
assert(math.abs(mean) < 0.03 and math.abs(square - 1) < 0.05 and math.abs(fourth - 3) < 0.3,
  ("%g %g %g"):format(mean, square, fourth))

-- A batch of one sample, whose dim shows by no extent, trains as another does.
for _, samples in ipairs { 2, 1 } do
  local model = nn.module("Outer", function(m)
    m.w = nn.parameter({ 2, 3 }, { init = nn.init.constant(1) })
    return function(x) return orrery.einsum("za,aq->zaq", x, m.w):sum { 2, 3 } end
  end)()
  local run = orrery.compile(function(b) return model(b.x):mean() end, { params = model, optimizer = optim.sgd { lr = 1 } })
  local x = orrery.func(function() return orrery.ones { samples, 2 } end)()
  assert(run:step({ x = x }):mean() == 6)
  for _, row in ipairs(model.w:read():tolist()) do
    for _, w in ipairs(row) do assert(w == 0, w) end
  end
end
