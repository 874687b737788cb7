-- SPDX-License-Identifier: Apache-2.0
--
-- A right call of each function that scripts have, for ../api_walk.lua. A new function of the manual needs one here.
local orrery = require "orrery"
local manual = require "orrery.manual"
local nn, optim, strategy, data = orrery.nn, orrery.optim, orrery.strategy, orrery.data

local folder = os.tmpname()
os.remove(folder)
assert(os.execute(("mkdir -p '%s/images/a' '%s/images/b'"):format(folder, folder)))
local function file(name, text)
  local path = folder .. "/" .. name
  local out = assert(io.open(path, "wb"))
  out:write(text)
  out:close()
  return path
end

local host = orrery.tensor({ { 1.0, 2.0 }, { 3.0, 4.0 } }, "f32")
local ids = orrery.tensor { 0, 1 }
local dataset = data.arrays { x = { { 1.0 }, { 2.0 }, { 3.0 }, { 4.0 } } }
local images = data.arrays { x = orrery.tensor({ { { { 1.0, 2.0 }, { 3.0, 4.0 } } }, { { { 1.0, 2.0 }, { 3.0, 4.0 } } } }) }
local text_file = file("text", ("some text to read. "):rep(20))
local text = data.text(text_file, { ctx = 4 })
local tokens = file("tokens", ("\1\0"):rep(64))
local csv = file("table.csv", "a,b\n1,2\n3,4\n")
local jsonl = file("table.jsonl", '{"a":1,"b":[2,3]}\n{"a":3,"b":[4,5]}\n')
local cifar = file("cifar", ("\0"):rep(3073 * 2))
local idx_images = file("images.idx", "\0\0\8\3\0\0\0\2\0\0\0\2\0\0\0\2" .. ("\1"):rep(8))
local idx_labels = file("labels.idx", "\0\0\8\1\0\0\0\2\0\1")
local function model() return nn.linear(1, 1) end
local function run()
  local m = model()
  return orrery.compile(function(b) return nn.mse(m(b.x), b.x) end, { params = m, optimizer = optim.sgd {} })
end
local batch = dataset:batch(1, { size = 4 })
local function tokenizer() return data.train_bpe("some text", { vocab = 260, string = true }) end

-- By owner and name: a function that returns the arguments, of a method with its object first. Those of `traced` are
-- called in a traced function, with x = [2,4] and k = [2], of 0 and 1.
local samples, traced = {}, {}
local made = 0
local function new_name()
  made = made + 1
  return "name" .. made
end

for _, name in ipairs { "exp", "log", "tanh", "sigmoid", "relu", "gelu", "sqrt", "rsqrt", "recip", "abs", "sign", "erf",
  "sin", "cos", "floor", "ceil", "round", "isfinite", "softmax", "silu", "stop_gradient", "microbatch_mean", "for_each_sample" } do
  traced["Tensor." .. name] = function(x) return x end
end
for _, name in ipairs { "accuracy", "perplexity", "precision", "recall", "f1" } do
  traced["metrics." .. name] = function(x, k) return x, k, { ignore = -1 } end
end
for _, name in ipairs { "pow", "maximum", "minimum", "gt", "lt", "ge", "le", "eq", "ne" } do
  traced["Tensor." .. name] = function(x) return x, x end
end
for _, name in ipairs { "sum", "sumsq", "mean", "max", "min", "logsumexp", "any", "all" } do
  traced["Tensor." .. name] = function(x) return x, { 1 }, { keep = true } end
end
for _, name in ipairs { "argmax", "argmin" } do
  traced["Tensor." .. name] = function(x) return x, 1, { keep = true } end
end
for _, name in ipairs { "var", "std" } do
  traced["Tensor." .. name] = function(x) return x, { 1 }, { keep = true, correction = 0 } end
end
for _, name in ipairs { "logical_and", "logical_or" } do
  traced["Tensor." .. name] = function(_, _, _, yes) return yes, yes end
