-- SPDX-License-Identifier: Apache-2.0
--
-- Windows, their sums, steps, borders, and reductions that are made of others, against loops.
local orrery = require "orrery"
local nn = orrery.nn

local function flat(list, into)
  into = into or {}
  if type(list) ~= "table" then into[#into + 1] = list return into end
  for _, each in ipairs(list) do flat(each, into) end
  return into
end

local function check(what, found, wanted)
  found, wanted = flat(found), flat(wanted)
  assert(#found == #wanted, ("%s: %d numbers, expected %d"):format(what, #found, #wanted))
  for i, w in ipairs(wanted) do
    assert(math.abs(found[i] - w) <= 1e-5 * math.max(1, math.abs(w)),
      ("%s: number %d is %.8g, expected %.8g"):format(what, i, found[i], w))
  end
end

local function of(f, ...) return orrery.func(f)(...):tolist() end
local function fails(f, text)
  local ok, message = pcall(f)
  assert(not ok and message:find(text, 1, true), tostring(message))
end

-- -- windows and fold ---------------------------------------------------------------------------------------------

local x = { { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 }, { 9, 10 } } } -- [1, 5, 2]
local t = orrery.tensor(x, "f32")
check("windows", of(function(a) return a:windows(2, { stride = 2 }) end, t), { 1, 2, 3, 4, 5, 6, 7, 8 })
check("dilation", of(function(a) return a:windows(2, { dilation = 3 }) end, t), { 1, 2, 7, 8, 3, 4, 9, 10 })
check("fold", of(function(a) return a:windows(3):fold(5) end, t), { 1, 2, 6, 8, 15, 18, 14, 16, 9, 10 })
check("two dims", of(function(a) return a:reshape(5, 2, 1):windows { 2, 2 } end, t),
  { 1, 2, 3, 4, 3, 4, 5, 6, 5, 6, 7, 8, 7, 8, 9, 10 })
fails(function() of(function(a) return a:windows(6) end, t) end,
  "windows: a window that spans 6 does not fit into a length of 5: pad it")
fails(function() of(function(a) return a:windows({ 2, 2 }, { stride = { 1, 1, 1 } }) end, t) end, "stride [1,1,1]: 2 sizes")

-- -- steps and borders --------------------------------------------------------------------------------------------

check("every second", of(function(a) return a:slice(2, 1, -1, 2) end, t), { 1, 2, 5, 6, 9, 10 })
check("from the second on", of(function(a) return a:slice(2, 2, 4, 2) end, t), { 3, 4, 7, 8 })
check("of the last dim", of(function(a) return a:slice(3, 1, -1, 2) end, t), { 1, 3, 5, 7, 9 })
check("of the first dim", of(function(a) return a:reshape(5, 2):slice(1, 1, -1, 4) end, t), { 1, 2, 9, 10 })
check("gradient of a step", of(function(a)
  return orrery.grad((a:slice(2, 1, -1, 3) * 2):sum(), { a })[1]
end, t), { 2, 2, 0, 0, 0, 0, 2, 2, 0, 0 })
fails(function() of(function(a) return a:slice(2, 1, -1, 0) end, t) end, "slice: step 0")
check("backwards", of(function(a) return a:slice(2, -1, 1, -1) end, t), { 9, 10, 7, 8, 5, 6, 3, 4, 1, 2 })
check("backwards in steps", of(function(a) return a:slice(2, 4, 1, -2) end, t), { 7, 8, 3, 4 })
check("gradient backwards", of(function(a)
  return orrery.grad((a:slice(2, -1, 1, -3) * a:slice(2, 1, 2)):sum(), { a })[1]
end, t), { 9, 10, 6, 8, 0, 0, 0, 0, 1, 2 })
fails(function() of(function(a) return a:slice(2, 1, 3, -1) end, t) end, "slice: from 1 to 3 there is no step of -1")
check("borders", of(function(a) return a:slice(2, 1, 2):pad(2, 5, { before = 2, value = 7 }) end, t),
  { 7, 7, 7, 7, 1, 2, 3, 4, 7, 7 })
check("borders on two sides", of(function(a)
  return a:slice(2, 1, 2):pad(2, 4, { before = 1 }):pad(3, 3, { before = 1 }) * 2
end, t), { 0, 0, 0, 0, 2, 4, 0, 6, 8, 0, 0, 0 })
fails(function() of(function(a) return a:pad(2, 5, { before = 1 }) end, t) end,
  "pad: dim 2 has 5 elements: with 1 before them they are more than 5")

-- Random numbers count the elements in the order of the dims, also where memory has another.
local function drawn(f)
  orrery.seed(7)
  return orrery.func(f)(orrery.tensor({ { { 1, 2, 3 }, { 4, 5, 6 } } }, "f32"))
end
check("random numbers inside of borders", drawn(function(a)
  return orrery.uniform(a):permute(1, 3, 2):pad(2, 5, { before = 1 })
end):tolist()[1][2], drawn(function(a) return orrery.uniform(a):permute(1, 3, 2) end):tolist()[1][1])

-- -- reductions and the like --------------------------------------------------------------------------------------

local y = orrery.tensor({ { 1, 4, 9 }, { -2, 0, 5 } }, "f32")
check("var", of(function(a) return a:var(2) end, y), { 49 / 3, 13 })
check("var of all", of(function(a) return a:var(nil, { correction = 0 }) end, y), { 127 / 6 - (17 / 6) ^ 2 })
check("var keeps", of(function(a) return a - a:var(1, { keep = true }) end, y), { -3.5, -4, 1, -6.5, -8, -3 })
local function lse(...)
  local sum = 0
  for _, each in ipairs { ... } do sum = sum + math.exp(each) end
  return math.log(sum)
end
check("logsumexp", of(function(a) return a:logsumexp(2) end, y), { lse(1, 4, 9), lse(-2, 0, 5) })
check("logsumexp of large ones", of(function(a) return a:logsumexp() end, orrery.tensor { 1000.5, 1000.5 }),
  { 1000.5 + math.log(2) })
check("logsumexp of nothing", of(function(a) return a:logsumexp():exp() end,
  orrery.tensor { -math.huge, -math.huge }), { 0 })
check("clamp", of(function(a) return a:clamp(-1, 4.5) end, y), { 1, 4, 4.5, -1, 0, 4.5 })
check("cumsum", of(function(a) return a:cumsum(2) end, y), { 1, 5, 14, -2, -2, 3 })
check("cumsum of dim 1", of(function(a) return a:cumsum(1) end, y), { 1, 4, 9, -1, 4, 14 })
check("cumsum of many", of(function(a) return a:cumsum(-1) end, orrery.tensor { 1, 2, 3, 4, 5, 6, 7 }), { 1, 3, 6, 10, 15, 21, 28 })
check("one_hot", of(function(a) return a:one_hot(3) end, orrery.tensor({ 2, 0 }, "i64")), { 0, 0, 1, 1, 0, 0 })
check("one microbatch without a batch", of(function(a) return (a:microbatch_mean()) end, y),
  { -0.5, 2, 7, -0.5, 2, 7 })

-- -- layers: errors; that of several largest ones the first gets the gradient ---------------------------------------

check("first of equals", of(function(a)
  return orrery.grad(nn.max_pool2d(2)(a):sum(), { a })[1]
end, orrery.tensor({ { { { 3, 3, 1, 2 }, { 3, 0, 2, 2 } } } }, "f32")), { 1, 0, 0, 1, 0, 0, 0, 0 })
check("slope of relu", of(function(a) return orrery.grad(a:relu():sum(), { a })[1] end, orrery.tensor { -1.0, 0.0, 2.0 }),
  { 0, 0, 1 })
check("borders of a maximum are below all numbers", of(function(a)
  return nn.max_pool1d(3, { stride = 2, padding = 1 })(a)
end, orrery.tensor({ { { -5, -2, -7, -3 } } }, "f32")), { -2, -2 })
local dims = { 8, 3, 2, 5 } -- 30 numbers go into an output, 80 into an input
check("initial weights", { nn.init.fan_in(dims).b, nn.init.kaiming(dims).b, nn.init.xavier(dims).b },
  { 1 / math.sqrt(30), math.sqrt(2 / 30), math.sqrt(6 / 110) })
check("of linear layers", { nn.init.fan_in({ 8, 3 }).b, nn.init.xavier({ 8, 3 }).b },
  { 1 / math.sqrt(3), math.sqrt(6 / 11) })
fails(function() nn.conv2d(3, 4, { 3, 3, 3 }) end, "conv2d: size is {3, 3, 3}, expected 2 integers of at least 1")
fails(function() nn.conv2d(3, 4, 3, { groups = 2 }) end, "conv2d: 2 groups do not divide 3 inputs")
fails(function() nn.conv2d(3, 4, 3, { padding = -1 }) end, "conv2d: padding is -1, expected 2 integers of at least 0")
fails(function() of(function(a) return nn.conv2d(3, 4, 3)(a) end, y) end,
  "conv2d: x is [2,3], expected [batch, 3, length, length]")
fails(function() return nn.conv4d end, "there is no layer nn 'conv4d'")
