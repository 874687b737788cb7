-- SPDX-License-Identifier: Apache-2.0
--
-- PyTorch's names that Orrery does not have, and what to write instead: errors say it (hints.lua), and
-- docs/from-pytorch.md lists it (from_pytorch.lua). An entry is {name, code, why}: `code` runs as it stands with the
-- variables of tests/lua/specs/pytorch_names.lua; "" where there is nothing to write. Names that both have are in
-- `same`, those that mean something else here in `other`.
local M = {
  owners = { "Tensor", "orrery", "nn", "optim", "strategy", "Module", "Run", "StepResult", "data", "Dataset", "global" },
}

local in_place = "a tensor is never changed in place"
local by_device = "kernels choose the device: start the script with --kernels cuda"

M.Tensor = {
  { "T", "x:transpose()", "the last two dims" },
  { "mT", "x:transpose()", "the last two dims" },
  { "swapaxes", "x:transpose(1, 2)" },
  { "movedim", "x:permute(2, 1)" },
  { "size", "x.shape[1]", "dims count from 1" },
  { "dim", "#x.shape" },
  { "ndim", "#x.shape" },
  { "numel", "x:flatten().shape[1]" },
  { "nelement", "x:flatten().shape[1]" },
  { "contiguous", "x", "how a tensor lies in memory is the engine's affair" },
  { "clone", "x", in_place },
  { "copy_", "x = y", in_place .. "; a parameter outside of traced functions by parameter:write(value)" },
  { "detach", "x:stop_gradient()" },
  { "data", "x:stop_gradient()", "a parameter's value is parameter:read()" },
  { "requires_grad", "nn.freeze(model)", "parameters have gradients unless they are frozen" },
  { "requires_grad_", "nn.freeze(model)", "parameters have gradients unless they are frozen" },
  { "grad", "orrery.grad(x:sum(), { x })[1]", "or orrery.value_and_grad for a loop of your own" },
  { "backward", "run:step(batch)", "it computes the gradients of the loss that the function returns, and updates" },
  { "retain_grad", 'run:probe { "grad 1.weight" }', "the next step's result then has it" },
  { "device", "", by_device },
  { "to", 'x:cast "f32"', "another dtype; " .. by_device },
  { "type", 'x:cast "f32"' },
  { "type_as", "x:cast(y.dtype)" },
  { "float", 'x:cast "f32"' },
  { "double", 'x:cast "f64"' },
  { "half", 'x:cast "f16"' },
  { "bfloat16", 'x:cast "bf16"' },
  { "long", 'x:cast "i64"' },
  { "int", 'x:cast "i32"' },
  { "bool", "x:ne(0)" },
  { "cuda", "x", by_device },
  { "cpu", "x", by_device },
  { "add", "x + y" },
  { "sub", "x - y" },
  { "mul", "x * y" },
  { "div", "x / y" },
  { "neg", "-x" },
  { "remainder", "x % 2" },
  { "floor_divide", "(x / 2):floor()" },
  { "mm", "x:matmul(y:transpose())" },
  { "bmm", "x:matmul(y:transpose())", "dims before the last two are batches" },
  { "dot", "(x * y):sum()" },
  { "square", "x * x" },
  { "reciprocal", "x:recip()" },
  { "log2", "x:log() / math.log(2)" },
  { "log10", "x:log() / math.log(10)" },
  { "clip", "x:clamp(0, 1)" },
  { "clamp_min", "x:maximum(0)" },
  { "clamp_max", "x:minimum(1)" },
  { "isnan", "x:ne(x)", "only NaN differs from itself" },
  { "isinf", "x:abs():eq(math.huge)" },
  { "norm", "x:sumsq(2):sqrt()", "over dim 2; without one over all" },
  { "amax", "x:max(2)" },
  { "amin", "x:min(2)" },
  { "log_softmax", "nn.log_softmax(x)", "of the last dim" },
  { "repeat_interleave", "x:unsqueeze(3):expand(-1, -1, 2):flatten(2)" },
  { "chunk", "x:split(1, 2)", "the dim comes first, then the parts" },
  { "narrow", "x:slice(2, 1, 3)", "from the first to the last element, both included" },
  { "select_scatter", "x:update_slice(x:slice(1, 1, 1), 1, 0)" },
  { "index_select", "x:gather(ids)", "rows by 0-based ids; along another dim transpose first" },
  { "index_add", "x:scatter_add(ids, x)", "along dim 1" },
  { "scatter", "x:put(ids, 1)", "positions count through the whole tensor from 0; rows by x:scatter_add(ids, rows)" },
  { "masked_select", "orrery.where(x:gt(0), x, 0)", "how many elements there are cannot depend on their values" },
  { "nonzero", "orrery.where(x:ne(0), x, 1)", "how many elements there are cannot depend on their values" },
  { "unfold", "x:unsqueeze(3):windows({ 2, 2 })" },
  { "new_zeros", "orrery.zeros { 2, 3 }" },
  { "new_ones", "orrery.ones { 2, 3 }" },
  { "repeat", "x:tile(2, 1)", "repeat is a word of Lua's own" },
}