end
local more = {
  logical_not = function(_, _, _, yes) return yes end,
  select = function(x, _, _, yes) return yes, x, x end,
  cast = function(x) return x, "f64" end,
  matmul = function(x) return x, x, { transpose_b = true } end,
  reshape = function(x) return x, 4, 2 end,
  broadcast = function(x) return x, 3, 2, 4 end,
  transpose = function(x) return x, 1, 2 end,
  permute = function(x) return x, 2, 1 end,
  view = function(x) return x, 4, 2 end,
  expand = function(x) return x, 3, -1, 4 end,
  unsqueeze = function(x) return x, 1 end,
  squeeze = function(x) return x, { 1 } end,
  flatten = function(x) return x, 1, -1 end,
  unbind = function(x) return x, 2 end,
  flip = function(x) return x, { 1 } end,
  roll = function(x) return x, 1, 2 end,
  tile = function(x) return x, 2, 1 end,
  masked_fill = function(x, _, _, yes) return x, yes, 1 end,
  triu = function(x) return x, 1 end,
  tril = function(x) return x, -1 end,
  slice = function(x) return x, 1, 1, 2, 1 end,
  split = function(x) return x, 2, { 1, 3 } end,
  pad = function(x) return x, 1, 4, { before = 1, value = 1 } end,
  windows = function(x) return x, 1, { stride = 1 } end,
  fold = function(x) return x:windows(1), 2, { stride = 1 } end,
  gather = function(x, k) return x, k end,
  gather_matmul = function(x, k, w) return x, w:reshape(1, 4, 1), k * 0 end,
  take = function(x, k) return x, k end,
  put = function(x, k) return x, k, 1 end,
  scatter_add = function(x, k) return x, k, x end,
  slice_at = function(x, k) return x, 1, k:slice(1, 1, 1):reshape(), 1 end,
  update_slice = function(x, k) return x, x:slice(1, 1, 1), 1, k:slice(1, 1, 1):reshape() end,
  topk = function(x) return x, 2 end,
  clamp = function(x) return x, 0, 1 end,
  cumsum = function(x) return x, 1 end,
  one_hot = function(_, k) return k, 3, "f32" end,
  sort = function(x) return x, 1, { descending = true } end,
}
for name, sample in pairs(more) do traced["Tensor." .. name] = sample end
for name, sample in pairs {
  where = function(x, _, _, yes) return yes, x, x end,
  concat = function(x) return { x, x }, 1 end,
  stack = function(x) return { x, x }, 1 end,
  stop_gradient = function(x) return x end,
  layernorm = function(x, _, w) return x, w, w, 1e-5 end,
  rmsnorm = function(x, _, w) return x, w, 1e-5 end,
  attention = function(x) local q = x:reshape(1, 2, 4) return q, q, q, { heads = 2 } end,
  cross_entropy = function(x, k) return x, k, { ignore = -1 } end,
  dropout = function(x) return x, 0.5 end,
  categorical = function(x) return x end,
  training = function() end,
  iota = function() return 3, "i64" end,
  full_like = function(x) return x, 2 end,
  full = function() return { 2 }, 1, "f32" end,
  ones = function() return { 2 }, "f32" end,
  zeros = function() return { 2 }, "f32" end,
  ones_like = function(x) return x end,
  zeros_like = function(x) return x end,
  uniform = function() return { 2 } end,
  normal = function() return { 2 } end,
  grad = function(x) return x, { x }, { grad_output = x } end,
  einsum = function(x) return "ij->ji", x end,
  scan = function(x) return function(s, t) return s, t end, nil, x end,
  print = function(x) return x, "name" end,
  watch = function(x) return x, "name" end,
} do traced["orrery." .. name] = sample end
for name, sample in pairs {
  attention = function(x) local q = x:reshape(1, 2, 4) return q, q, q, { heads = 2 } end,
  cross_entropy = function(x, k) return x, k, { ignore = -1 } end,
  rotary = function(x) return x:reshape(1, 2, 4), { heads = 2 } end,
  mse = function(x) return x, x, { reduction = "sum" } end,
  bce = function(x) return x, x, { reduction = "sum" } end,
  bce_with_logits = function(x) return x, x, { pos_weight = 2 } end,
  cosine_similarity = function(x) return x, x, { dim = 1 } end,
  normalize = function(x) return x, { p = 1 } end,
  softmax = function(x) return x, { dim = 1 } end,
  log_softmax = function(x) return x, { dim = 1 } end,
  gelu = function(x) return x, { approximate = "none" } end,
  cosine_embedding = function(x, k) return x, x, k:cast "f32", { margin = 0.1 } end,
  ctc = function(x, k) return x:reshape(2, 2, 2), k:reshape(2, 1), k, k, { blank = 1 } end,
  convolution = function(x) return x:reshape(1, 2, 4), x:reshape(2, 2, 2), { padding = 1 } end,
  elu = function(x) return x, { alpha = 2 } end,
  glu = function(x) return x, 2 end,
  huber = function(x) return x, x, { delta = 2 } end,
  kl_div = function(x) return x, x, { log_target = true } end,
  l1 = function(x) return x, x, { reduction = "none" } end,
  leaky_relu = function(x) return x, { slope = 0.1 } end,
  nll = function(x, k) return x, k, { class_weights = { 1, 2, 3, 4 } } end,
  smooth_l1 = function(x) return x, x, { beta = 2 } end,
  softplus = function(x) return x, { beta = 2 } end,
  triplet = function(x) return x, x, x, { margin = 2 } end,
} do traced["nn." .. name] = sample end
for _, name in ipairs { "flatten", "gelu_exact", "hardsigmoid", "hardswish", "identity", "logsigmoid", "mish", "relu",
  "selu", "sigmoid", "silu", "tanh" } do
  traced["nn." .. name] = function(x) return x end
