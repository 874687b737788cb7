-- SPDX-License-Identifier: Apache-2.0
--
-- A character LSTM. Each row of the batch reads a stretch of the text from its beginning to its end; a step goes on with
-- the state in which the last one stopped, and gradients end there (truncated backpropagation through time).
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  data = "", steps = 300, batch = 16, ctx = 64, microbatches = 16, seed = 1, dim = 64, hidden = 192, layers = 2, dropout = 0.1,
  lr = 4e-3, clip = 1.0, sample = 200, prompt = "local ",
}
orrery.seed(args.seed)

local Model = nn.module("Model", function(m, c)
  m.tok = nn.embedding(c.vocab, c.dim)
  m.rnn = nn.lstm(c.dim, c.hidden, { layers = c.layers, dropout = c.dropout })
  m.head = nn.linear(c.hidden, c.vocab)
  return function(ids, h, c)
    local y, last = m.rnn(m.tok(ids), { h = h, c = c })
    return m.head(y), last
  end
end)

local function read(path)
  local file = assert(io.open(path, "rb"))
  local content = file:read "a"
  file:close()
  return content
end
local files = {}
for i, path in ipairs(args.data == "" and orrery.sources() or { args.data }) do files[i] = read(path) end
local content = table.concat(files, "\n"):sub(1, 1000000)
local text = orrery.data.text(content, { ctx = args.ctx, string = true })
local ids = text:encode(content):tolist()
local stretch = #ids // args.batch -- characters of a row of the batch
local rounds = (stretch - 1) // args.ctx -- steps from the beginning of the stretches to their end
if rounds < 1 then orrery.fail(("%d characters are too few for %d rows of %d"):format(#ids, args.batch, args.ctx)) end
local model = Model {
  vocab = text.vocab, dim = args.dim, hidden = args.hidden, layers = args.layers, dropout = args.dropout,
}
orrery.log("%s", tostring(model))

local run = orrery.compile(function(batch)
  local logits, last = model(batch.x, batch.h, batch.c)
  return nn.cross_entropy(logits, batch.y), last
end, {
  params = model, strategy = strategy.data {}, clip = args.clip, microbatches = args.microbatches,
  optimizer = optim.adam { lr = optim.cosine { peak = args.lr, warmup = 20, steps = args.steps, floor = args.lr / 10 } },
})

-- Characters `first` and after of each stretch, [batch, ctx].
local function columns(first)
  local rows = {}
  for i = 1, args.batch do
    local at = (i - 1) * stretch + first
    rows[i] = table.move(ids, at, at + args.ctx - 1, 1, {})
  end
  return orrery.tensor(rows, "i32")
end

local zeros = orrery.func(function() return orrery.zeros { args.batch, args.layers, args.hidden } end)
local start, h, c = orrery.time(), nil, nil
for step = 1, args.steps do
  local round = (step - 1) % rounds
  if round == 0 then h, c = zeros(), zeros() end
  local result = run:step { x = columns(round * args.ctx + 1), y = columns(round * args.ctx + 2), h = h, c = c }
  h, c = result:get "h", result:get "c"
  if step % 10 == 0 or step == args.steps then
    orrery.log("step %d loss %.4f  %.2f ms", step, result:mean(), (orrery.time() - start) * 1000 / step)
  end
end

local next_character = orrery.func(function(id, h, c)
  local logits, last = model(id:reshape(1, 1), h, c)
  return orrery.categorical(logits:reshape(1, -1) / 0.7), last.h, last.c
end)

local function sample(prompt, length)
  local written = text:encode(prompt):tolist()
  local one = orrery.func(function() return orrery.zeros { 1, args.layers, args.hidden } end)
  local state_h, state_c, id = one(), one(), nil
  for i = 1, #written + length - 1 do
    id, state_h, state_c = next_character(orrery.tensor({ written[i] }, "i32"), state_h, state_c)
    if i >= #written then written[#written + 1] = id:item() end
  end
  return text:decode(written)
end

if args.sample > 0 then orrery.log("--- sample ---\n%s\n---", sample(args.prompt, args.sample)) end
orrery.log("digest %s", orrery.digest(model))
