-- SPDX-License-Identifier: Apache-2.0
--
-- Writes functions and models as ONNX, with their inputs and what they compute here, for onnx_agree.py.
local orrery = require "orrery"
local folder = orrery.args { folder = "" }.folder
local nn = orrery.nn
orrery.seed(3)

local function random(dims, dtype) return orrery.func(function() return (orrery.uniform(dims) * 4 - 2):cast(dtype or "f32") end)() end
local function whole(dims, below)
  return orrery.func(function() return (orrery.uniform(dims) * below):floor():cast "i64" end)()
end

local function write(name, fn, ...)
  local inputs = { ... }
  orrery.save_onnx(("%s/%s.onnx"):format(folder, name), fn, inputs)
  for i, x in ipairs(inputs) do x:save(("%s/%s.x%d.npy"):format(folder, name, i)) end
  for i, y in ipairs { orrery.func(function(...) return fn(...) end)(...) } do
    y:save(("%s/%s.y%d.npy"):format(folder, name, i))
  end
end

local x, y, positive = random { 3, 4, 6 }, random { 4, 6 }, orrery.func(function(a) return a:abs() + 0.1 end)(random { 3, 4 })
for _, name in ipairs { "exp", "tanh", "sigmoid", "relu", "gelu", "abs", "sign", "erf", "sin", "cos", "floor", "ceil", "round" } do
  write(name, function(a) return a[name](a) end, x)
end
for _, name in ipairs { "log", "sqrt", "rsqrt", "recip" } do write(name, function(a) return a[name](a) end, positive) end
for _, name in ipairs { "gt", "lt", "ge", "le", "eq", "ne", "maximum", "minimum" } do
  write(name, function(a, b) return a[name](a, b) end, x, y)
end
write("arithmetic", function(a, b) return (a + b) * 2 - b / 3, a % 1.5, 1 - a, -b, a ^ 2 end, x, y)
write("logic", function(a, b)
  local up, down = a:gt(0), b:gt(0.5)
  return up:logical_and(down), up:logical_or(down), up:logical_not(), up:select(a, 0), (a / 0):isfinite()
end, x, y)
write("whole", function(a, b) return a + b, a * 3, a % 3, (a:cast "f32" / 2):cast "i32", a:cast "f64" end, whole({ 3, 4 }, 9),
  whole({ 4 }, 9))
write("reduce", function(a) return a:sum(), a:sum(2), a:max(3), a:min(1), a:mean(2), (a * a):sum { 1, 3 } end, x)
write("shape", function(a)
  return a:reshape(4, -1), a:transpose(), a:permute(3, 1, 2), a:slice(3, 2, 4), orrery.concat({ a, a }, 2), a:expand(2, 3, 4, 6)
end, x)
write("matmul", function(a, b) return a:matmul(b, { transpose_b = true }), b:matmul(b, { transpose_a = true }) end, x, y)
write("softmax", function(a) return nn.softmax(a), a:argmax(), a:topk(2) end, x)
write("iota", function(a) return orrery.iota(6):cast "f32" + a end, x)
write("half", function(a, b) return a:cast("f16"):matmul(b:cast "f16", { transpose_b = true }):cast "f32" end, x, y)
local table_of, ids = random { 7, 3 }, whole({ 2, 5 }, 7)
write("gather", function(t, i) return t:gather(i) end, table_of, ids)
write("attention", function(q, k, v) return nn.attention(q, k, v, { heads = 2, causal = true }) end, random { 2, 5, 8 },
  random { 2, 5, 8 }, random { 2, 5, 8 })
write("grouped", function(q, k, v) return nn.attention(q, k, v, { heads = 4, kv_heads = 2 }) end, random { 2, 5, 16 },
  random { 2, 6, 8 }, random { 2, 6, 8 })
write("unseen", function(q, k, m) return nn.attention(q, k, k, { heads = 2, mask = m:gt(5):reshape(2, 1, 5, 5) }) end,
  random { 2, 5, 8 }, random { 2, 5, 8 }, random { 2, 5, 5 })

local cnn = nn.sequential {
  nn.conv2d(3, 8, 3, { padding = 1, stride = 2 }), nn.batchnorm(8), nn.relu, nn.conv2d(8, 8, 3, { groups = 2 }), nn.max_pool2d(2),
  nn.flatten(), nn.linear(8, 5),
}
local run = orrery.compile(function(b) return nn.cross_entropy(cnn(b.x), b.y) end,
  { params = cnn, optimizer = orrery.optim.adam { lr = 0.01 }, microbatches = 1 })
local images = orrery.data.arrays { x = random { 8, 3, 9, 9 }, y = { 0, 1, 2, 3, 4, 0, 1, 2 } }
for _, batch in images:batches { size = 8, steps = 5 } do run:step(batch) end
write("cnn", cnn, random { 2, 3, 9, 9 })

local gpt2, llama = require "models.gpt2", require "models.llama"
write("gpt2", gpt2.model { vocab = 61, positions = 24, dim = 16, heads = 2, layers = 2 }, whole({ 3, 24 }, 61))
write("llama", llama { vocab = 61, dim = 16, hidden = 40, heads = 4, kv_heads = 2, layers = 2 }, whole({ 3, 24 }, 61))
write("bert", require("models.bert").model { vocab = 31, positions = 16, padding = 0, dim = 16, heads = 2, layers = 2, dropout = 0.1 },
  whole({ 3, 12 }, 31), whole({ 3, 12 }, 2))
write("t5", require("models.t5").model { vocab = 31, padding = 0, dim = 16, heads = 2, layers = 2, buckets = 8, distance = 10 },
  whole({ 3, 12 }, 31), whole({ 3, 9 }, 31))
write("vit", require("models.vit").model { channels = 3, size = 8, patch = 4, dim = 16, hidden = 32, heads = 2, layers = 2,
  classes = 5 }, random { 3, 3, 8, 8 })
