-- SPDX-License-Identifier: Apache-2.0
--
-- run:eval of a dataset gives what one batch with all samples gives, whatever the size of its batches, against sums of
-- f64 by hand; where that cannot be, it is an error.
local orrery = require "orrery"
local nn, optim, metrics = orrery.nn, orrery.optim, orrery.metrics

local function near(a, b, what) assert(math.abs(a - b) < 2e-6 * math.max(1, math.abs(b)), ("%s: %.9g, expected %.9g"):format(what, a, b)) end
local function compiled(loss, model)
  return orrery.compile(loss, { params = model, optimizer = optim.sgd { lr = 0.0 }, microbatches = 2 })
end
local sizes = { 1, 3, 4, 10, 50 }
local function refused(part, f, ...)
  local ok, why = pcall(f, ...)
  assert(not ok and tostring(why):find(part, 1, true), tostring(why))
end

-- Ten samples of three scores, with labels of which -1 does not count: batches of 3 have 2, 1, 3 and 0 that do.
local rows, labels, hits = {}, { 0, -1, 2, -1, -1, 1, 1, 0, 2, -1 }, {}
for i = 1, 10 do rows[i] = { math.sin(i), math.cos(3 * i), math.sin(i * i) * 2 } end
local scale = orrery.parameter({}, { init = 1 })
local data = orrery.data.arrays { x = orrery.tensor(rows, "f32"), y = orrery.tensor(labels, "i32") }

local nll, known, right, class_right, class_said, class_there, square = 0, 0, 0, {}, {}, {}, 0
for c = 0, 2 do class_right[c], class_said[c], class_there[c] = 0, 0, 0 end
for i, row in ipairs(rows) do
  local sum, said = 0, 0
  for c = 1, 3 do
    sum, square = sum + math.exp(row[c]), square + row[c] ^ 2
    if row[c] > row[said + 1] then said = c - 1 end
  end
  local label = labels[i]
  if label >= 0 then
    nll, known = nll + math.log(sum) - row[label + 1], known + 1
    right, hits[i] = right + (said == label and 1 or 0), said == label
    class_said[said], class_there[label] = class_said[said] + 1, class_there[label] + 1
    if said == label then class_right[said] = class_right[said] + 1 end
  end
end
local f1, precision, recall = 0, 0, 0
for c = 0, 2 do
  f1 = f1 + 2 * class_right[c] / (class_said[c] + class_there[c]) / 3
  precision = precision + (class_said[c] > 0 and class_right[c] / class_said[c] or 0) / 3
  recall = recall + class_right[c] / class_there[c] / 3
end