M.orrery = {
  { "Tensor", "orrery.tensor { 1.0, 2.0 }" },
  { "FloatTensor", "orrery.tensor { 1.0, 2.0 }" },
  { "LongTensor", "orrery.tensor { 1, 2 }", "integers give i64" },
  { "from_numpy", 'orrery.load "x.npy"', "a list by orrery.tensor(list)" },
  { "cat", "orrery.concat({ x, y }, 1)", "without a dim concat joins along the last one, where PyTorch takes the first" },
  { "arange", "orrery.iota(4)", "0 to n - 1; others by first + step * orrery.iota(n)" },
  { "linspace", 'orrery.iota(5, "f32") / 4', "0 to 1; others by first + (last - first) * that" },
  { "eye", "orrery.iota(3):one_hot(3)" },
  { "empty", "orrery.zeros { 2, 3 }" },
  { "rand", "orrery.uniform { 2, 3 }" },
  { "rand_like", "orrery.uniform(x)" },
  { "randn", "orrery.normal { 2, 3 }" },
  { "randn_like", "orrery.normal(x)" },
  { "randint", '(orrery.uniform { 2, 3 } * 10):floor():cast "i64"', "0 to 9" },
  { "randperm", "select(2, orrery.uniform { 5 }:sort())", "0-based positions" },
  { "bernoulli", "orrery.uniform(x):lt(0.5)" },
  { "multinomial", "orrery.categorical(x)", "of logits" },
  { "manual_seed", "orrery.seed(1)" },
  { "no_grad", "orrery.func(function(x) return model(x) end)", "it has no gradients; run:eval(batch) neither" },
  { "inference_mode", "orrery.func(function(x) return model(x) end)", "it has no gradients; run:eval(batch) neither" },
  { "set_grad_enabled", "x:stop_gradient()", "orrery.func and run:eval have no gradients" },
  { "enable_grad", "orrery.value_and_grad(loss, model)" },
  { "autograd", "orrery.grad(x:sum(), { x })", "a gradient of your own by orrery.gradient" },
  { "save", "run:save(folder)", "a whole run; weights alone by model:save_weights(path), a tensor by x:save(path)" },
  { "Module", 'nn.module("Net", function(m) m.first = nn.linear(3, 3) return function(x) return m.first(x) end end)' },
  { "Sequential", "nn.sequential { nn.linear(3, 3), nn.relu }" },
  { "Linear", "nn.linear(3, 3)" },
  { "DataLoader", "data:batches { size = 2, epochs = 1 }", "of a dataset such as orrery.data.arrays { x = x }" },
  { "Dataset", "orrery.data.arrays { x = { { 1.0 }, { 2.0 } } }", "or data.from for samples that a function makes" },
  { "WeightedRandomSampler", "data:batches { size = 2, epochs = 1, order = data:weighted { 1, 3 } }" },
  { "TensorDataset", "orrery.data.arrays { x = { { 1.0 }, { 2.0 } } }" },
  { "cuda", "", by_device },
  { "device", "", by_device },
  { "autocast", 'orrery.strategy.precision { compute = "bf16" }' },
  { "GradScaler", 'orrery.strategy.precision { compute = "f16" }', "which scales the loss" },
  { "distributed", "orrery.world", "the ranks of orrery run -n N; training is spread by compile's strategy" },
  { "functional", "nn.mse(x, y)", "functions and layers are in nn" },
  { "manual_seed_all", "orrery.seed(1)" },
  { "float32", '"f32"', "dtypes are texts" },
  { "float64", '"f64"', "dtypes are texts" },
  { "float16", '"f16"', "dtypes are texts" },
  { "bfloat16", '"bf16"', "dtypes are texts" },
  { "int64", '"i64"', "dtypes are texts" },
  { "int32", '"i32"', "dtypes are texts" },
}

