-- SPDX-License-Identifier: Apache-2.0
--
-- nn.normalize and nn.cosine_similarity of vectors that are 0 or short, against the formulas; ordinary ones are in
-- tests/golden.
local orrery = require "orrery"
local nn = orrery.nn

local function near(a, b, what)
  assert(math.abs(a - b) <= 1e-5 * math.max(1, math.abs(b)), ("%s: %.9g, expected %.9g"):format(what, a, b))
end

local x = orrery.tensor({ { 0, 0 }, { 0.003, -0.004 } }, "f32")
for _, p in ipairs { 1, 2, 3, 4, math.huge } do
  local plain = orrery.func(function(t)
    local y = nn.normalize(t, { p = p })
    return y, orrery.grad(y:sum(), { t })[1]
  end)
  local y, slope = plain(x)
  y, slope = y:tolist(), slope:tolist()
  local length = p == math.huge and 0.004 or (0.003 ^ p + 0.004 ^ p) ^ (1 / p)
  near(y[1][1], 0, "of zeros")
  near(slope[1][1], 1e12, "the slope at 0") -- that of a division by eps
  near(y[2][1], 0.003 / length, "p = " .. p)
  local short = orrery.func(function(t) return nn.normalize(t, { p = p, eps = 0.1 }) end)(x):tolist()
  near(short[2][2], -0.04, "by eps")
end

local cosines = orrery.func(function(a, b)
  local y = nn.cosine_similarity(a, b)
  local da, db = table.unpack(orrery.grad(y:sum(), { a, b }))
  return y, da, db, nn.cosine_similarity(a, b, { eps = 0.1 }), nn.cosine_similarity(a:cast "bf16", b:cast "bf16")
end)
local y, da, db, short, half = cosines(x, orrery.tensor({ { 3, 4 }, { 3, 4 } }, "f32"))
near(y:tolist()[1], 0, "cosine of 0")
near(da:tolist()[1][1], 0.6e8, "its slope")
near(db:tolist()[1][1], 0, "the other's")
near(y:tolist()[2], 0.6 * 0.6 - 0.8 * 0.8, "cosine")
near(short:tolist()[2], (0.003 * 3 - 0.004 * 4) / 0.1 / 5, "by eps")
assert(half.dtype == "bf16" and math.abs(half:tolist()[2] + 0.28) < 0.01)

-- In the type of another tensor.
local seven = orrery.full_like(orrery.tensor({ { 1, 2 } }, "f64"), 7)
assert(seven.dtype == "f64" and table.concat(seven:tolist()[1], " ") == "7.0 7.0")

local function refused(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
refused("normalize: p = 0, expected a number above 0", nn.normalize, x, { p = 0 })
refused("normalize: eps = -1, expected a number of at least 0", nn.normalize, x, { eps = -1 })
refused("dim 3 does not exist", nn.normalize, x, { dim = 3 })
refused("cosine_similarity: eps = -1", nn.cosine_similarity, x, x, { eps = -1 })