local run = compiled(function(b)
  local logits, options = b.x * scale, { ignore = -1 }
  return nn.cross_entropy(logits, b.y, options), {
    accuracy = metrics.accuracy(logits, b.y, options), perplexity = metrics.perplexity(logits, b.y, options),
    f1 = metrics.f1(logits, b.y, options), precision = metrics.precision(logits, b.y, options),
    recall = metrics.recall(logits, b.y, options), micro = metrics.f1(logits, b.y, { ignore = -1, average = "micro" }),
    square = (logits * logits):sum(), root = (logits * logits):mean():sqrt(), mixed = logits:mean() / (b.y:ne(-1):cast "f32"):mean(),
    logits = logits, last = logits:transpose(1, 2), count = b.y:ne(-1):cast("i64"):sum(), scale = scale * 2,
  }
end, { scale = scale })
local all = 0
for _, row in ipairs(rows) do for _, x in ipairs(row) do all = all + x / 30 end end
for _, size in ipairs(sizes) do
  local result = run:eval(data, { size = size })
  local function check(name, value) near(result:get(name), value, name .. " in batches of " .. size) end
  check("loss", nll / known)
  check("accuracy", right / known)
  check("perplexity", math.exp(nll / known))
  check("f1", f1)
  check("precision", precision)
  check("recall", recall)
  check("micro", right / known)
  check("square", square)
  check("root", math.sqrt(square / 30))
  check("mixed", all / (known / 10))
  check("count", known)
  check("scale", 2)
  assert(#result:get("logits"):tolist() == 10 and #result:get("last"):tolist() == 3)
  for i, row in ipairs(result:get("logits"):tolist()) do
    for c = 1, 3 do
      near(row[c], rows[i][c], "logits")
      near(result:get("last"):tolist()[c][i], rows[i][c], "last")
    end
  end
end
near(run:eval(data, { size = 4 }):mean(), nll / known, "another pass begins anew")

-- The first samples alone, of a shard too.
local plain = compiled(function(b) return (b.x * scale):mean(), { sum = (b.x * scale):sum() } end, { scale = scale })
local numbers = {}
for i = 1, 11 do numbers[i] = i * i / 8 end
local squares = orrery.data.arrays { x = orrery.tensor(numbers, "f32") }
local function sum(first, step, count)
  local all = 0
  for i = 0, count - 1 do all = all + numbers[first + i * step] end
  return all
end
near(plain:eval(squares, { size = 4, limit = 7 }):get "sum", sum(1, 1, 7), "limit")
near(plain:eval(squares, { size = 4, limit = 7 }):mean(), sum(1, 1, 7) / 7, "limit")
near(plain:eval(squares, { size = 4, limit = 99 }):get "sum", sum(1, 1, 11), "limit")
near(plain:eval(squares, { size = 1 << 50 }):get "sum", sum(1, 1, 11), "a size of more than all")
near(plain:eval(squares:shard(1, 3), { size = 2 }):get "sum", sum(2, 3, 4), "shard")
near(plain:eval(squares:shard(1, 3), { size = 2, limit = 3 }):get "sum", sum(2, 3, 3), "shard")

-- Windows of text side by side.
local letters = "Which words does a pass over this text have, and which not?"
local windows = orrery.data.text(letters, { ctx = 7, tokens = "bytes", string = true })
for limit, count in pairs { [3] = 3, [8] = 8, [100] = (#letters - 1) // 7 } do
  local sum = 0
  for i = 1, count * 7 do sum = sum + letters:byte(i) end
  near(plain:eval(windows, { size = 2, limit = limit }):get "sum", sum, "text")
end

-- A stream from its beginning to its end, without what shuffles it; or as far as limit says.
local stream = orrery.data.from(function()
  local i = 0
  return function()
    i = i + 1
    return numbers[i] and { x = numbers[i] }
  end
end, { shuffle = 5, dtypes = { x = "f32" } })
for _ = 1, 2 do near(plain:eval(stream, { size = 4 }):get "sum", sum(1, 1, 11), "stream") end
near(plain:eval(stream, { size = 4, limit = 6 }):get "sum", sum(1, 1, 6), "stream")
local lists = { { 1, 2 }, { 3 }, { 4, 5, 6 }, { 7, 8 }, { 9 }, { 10, 11 } }
local padded = orrery.data.from(function()
  local i = 0
  return function()
    i = i + 1
    return lists[i] and { x = lists[i] }
  end
end, { pad = { x = 0 }, lengths = { 1, 2, 4 }, dtypes = { x = "f32" } })
near(plain:eval(padded, { size = 2 }):get "sum", 66, "what waits at the end of a stream")

-- Sums of 16 bits, and of more samples than f32 counts in ones of 1/3.
local half = compiled(function(b) return (b.x * scale):cast("f16"):mean() end, { scale = scale })
local many = {}
for i = 1, 3000 do many[i] = i % 7 + 100 end
local exact = 0
for i = 1, 3000 do exact = exact + many[i] / 3000 end
local found = half:eval(orrery.data.arrays { x = orrery.tensor(many, "f32") }, { size = 512 }):mean()
assert(math.abs(found - exact) < 0.07, found)

-- No dropout, no update, nothing is left in the model or in checkpoints.
local net = nn.sequential { nn.linear(3, 4), nn.batchnorm(4), nn.dropout(0.5), nn.linear(4, 1) }
local trained = orrery.compile(function(b) return net(b.x):mean() end,
  { params = net, optimizer = optim.adam { lr = 0.01 }, microbatches = 2 })
trained:step(data:batch(1, { size = 4 }))
local before = orrery.digest(net)
local one = trained:eval(data, { size = 10 }):mean()
near(trained:eval(data, { size = 3 }):mean(), one, "batchnorm")
near(trained:eval({ x = orrery.tensor(rows, "f32") }):mean(), one, "one batch")
assert(orrery.digest(net) == before and trained.steps == 1)
local folder = os.tmpname()
os.remove(folder)
trained:save(folder)
for line in io.lines(folder .. "/checkpoint.json") do assert(not line:find("pass.", 1, true), line) end

-- What is watched is of a batch.
local watched = compiled(function(b)
  orrery.watch(b.x * scale, "v")
  return (b.x * scale):mean()
end, { scale = scale })
assert(#watched:eval(squares, { size = 4 }):names() == 1 and #watched:eval({ x = { 1.0, 2.0 } }):names() > 1)

-- What depends on which samples meet, or on how many: right in one batch, refused in several.
local x = orrery.data.arrays { x = orrery.tensor({ 1, 2, 3, 6 }, "f32") }
local function only_whole(part, loss)
  local this = compiled(loss, { scale = scale })
  local whole = this:eval(x, { size = 4 }):mean()
  refused(part, this.eval, this, x, { size = 2 })
  refused("passes.lua", this.eval, this, x, { size = 3 })
  return whole
end
near(only_whole("samples read others of their batch here", function(b)
  local v = b.x * scale
  local all = v:all_gather "batch"
  return (v - all:max(1)):mean()
end), -3, "largest")
near(only_whole("samples read others of their batch here", function(b)
  local v = b.x * scale
  return ((v - v:mean()) * (v - v:mean())):mean()
end), 3.5, "variance")
near(only_whole("depends on how many samples the batch has", function(b) return (b.x * scale):sum() / b.x.shape[1] end), 3, "mean")
near(only_whole("depends on how many samples the batch has", function(b)
  return (b.x * scale * (1 / b.x.shape[1])):sum() / (b.x * 0 + 1):mean()
end), 3, "mean")

-- What cannot be asked for.
refused("size is missing", plain.eval, plain, squares)
refused("size is 0", plain.eval, plain, squares, { size = 0 })
refused("limit is -1", plain.eval, plain, squares, { size = 2, limit = -1 })
refused("about a dataset", plain.eval, plain, { x = { 1.0 } }, { size = 2 })
refused("expected a batch", plain.eval, plain, 3)
refused("the name 'loss'", plain.eval, plain, squares, { size = 2, name = "loss" })
refused("there is no sample", plain.eval, plain, orrery.data.from(function() return function() end end), { size = 2 })