M.nn = {
  { "Module", 'nn.module("Net", function(m) m.first = nn.linear(3, 3) return function(x) return m.first(x) end end)' },
  { "ModuleList", "{ nn.linear(3, 3), nn.linear(3, 3) }", "a list that is kept in m.name holds parts" },
  { "ModuleDict", "{ first = nn.linear(3, 3) }", "a table that is kept in m.name holds parts" },
  { "Parameter", "nn.parameter({ 3 }, { init = nn.init.zeros })" },
  { "Buffer", "orrery.buffer({ 3 }, { init = 0 })" },
  { "functional", "nn.mse(x, y)", "functions and layers are in nn" },
  { "utils", "orrery.compile(loss, { params = model, optimizer = optim.sgd {}, clip = 1.0 })", "clip is clip_grad_norm_" },
  { "Sequential", "nn.sequential { nn.linear(3, 3), nn.relu }" },
  { "Identity", "nn.identity" },
  { "Linear", "nn.linear(3, 4)" },
  { "Bilinear", "nn.bilinear(3, 4, 5)" },
  { "Conv1d", "nn.conv1d(3, 8, 3)" },
  { "Conv2d", "nn.conv2d(3, 8, 3)" },
  { "Conv3d", "nn.conv3d(3, 8, 3)" },
  { "ConvTranspose2d", "nn.conv_transpose2d(3, 8, 3)" },
  { "MaxPool2d", "nn.max_pool2d(2)" },
  { "AvgPool2d", "nn.avg_pool2d(2)" },
  { "AdaptiveAvgPool2d", "nn.adaptive_avg_pool2d(1)" },
  { "BatchNorm1d", "nn.batchnorm(8)", "for any dims" },
  { "BatchNorm2d", "nn.batchnorm(8)", "for any dims" },
  { "GroupNorm", "nn.groupnorm(2, 8)" },
  { "InstanceNorm2d", "nn.instancenorm(8)" },
  { "LayerNorm", "nn.layernorm(8)" },
  { "RMSNorm", "nn.rmsnorm(8)" },
  { "Embedding", "nn.embedding(10, 8)" },
  { "EmbeddingBag", "nn.embedding_bag(10, 8)" },
  { "Dropout", "nn.dropout(0.5)" },
  { "Flatten", "nn.flatten()", "or nn.flatten, a function" },
  { "ReLU", "nn.relu()", "or nn.relu, a function" },
  { "LeakyReLU", "nn.leaky_relu(0.01)" },
  { "PReLU", "nn.prelu()" },
  { "ELU", "nn.elu(1)" },
  { "GELU", 'nn.gelu "none"', "nn.gelu alone is PyTorch's approximate='tanh'" },
  { "SiLU", "nn.silu()", "or nn.silu, a function" },
  { "Mish", "nn.mish()", "or nn.mish, a function" },
  { "Sigmoid", "nn.sigmoid()", "or nn.sigmoid, a function" },
  { "Softplus", "nn.softplus(1)" },
  { "Tanh", "nn.tanh()", "or nn.tanh, a function" },
  { "Softmax", "nn.softmax { dim = -1 }", "the last dim is the default" },
  { "LogSoftmax", "nn.log_softmax { dim = -1 }", "the last dim is the default" },
  { "Upsample", "nn.upsample(2)" },
  { "PixelShuffle", "nn.pixel_shuffle(2)" },
  { "RNN", "nn.rnn(3, 8)", "the batch is always first" },
  { "LSTM", "nn.lstm(3, 8)", "the batch is always first" },
  { "GRU", "nn.gru(3, 8)", "the batch is always first" },
  { "LSTMCell", "nn.lstm_cell(3, 8)" },
  { "GRUCell", "nn.gru_cell(3, 8)" },
  { "MultiheadAttention", "nn.multihead_attention(8, 2)", "the batch is always first" },
  { "TransformerEncoderLayer", "nn.transformer_encoder_layer(8, 2)" },
  { "TransformerDecoderLayer", "nn.transformer_decoder_layer(8, 2)" },
  { "scaled_dot_product_attention", "nn.attention(q, q, q, { heads = 2 })", "heads share the last dim: [batch, time, heads * d]" },
  { "CosineSimilarity", "nn.cosine_similarity(x, y)", "a function, of the last dim unless dim says another" },
  { "CosineEmbeddingLoss", "nn.cosine_embedding(x, y, y:slice(2, 1, 1):squeeze(2):sign())", "a function" },
  { "TripletMarginLoss", "nn.triplet(x, y, y)", "a function" },
  { "CrossEntropyLoss", "nn.cross_entropy(x, ids)", "a function" },
  { "MSELoss", "nn.mse(x, y)", "a function" },
  { "L1Loss", "nn.l1(x, y)", "a function" },
  { "SmoothL1Loss", "nn.smooth_l1(x, y)", "a function" },
  { "HuberLoss", "nn.huber(x, y)", "a function" },
  { "NLLLoss", "nn.nll(x, ids)", "a function" },
  { "KLDivLoss", "nn.kl_div(x, y)", "a function" },
  { "BCELoss", "nn.bce(x:sigmoid(), y:sigmoid())", "a function" },
  { "BCEWithLogitsLoss", "nn.bce_with_logits(x, y:sigmoid())", "a function" },
  { "binary_cross_entropy", "nn.bce(x:sigmoid(), y:sigmoid())" },
  { "mse_loss", "nn.mse(x, y)" },
  { "l1_loss", "nn.l1(x, y)" },
  { "nll_loss", "nn.nll(x, ids)" },
  { "one_hot", "ids:one_hot(10)" },
  { "pad", "x:pad(2, 5)", "up to 5 elements of dim 2" },
  { "DataParallel", "orrery.strategy.data {}", "compile's default: start the script by orrery run -n N" },
  { "parallel", "orrery.strategy.data {}", "compile's default: start the script by orrery run -n N" },
}