end

for dims = 1, 3 do
  for name, sample in pairs {
    adaptive_avg_pool = function() return 2 end,
    avg_pool = function() return 2, { stride = 1 } end,
    max_pool = function() return 2, { stride = 1 } end,
    conv = function() return 2, 2, 3, { padding = 1 } end,
    conv_transpose = function() return 2, 2, 3, { padding = 1 } end,
  } do samples[("nn.%s%dd"):format(name, dims)] = sample end
end
for name, sample in pairs {
  batchnorm = function() return 2, { sync = true } end,
  bilinear = function() return 2, 3, 4, { bias = false } end,
  gru_cell = function() return 2, 2, { bias = false } end,
  lstm_cell = function() return 2, 2, { bias = false } end,
  multihead_attention = function() return 4, 2, { bias = false } end,
  fold = function() return 4, 2, { stride = 2 } end,
  unfold = function() return 2, { stride = 2 } end,
  pixel_shuffle = function() return 2 end,
  rnn = function() return 2, 2, { layers = 2 } end,
  rnn_cell = function() return 2, 2, { act = nn.relu } end,
  transformer_decoder_layer = function() return 4, 2, { hidden = 4 } end,
  transformer_encoder_layer = function() return 4, 2, { hidden = 4 } end,
  upsample = function() return 2, { mode = "nearest" } end,
  dropout = function() return 0.5 end,
  embedding = function() return 3, 4, { init = nn.init.normal(1) } end,
  embedding_bag = function() return 3, 4, { mode = "sum" } end,
  evaluated = function() return model() end,
  freeze = function() return model(), true end,
  groupnorm = function() return 2, 4, { eps = 1e-5 } end,
  gru = function() return 2, 2, { layers = 2 } end,
  instancenorm = function() return 2, { affine = true } end,
  layernorm = function() return 2, { eps = 1e-5 } end,
  linear = function() return 2, { 2, 2 }, { bias = false } end,
  lstm = function() return 2, 2, { layers = 2 } end,
  module = function() return "Name", function() return function() end end end,
  parameter = function() return { 2 }, { dtype = "f32" } end,
  prelu = function() return 2, { dtype = "f32" } end,
  relative_bias = function() return 2, { buckets = 8 } end,
  rmsnorm = function() return 2, { eps = 1e-5 } end,
  sequential = function() return 2, model end,
  spectral_norm = function() return model(), { iterations = 2 } end,
  weight_norm = function() return model(), { dim = 2 } end,
  switch = function() return 4, { experts = 2 } end,
} do samples["nn." .. name] = sample end
for name, sample in pairs {
  constant = function() return 1 end,
  uniform = function() return 0, 1 end,
  normal = function() return 1, 0 end,
  fan_in = function() return { 2, 2 } end,
  xavier = function() return { 2, 2 } end,
  kaiming = function() return { 2, 2 } end,
  resolve = function() return nn.init.xavier, { 2, 2 } end,
} do samples["nn.init." .. name] = sample end

