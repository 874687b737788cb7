-- SPDX-License-Identifier: Apache-2.0
--
-- Losses at their edges, with values and slopes by their formulas in double precision, and what they refuse. Ordinary
-- numbers are in tests/golden.
local orrery = require "orrery"
local nn = orrery.nn

-- Values and slopes by the first tensor of loss(x, ...), a loss of rows, as lists.
local function measured(loss, ...)
  local values, slopes = orrery.func(function(x, ...)
    local y = loss(x, ...)
    return y, orrery.grad(y:sum(), { x })[1]
  end)(...)
  return values:tolist(), slopes:tolist()
end
local function near(found, wanted, what)
  for i, value in ipairs(wanted) do
    local error = math.abs(found[i] - value)
    assert(error <= 1e-6 * math.abs(value), ("%s, element %d: %.9g, expected %.9g"):format(what, i, found[i], value))
  end
end
local function row(...) return orrery.tensor({ ... }, "f32") end
local none = { reduction = "none" }
local function each(name, options)
  options = options or {}
  options.reduction = "none"
  return function(...)
    local given = { ... }
    given[#given + 1] = options
    return nn[name](table.unpack(given))
  end
end

-- Logits that no exp holds, at 0, and where all of the loss is in the last digits of a sum.
local values, slopes = measured(each "bce_with_logits", row(0, 0, -20, 20, 200, -200, 90, -30), row(0, 1, 0, 1, 0, 1, 0.5, 1))
local little = math.exp(-20) -- of which log1p and the sigmoid differ less than f32 shows
near(values, { math.log(2), math.log(2), little, little, 200, 200, 45, 30 }, "bce_with_logits")
near(slopes, { 0.5, -0.5, little, -little, 1, -1, 0.5, -1 }, "bce_with_logits' slope")
-- PyTorch's: logarithms end at -100, and the slope's divisor at 1e-12.
values, slopes = measured(each "bce", row(0, 1, 0, 1, 0.25, 1e-9), row(1, 0, 0, 1, 0.5, 0))
near(values, { 100, 100, 0, 0, -0.5 * math.log(0.25) - 0.5 * math.log(0.75), 1e-9 }, "bce")
near(slopes, { -1e12, 1e12, 0, 0, -0.25 / (0.75 * 0.25), 1 }, "bce's slope")
-- Where one formula ends and another begins, and at 0.
near(select(2, measured(each "l1", row(1, 2, 3), row(1, 1, 5))), { 0, 1, -1 }, "l1's slope")
values, slopes = measured(each("smooth_l1", { beta = 2 }), row(0, 1, 2, 3), row(0, 0, 0, 0))
near(values, { 0, 0.25, 1, 2 }, "smooth_l1")
near(slopes, { 0, 0.5, 1, 1 }, "smooth_l1's slope")
values, slopes = measured(each("huber", { delta = 2 }), row(0, 1, 2, 3), row(0, 0, 0, 0))
near(values, { 0, 0.5, 2, 4 }, "huber")
near(slopes, { 0, 1, 2, 2 }, "huber's slope")
near(measured(each "kl_div", row(-1, -2), row(0, 0.5)), { 0, 0.5 * math.log(0.5) + 1 }, "kl_div of 0")

-- Classes that are ruled out by -inf, logits of any size, and ranks of positions.
local out = -math.huge
local ruled = orrery.tensor({ { 1e4, 1e4 + 1, out }, { out, 0, 1 } }, "f32")
local function classes(options) return function(x, y) return nn.cross_entropy(x, y, options) end end
values, slopes = measured(classes(none), ruled, orrery.tensor { 0, 1 })
near(values, { math.log(1 + math.exp(1)), math.log(1 + math.exp(1)) }, "cross_entropy")
near(slopes[1], { -1 + 1 / (1 + math.exp(1)), 1 / (1 + math.exp(-1)), 0 }, "cross_entropy's slope")
near(slopes[2], { 0, -1 + 1 / (1 + math.exp(1)), 1 / (1 + math.exp(-1)) }, "cross_entropy's slope")
near(measured(classes { reduction = "none", ignore = -100 }, ruled, orrery.tensor { 0, -100 }),
  { math.log(1 + math.exp(1)), 0 }, "an ignored label")
-- A class that counts nothing may be ruled out, also where labels are smoothed.
local unweighed = { reduction = "none", class_weights = { 1, 2, 0 }, label_smoothing = 0.3 }
near(measured(classes(unweighed), orrery.tensor({ { 1e4, 1e4 + 1, out } }, "f32"), orrery.tensor { 1 }),
  { 0.7 * 2 * math.log(1 + math.exp(-1)) + 0.1 * (math.log(1 + math.exp(1)) + 2 * math.log(1 + math.exp(-1))) },
  "a class of weight 0")

-- Losses of 16 bits are those of f32.
local halves = orrery.func(function(x, y)
  return nn.l1(x:cast "bf16", y:cast "bf16"), nn.bce_with_logits(x:cast "f16", y:cast "f16"),
    nn.cross_entropy(x:cast "f16":reshape(1, 3), y:cast "bf16":reshape(1, 3))
end)
for _, loss in ipairs { halves(row(0.5, 1, -2), row(1, 0, 1)) } do assert(loss.dtype == "f32") end

local function refused(words, f, ...)
  local given = { ... }
  local ok, message = pcall(function() orrery.func(f)(table.unpack(given)) end)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
local x, y, k = row(1, 2), orrery.tensor({ { 1 }, { 2 } }, "f32"), orrery.tensor { 0, 5 }
for _, name in ipairs { "bce", "bce_with_logits", "l1", "smooth_l1", "huber", "kl_div" } do
  refused(("%s: x and y are [2] and [2,1]: give tensors of one shape"):format(name), function(a, b) return nn[name](a, b) end, x, y)
  refused('reduction = "avg": give "mean", "sum"', function(a) return nn[name](a, a, { reduction = "avg" }) end, x)
end
refused("smooth_l1: beta = -1, expected a number of at least 0", function(a) return nn.smooth_l1(a, a, { beta = -1 }) end, x)
refused("huber: delta = 0, expected a number above 0", function(a) return nn.huber(a, a, { delta = 0 }) end, x)
refused("nll: labels are f32[2], expected integers [2]", function(a, b) return nn.nll(b, a) end, x, y)
refused("nll: labels are i64[2], expected integers [2,1]", function(a, b) return nn.nll(a:reshape(2, 1, 1), b) end, x, k)
refused("nll: the losses and the weights are [2] and [2,1]", function(a, b, c)
  return nn.nll(b, c * 0, { weights = b })
end, x, y, k)
refused("5", function(a, b) return nn.nll(a, b) end, orrery.tensor({ { 1, 2 }, { 3, 4 } }, "f32"), k)
refused("nll: class_weights is [2], expected 1 numbers, one for each class", function(a, b)
  return nn.nll(a, b * 0, { class_weights = { 1, 2 } })
end, y, k)
refused("cross_entropy: class_weights is 3, expected a tensor or a list", function(a, b)
  return nn.cross_entropy(a, b * 0, { class_weights = 3 })
end, y, k)
refused("cross_entropy: label_smoothing = 2 is not in [0, 1]", function(a, b)
  return nn.cross_entropy(a, b, { label_smoothing = 2 })
end, y, k)
refused("cross_entropy: ignore is a class, and labels are probabilities here", function(a)
  return nn.cross_entropy(a, a, { ignore = 1 })
end, y)
refused("cosine_embedding: the cosines and y are [2] and [2,1]", function(a) return nn.cosine_embedding(a, a, a) end, y)
refused("triplet: anchor and negative are [2,1] and [2]", function(a, b) return nn.triplet(a, a, b) end, y, x)
local steps, some = orrery.tensor({ { { 1, 2 }, { 3, 4 } }, { { 1, 2 }, { 3, 4 } } }, "f32"), orrery.tensor { { 1 }, { 1 } }
refused("ctc: x is [2,1], expected [batch, time, classes]", function(a, b) return nn.ctc(a, b, b, b) end, y, k)
refused("ctc: labels are i64[2], expected integers [2, labels]", function(a, b) return nn.ctc(a, b, b, b) end, steps, k)
refused("ctc: label_lengths are i64[2,1], expected integers [2], one for each sample", function(a, b, c)
  return nn.ctc(a, b, c, b)
end, steps, some, k)
refused("ctc: blank = 2 is not one of 2 classes", function(a, b, c) return nn.ctc(a, b, c, c, { blank = 2 }) end, steps, some, k)
refused("5", function(a, b, c) return nn.ctc(a, b, c, c) end, steps, some, k) -- a length of 5 in a time of 2
refused("triplet: p = 0, expected a number above 0", function(a) return nn.triplet(a, a, a, { p = 0 }) end, y)