M.optim = {
  { "SGD", "optim.sgd { lr = 0.1 }", "with momentum optim.momentum; the parameters are given to compile" },
  { "Adam", "optim.adam { lr = 1e-3 }", "the parameters are given to compile" },
  { "AdamW", "optim.adamw { lr = 1e-3, decay = 0.01 }", "the parameters are given to compile" },
  { "RMSprop", "optim.rmsprop { lr = 1e-2 }" },
  { "Adagrad", "optim.adagrad { lr = 1e-2 }" },
  { "Adadelta", "optim.adadelta { lr = 1.0 }" },
  { "Adamax", "optim.adamax { lr = 2e-3 }" },
  { "NAdam", "optim.nadam { lr = 2e-3 }" },
  { "RAdam", "optim.radam { lr = 1e-3 }" },
  { "Adafactor", "optim.adafactor { lr = 1e-2 }" },
  { "Rprop", "optim.rprop { lr = 1e-2 }" },
  { "Muon", "optim.muon { lr = 1e-2 }" },
  { "Optimizer", 'optim.define("own", { update = function(p, g, s, o) return p - o.lr * g end, options = { lr = 0.1 } })' },
  { "lr_scheduler", "optim.sgd { lr = optim.cosine { peak = 0.1, steps = 100 } }", "a schedule stands where lr does" },
  { "StepLR", "optim.step { peak = 0.1, every = 30, gamma = 0.1 }", "it stands where lr does" },
  { "CosineAnnealingLR", "optim.cosine { peak = 0.1, steps = 100 }", "it stands where lr does" },
  { "OneCycleLR", "optim.one_cycle { peak = 0.1, steps = 100 }", "it stands where lr does" },
  { "swa_utils", "nn.averaged(nn.linear(3, 3), { decay = 0.999 })", "AveragedModel, which steps update" },
  { "zero_grad", "run:step(batch)", "gradients are made anew in every step" },
}