for _, name in ipairs { "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "lamb", "lars", "lion", "momentum", "muon",
  "nadam", "radam", "rmsprop", "sgd" } do
  samples["optim." .. name] = function() return { lr = 0.1, decay = 0.1 } end
end
samples["optim.rprop"] = function() return { lr = 0.1, most = 2 } end
samples["optim.constant"] = function() return { peak = 1, warmup = 2 } end
for _, name in ipairs { "cosine", "linear" } do
  samples["optim." .. name] = function() return { peak = 1, steps = 10 } end
end
for name, options in pairs {
  cosine_restarts = { period = 2 }, exponential = { gamma = 0.5 }, multistep = { at = { 2 } }, one_cycle = { steps = 10 },
  polynomial = { steps = 10 }, step = { every = 2 },
} do
  options.peak = 1
  samples["optim." .. name] = function() return options end
end
samples["optim.plateau"] = function() return { peak = 1, patience = 2 } end
local function mean_loss(m) return function(b) return nn.mse(m(b.x), b.x) end end
samples["optim.lbfgs"] = function() local m = model() return mean_loss(m), { params = m, history = 3 } end
local function lbfgs() local m = model() return optim.lbfgs(mean_loss(m), { params = m, history = 3, max_iter = 2 }) end
samples["Lbfgs.step"] = function() return lbfgs(), batch end
samples["Lbfgs.save"] = function() return lbfgs(), folder .. "/lbfgs.safetensors" end
samples["Lbfgs.load"] = function()
  lbfgs():save(folder .. "/lbfgs.safetensors")
  return lbfgs(), folder .. "/lbfgs.safetensors"
end
samples["Plateau.step"] = function() return optim.plateau { peak = 1, name = new_name() }, 0.5 end
samples["optim.chained"] = function() return { optim.constant { peak = 1 }, optim.constant { peak = 2 } } end
samples["optim.sequential"] = function()
  return { optim.constant { peak = 1 }, optim.constant { peak = 2 } }, { 3 }
end
samples["optim.schedule"] = function() return "name", { peak = false }, function() return 1 end, function() end end
samples["optim.define"] = function()
  return "mine", { options = { lr = 1 }, update = function(p, g) return p - g end }
end
samples["Optimizer.attach"] = function() return optim.sgd {}, model() end
local function attached() return optim.sgd {}:attach(model()) end
samples["Attached.update"] = function()
  local m = model()
  return optim.sgd {}:attach(m), { orrery.tensor { 1.0 }, orrery.tensor { { 1.0 } } }
end
samples["Attached.save"] = function() return attached(), folder .. "/attached" end
samples["Attached.load"] = function()
  attached():save(folder .. "/attached")
  return attached(), folder .. "/attached"
end

