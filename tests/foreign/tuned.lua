-- SPDX-License-Identifier: Apache-2.0
--
-- BERT learns which texts of a table are praise: its weights, its tokenizer and the table are Hugging Face's.
local orrery = require "orrery"
local bert = require "models.bert"
local nn, optim, strategy, data = orrery.nn, orrery.optim, orrery.strategy, orrery.data
local args = orrery.args { folder = "", dim = 32, heads = 2, layers = 2, ctx = 16, steps = 60 }

local tokenizer = data.tokenizer_json(args.folder .. "/tokenizer.json")
local function read(name)
  local path = args.folder .. "/" .. name .. ".parquet"
  return data.parquet(path, { text = "text", y = "label" }, { dtypes = { y = "i32" } }):map(function(sample)
    local ids = tokenizer:encode(sample.text:text()):tolist()
    for i = #ids + 1, args.ctx do ids[i] = 0 end
    return { ids = orrery.tensor(table.move(ids, 1, args.ctx, 1, {}), "i32"), y = sample.y }
  end)
end

local c = { vocab = tokenizer.vocab, positions = args.ctx, padding = 0, dim = args.dim, heads = args.heads, layers = args.layers,
  dropout = 0, classes = 2 }
local model = bert.model(c)
model:load_weights(args.folder .. "/model.safetensors", { map = bert.from_transformers })
local function loss(b)
  local logits = model(b.ids, b.ids * 0)
  return nn.cross_entropy(logits, b.y), { right = logits:argmax():eq(b.y):cast("f32"):sum() }
end
local run = orrery.compile(loss, {
  params = model, strategy = strategy.data {}, microbatches = 4, clip = 1,
  optimizer = optim.adamw { lr = optim.linear { peak = 2e-3, warmup = 5, steps = args.steps }, decay = 0.01 },
})
local train, test = read "train", read "test"
orrery.log("first %.7f", run:eval(test, { size = #test }):mean())
run:fit { data = train, size = 16, steps = args.steps, log = 20 }
local result = run:eval(test, { size = #test })
orrery.log("last %.7f, %d of %d right", result:mean(), result:get "right", #test)
model:save_weights(args.folder .. "/tuned/model.safetensors", { map = bert.from_transformers, config = bert.config(c) })