M.strategy = {
  { "ddp", "orrery.strategy.data {}", "compile's default" },
  { "DistributedDataParallel", "orrery.strategy.data {}", "compile's default" },
  { "DataParallel", "orrery.strategy.data {}", "compile's default" },
  { "FullyShardedDataParallel", "orrery.strategy.fsdp {}", "`each = true` where microbatches run one after another" },
  { "deepspeed", "orrery.strategy.zero { stage = 2 }" },
}

M.Module = {
  { "train", "run:step(batch)", "it trains, as no other call does: there is no mode to set" },
  { "eval", "run:eval(batch)", "there is no mode to set; in a loss nn.evaluated(model) computes without dropout" },
  { "to", 'nn.linear(3, 3, { dtype = "f64" })', "layers are made in their dtype; " .. by_device },
  { "cuda", "model", by_device },
  { "cpu", "model", by_device },
  { "half", 'orrery.strategy.precision { compute = "f16" }', "an entry of compile's strategy" },
  { "bfloat16", 'orrery.strategy.precision { compute = "bf16" }', "an entry of compile's strategy" },
  { "float", "model", "parameters are f32 unless made otherwise" },
  { "double", 'nn.linear(3, 3, { dtype = "f64" })' },
  { "state_dict", "model:save_weights(path)", "a whole run by run:save(folder)" },
  { "load_state_dict", "model:load_weights(path)", "a whole run by run:load(folder)" },
  { "parameters", "orrery.parameters(model)" },
  { "named_parameters", "orrery.parameters(model)", "each has its name in parameter.name" },
  { "children", "pairs(model)" },
  { "modules", "print(model)", "it shows the tree; parts are fields of the module" },
  { "named_modules", "print(model)", "it shows the tree; parts are fields of the module" },
  { "forward", "model(x)" },
  { "zero_grad", "run:step(batch)", "gradients are made anew in every step" },
  { "requires_grad_", "nn.freeze(model)" },
  { "register_buffer", "orrery.buffer({ 3 }, { init = 0 })", "kept in m.name inside of nn.module" },
  { "register_parameter", "nn.parameter({ 3 }, { init = nn.init.zeros })", "kept in m.name inside of nn.module" },
  { "add_module", "nn.sequential { nn.linear(3, 3) }", "inside of nn.module write m.name = part" },
  { "apply", "for _, p in ipairs(orrery.parameters(model)) do print(p.name) end" },
  { "compile", "orrery.compile(loss, { params = model, optimizer = optim.sgd {} })" },
}