for name, sample in pairs {
  axis_size = false, coordinate = false, sample_index = false, -- in strategies' code and losses
  tensor = function() return { 1.0, 2.0 }, "f32" end,
  parameter = function() return { 2 }, { dtype = "f32" } end,
  buffer = function() return { 2 }, { dtype = "f32" } end,
  input = function() return new_name(), 1 end,
  init = function() return { comm = "" } end,
  seed = function() return 1 end,
  region = false, -- closes the block that it is in
  fail = false, exit = false,
  did_you_mean = function() return "word", { "ward" } end,
  natural_less = function() return "a", "b" end,
  type = function() return 1 end,
  time = function() end,
  glob = function() return "a*", "ab" end,
  help = false, -- prints
  args = function() return { walk = 1 } end,
  load = function()
    host:save(folder .. "/host.npy")
    return folder .. "/host.npy"
  end,
  options = function() return "f", { a = 1 }, { a = 2 } end,
  sources = function() end,
  compile = function()
    local m = model()
    return function(b) return nn.mse(m(b.x), b.x) end, { params = m, optimizer = optim.sgd {} }
  end,
  save_onnx = function() return folder .. "/model.onnx", nn.relu, { host }, { inputs = { "x" }, outputs = { "y" } } end,
  weight_map = function() return { { "h.*.attn", "blocks.*.q", transpose = true } }, { prefix = "model." } end,
  value_and_grad = function() local m = model() return function(b) return nn.mse(m(b.x), b.x) end, m end,
  func = function() return function(x) return x end end,
  gradient = function() return { forward = function(x) return x end, backward = function(dy) return dy end } end,
  parameters = function() return model() end,
  log = false, -- prints what it is given
  record = function() return "name", 1, { step = 1, as = "number" } end,
  digest = function() return model() end,
  op = false, check_op = false, -- op_second_result.lua and tests/check
} do samples["orrery." .. name] = sample end