M.Run = {
  { "train", "run:step(batch)" },
  { "backward", "run:step(batch)", "it computes the gradients and updates" },
  { "zero_grad", "run:step(batch)", "gradients are made anew in every step" },
  { "state_dict", "run:save(folder)" },
  { "load_state_dict", "run:load(folder)" },
  { "parameters", "orrery.parameters(model)" },
}

M.StepResult = {
  { "item", "result:mean()", "other results by result:get(name)" },
  { "backward", "run:step(batch)", "it has computed the gradients and updated already" },
  { "detach", "result:mean()" },
  { "loss", "result:mean()" },
}

M.data = {
  { "DataLoader", "data:batches { size = 2, epochs = 1 }", "of a dataset such as orrery.data.arrays { x = x }" },
  { "TensorDataset", "orrery.data.arrays { x = x, y = y }" },
  { "ConcatDataset", "orrery.data.concat { data, data }" },
  { "Subset", "data:take { 2, 1 }" },
  { "random_split", "data:split(0.5)", "the first part and the rest" },
}

M.Dataset = {
  { "DataLoader", "data:batches { size = 2, epochs = 1 }" },
  { "batch_size", "data:batches { size = 2, epochs = 1 }" },
  { "shuffle", "data:batches { size = 2, epochs = 1, shuffle = true }", "shuffled is the default" },
  { "sampler", "data:batches { size = 2, epochs = 1, order = function(epoch, random) return { 1, random(2) } end }",
    "data:weighted is WeightedRandomSampler; docs/how-to.md has P classes with K samples" },
  { "random_split", "data:split(0.5)", "the first part and the rest" },
  { "size", "data.samples" },
}

M.global = {
  { "torch", 'require "orrery"' },
  { "np", 'require "orrery"', "arrays are orrery.tensor's" },
  { "F", "orrery.nn", "functions and layers are in nn" },
  { "nn", "local nn = orrery.nn" },
  { "optim", "local optim = orrery.optim" },
  { "strategy", "local strategy = orrery.strategy" },
  { "True", "true" },
  { "False", "false" },
  { "None", "nil" },
  { "len", "#x.shape", "of a list #list" },
  { "range", "for i = 1, 10 do end" },
}

-- Options that PyTorch, Lightning, Keras or nanoGPT calls otherwise, with ours: the first counts of which the call has
-- all.
M.options = {
  accumulate_grad_batches = { "microbatches" }, activation = { "act" }, attn_mask = { "mask" }, batch_size = { "size" },
  beta1 = { "b1" }, beta2 = { "b2" }, betas = { "b1 and b2" }, callbacks = { "on" },
  dim_feedforward = { "hidden" }, dirpath = { "dir" }, drop_last = { "last" }, dropout_p = { "dropout" },
  epsilon = { "eps" }, eta_min = { "floor" }, eval_interval = { "every" }, every_n_train_steps = { "every" },
  grad_clip = { "clip" }, gradient_accumulation_steps = { "microbatches" }, gradient_clip_val = { "clip" },
  hidden_size = { "hidden" }, ignore_index = { "ignore" }, is_causal = { "causal" }, keepdim = { "keep" },
  keepdims = { "keep" }, learning_rate = { "lr", "peak" }, log_every_n_steps = { "log" }, log_interval = { "log" },
  max_epochs = { "epochs" }, max_iters = { "steps" }, max_lr = { "peak" }, max_norm = { "clip" }, max_steps = { "steps" },
  monitor = { "best" }, negative_slope = { "slope" }, num_epochs = { "epochs" },
  num_heads = { "heads" }, num_layers = { "layers" }, parameters = { "params" }, save_top_k = { "keep" },
  num_workers = { "workers" },
  T_max = { "steps" }, total_steps = { "steps" }, unbiased = { "correction" }, val_data = { "eval" },
  train_dataloaders = { "data" }, val_dataloaders = { "eval" }, validation = { "eval" },
  val_check_interval = { "every" }, validation_freq = { "every" },
  validation_data = { "eval" }, warmup_steps = { "warmup" }, weight = { "class_weights", "weights" },
  weight_decay = { "decay" },
}

-- Names that both have, of one meaning; dims and positions count from 1 here.
M.same = {
  Tensor = "abs all any ceil cos cumsum erf exp expand flatten flip floor isfinite log logsumexp masked_fill "
    .. "matmul maximum minimum mean permute pow relu reshape roll round rsqrt sigmoid sign sin sort sqrt squeeze std sum take tanh tile "
    .. "transpose tril triu unbind unsqueeze var view",
  orrery = "einsum full full_like ones ones_like stack tensor where zeros zeros_like",
}

-- Names that mean something else here, with what to write for PyTorch's meaning.
M.other = {
  ["orrery.compile"] = "makes a training step of a loss; orrery.func compiles a function",
  ["Tensor.gather"] = "rows of a table by ids; torch.gather along the last dim is "
    .. "(x:unsqueeze(2) * ids:one_hot(n)):sum(-1)",
  ["Tensor.split"] = "the dim comes first, and a number is how many parts there are, not how long they are",
  ["Tensor.fold"] = "windows over the dims before the last; torch's F.fold has channels first",
  ["Tensor.argmax"] = "of the last dim if none is named; torch's without a dim is x:flatten():argmax()",
  ["Tensor.argmin"] = "of the last dim if none is named; torch's without a dim is x:flatten():argmin()",
  ["Tensor.softmax"] = "of the last dim; of another one nn.softmax(x, { dim = 1 })",
  ["Tensor.topk"] = "of the last dim",
  ["Tensor.max"] = "values alone; positions by x:argmax()",
  ["Tensor.min"] = "values alone; positions by x:argmin()",
  ["Tensor.pad"] = "one dim, up to a size; torch's F.pad counts from the last dim",
  ["Tensor.gelu"] = "the tanh form; torch's default is nn.gelu_exact",
  ["orrery.load"] = "reads .npy and .safetensors; what torch.save has pickled save as safetensors in Python",
}

-- The entry of a name; nil if there is none.
function M.find(owner, name)
  for _, entry in ipairs(M[owner] or {}) do
    if entry[1] == name then return entry end
  end
end

-- "; write CODE: WHY" for errors; "" where there is nothing to say.
function M.hint(owner, name)
  local entry = M.find(owner, name)
  if not entry then return "" end
  local code, why = entry[2], entry[3]
  return (code ~= "" and "; write " .. code or "") .. (why and (code ~= "" and ": " or "; ") .. why or "")
end

-- Options that torch.optim.SGD has and optim.sgd has not.
local of_momentum = { momentum = true, nesterov = true, dampening = true }

-- "; write ours" for an option that a call does not have, whose own are `known`; "" where there is nothing to say.
function M.hint_option(name, known)
  local has = {}
  for _, one in ipairs(known) do has[one] = true end
  for _, ours in ipairs(M.options[name] or {}) do
    local all = true
    for word in ours:gmatch "[%w_]+" do all = all and (word == "and" or has[word]) end
    if all then return "; write " .. ours end
  end
  return has.lr and of_momentum[name] and "; optim.momentum has it" or ""
end

-- The same for a method that changes a tensor, such as add_: what gives a new one.
function M.hint_in_place(name)
  local base = type(name) == "string" and name:match "^(%l[%w_]*)_$"
  if not base then return "" end
  local entry = M.find("Tensor", base)
  local code = entry and entry[2] or M.is_same("Tensor", base) and ("x:%s(...)"):format(base)
  return code and ("; %s: write x = %s"):format(in_place, code) or ""
end

-- Whether both have the name, of one meaning.
function M.is_same(owner, name) return (" " .. M.same[owner] .. " "):find(" " .. name .. " ", 1, true) ~= nil end

return M