for name, sample in pairs {
  ["HostTensor.tolist"] = function() return host end,
  ["HostTensor.item"] = function() return orrery.tensor { 1.0 } end,
  ["HostTensor.save"] = function() return host, folder .. "/host.npy" end,
  ["State.read"] = function() return orrery.parameter { 2 } end,
  ["State.write"] = function() return orrery.parameter { 2 }, orrery.tensor { 1.0, 2.0 } end,
  ["State.update"] = false, ["State.updated"] = false,
  ["State.rename"] = function() return orrery.parameter { 2 }, "name" end,
  ["State.freeze"] = function() return orrery.parameter { 2 }, true end,
  ["State.identity"] = function() return orrery.parameter { 2 } end,
  ["Scalar.set"] = function() return orrery.input(new_name(), 1), 2 end,
  ["Run.step"] = function() return run(), batch end,
  ["Run.eval"] = function() return run(), dataset, { size = 2 } end,
  ["Run.fit"] = function()
    local kept = { dir = folder .. "/fit-" .. new_name() }
    return run(), { data = dataset, size = 2, epochs = 1, eval = dataset, checkpoints = kept, log = false }
  end,
  ["Run.probe"] = function() return run(), {} end,
  ["Run.plan"] = false, -- only `orrery plan` and the program have the planner
  ["Run.counters"] = function() return run() end,
  ["Run.save"] = function()
    local r = run()
    r:step(batch)
    return r, folder .. "/saved", "extra", true
  end,
  ["Run.finish_save"] = function() return run() end,
  ["Run.load"] = false, -- after Run.save, below
  ["Run.record"] = function() return run(), "sample", host, { step = 1, as = "histogram" } end,
  ["Run.checkpoints"] = function() return run(), { dir = folder .. "/series-" .. new_name(), every = 2 } end,
  ["StepResult.mean"] = function() return run():step(batch) end,
  ["StepResult.get"] = function() return run():step(batch), "loss" end,
  ["StepResult.names"] = function() return run():step(batch) end,
  ["Field.read"] = function() return batch.x end,
  ["data.files"] = function() return folder, { ".csv" } end,
  ["data.arrays"] = function() return { x = { 1.0, 2.0 } } end,
  ["data.bpe"] = function()
    tokenizer():save(folder)
    return folder .. "/vocab.json", folder .. "/merges.txt", { split = "gpt2" }
  end,
  ["data.cifar"] = function() return cifar, { dtype = "u8" } end,
  ["data.jsonl"] = function() return jsonl, { x = { "a" }, y = "b" }, { dtypes = { y = "i32" } } end,
  ["data.csv"] = function() return csv, { x = { "a", "b" } }, { dtypes = { x = "f32" } } end,
  ["data.from"] = function() return function() return function() end end, { shuffle = 1 } end,
  ["data.idx"] = function() return idx_images, idx_labels, { dtype = "u8" } end,
  ["data.images"] = false, ["data.tiktoken"] = false, -- tests/e2e/data_test.py has files for them
  ["data.concat"] = function() return { dataset, dataset } end,
  ["data.parquet"] = false, ["data.arrow"] = false, ["data.webdataset"] = false, ["data.hdf5"] = false, -- tests/foreign/columns.py, tests/e2e/shards_test.py and hdf5_test.py, where the plugins are
  ["HostTensor.text"] = function() return orrery.tensor({ 104, 105, 0 }, "u8") end,
  ["data.mix"] = function() return { dataset, dataset }, { 1, 2 } end,
  ["data.open"] = function() return "npy", folder .. "/host.npy" end,
  ["data.text"] = function() return text_file, { ctx = 4 } end,
  ["data.tokenizer"] = false, -- what plugins take
  ["data.sentencepiece"] = false, -- likewise
  ["data.tokenizer_json"] = false, -- tests/lua/specs/data_files.lua, where the plugin is
  ["data.tokens"] = function() return tokens, { length = 4 } end,
  ["data.train_bpe"] = function() return "some text", { vocab = 260, string = true } end,
  ["Dataset.batch"] = function() return dataset, 1, { size = 2 } end,
  ["Dataset.batches"] = function() return dataset, { size = 2 } end,
  ["Dataset.take"] = function() return dataset, { 2, 1 } end,
  ["Dataset.readable"] = function() return dataset end,
  ["Dataset.weighted"] = function()
    local weights = {}
    for i = 1, #dataset do weights[i] = i end
    return dataset, weights, { samples = 3 }
  end,
  ["Dataset.filter"] = function() return dataset, function() return true end end,
  ["Dataset.map"] = function() return dataset, function(sample) return sample end end,
  ["Dataset.split"] = function() return dataset, 0.5 end,
  ["Dataset.shard"] = function() return dataset, 0, 2 end,
  ["Dataset.encode"] = function() return text, "some" end,
  ["Dataset.decode"] = function() return text, { 0, 1 } end,
  ["Dataset.augment"] = function() return images, { flip = true } end,
  ["Tokenizer.encode"] = function() return tokenizer(), "some" end,
  ["Tokenizer.decode"] = function() return tokenizer(), { 97 } end,
  ["Tokenizer.save"] = function() return tokenizer(), folder end,
  ["Stream.batches"] = function()
    return data.from(function() local n = 0 return function() n = n + 1 if n < 5 then return { x = 1 } end end end),
      { size = 2 }
  end,
  ["Module.save_weights"] = function() return model(), folder .. "/w.safetensors", { max_shard_size = "1GB" } end,
  ["Module.load_weights"] = function()
    model():save_weights(folder .. "/w.safetensors")
    return model(), folder .. "/w.safetensors", { strict = true }
  end,
  ["World.group"] = function() return orrery.world, { 0 } end,
  ["World.send"] = false, ["World.recv"] = false, -- to another rank
  ["World.barrier"] = function() return orrery.world end,
  ["World.join"] = function() return orrery.world end,
  ["World.allgather_object"] = function() return orrery.world, 1 end,
  ["World.broadcast_object"] = function() return orrery.world, 1, { root = 0 } end,
  ["Handle.poll"] = function() return orrery.world:allreduce_async(host) end,
  ["Handle.wait"] = function() return orrery.world:allreduce_async(host) end,
} do samples[name] = sample end
for name, options in pairs {
  allgather = { name = "n" }, allreduce = { op = "sum" }, alltoall = { name = "n" }, broadcast = { root = 0 },
  reduce_scatter = { op = "sum" },
} do
  for _, ending in ipairs { "", "_async" } do
    samples["World." .. name .. ending] = function()
      local copy = {}
      for k, v in pairs(options) do copy[k] = v end
      return orrery.world, host, copy
    end
  end
end
for _, name in ipairs(manual.names()) do
  if name:find "^strategy%.%l+$" and name ~= "strategy.define" then samples[name] = function() return {} end end
end
samples["nn.copy"] = function() return model() end
samples["nn.averaged"] = function() return model(), { decay = 0.9 } end
samples["strategy.place"] = function() return { modules = { "a" } } end
samples["strategy.define"] = function()
  return { name = "mine", class = "exact", transform = function() end, options = {} }
end

return { folder = folder, traced = traced, others = samples }
