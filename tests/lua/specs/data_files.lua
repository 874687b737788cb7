-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local files = "../../data/files/"

local table_of = orrery.data.csv(files .. "table.csv", { x = { "a", "b" }, y = "kind", n = "big" },
  { dtypes = { y = "class", n = "i64" } })
assert(table_of.samples == 4 and table_of.classes[3] == 'say "hi"')
local batch = table_of:batch(1, { size = 4, shuffle = false })
assert(batch.x:read():tolist()[2][1] == -2 and batch.y:read():tolist()[1] == 2 and batch.n:read():tolist()[1] == 1 << 40)

local images = orrery.data.images(files .. "images", { size = 6 })
assert(images.samples == 7 and images.classes[2] == "dog")
local first, rest = images:split(0.5)
assert(first.samples == 3 and rest.samples == 4)
local mixed = orrery.data.mix({ first, rest }, { 1, 1 })
assert(mixed.samples == 8)
local changed = mixed:augment { crop = 4, pad = 1, flip = true, mean = { 0, 0, 0 }, std = { 1, 1, 1 } }
assert(changed:batch(1, { size = 2 }).x.shape[3] == 4)

local cifar = orrery.data.cifar({ files .. "cifar10.bin", files .. "cifar10.bin" })
assert(cifar.samples == 4 and cifar:batch(1, { size = 2 }).x.shape[2] == 3)
local idx = orrery.data.idx(files .. "images.idx", files .. "labels.idx", { dtype = "u8" })
assert(idx:batch(1, { size = 1, shuffle = false }).x:read():tolist()[1][1][1][2] == 37)
local packed = orrery.data.idx(files .. "images.idx.gz", files .. "labels.idx.gz")
assert(packed:batch(1, { size = 3, shuffle = false }).y:read():tolist()[3] == 9)
assert(orrery.data.tokens(files .. "tokens.bin", { length = 9 }).samples == 5)
local twice = orrery.data.tokens({ files .. "tokens.bin", files .. "tokens.bin" }, { length = 30 })
local border = twice:batch(2, { size = 1, shuffle = false }).y:read():tolist()[1]
assert(twice.samples == 3 and border[19] == 49 * 7 and border[20] == 0 and border[30] == 70)
local _, numbered = pcall(orrery.data.tokens, { files .. "tokens.bin", 7 }, { length = 9 })
assert(numbered:find "name is 7, expected a string", numbered)

local tokens = orrery.data.open("tokens", files .. "tokens.bin", { length = 9 }, { x = "i64" })
assert(tokens.samples == 5 and tokens:batch(1, { size = 1 }).x.dtype == "i64")
assert(orrery.data.tokens(files .. "tokens.bin", { length = 9.0 }).samples == 5)
local none, unknown = pcall(orrery.data.open, "parquet", "a.parquet")
assert(not none and unknown:find "no plugin provides data 'parquet'; found: .*; looked for orrery%-data%-parquet.so in /"
  and unknown:find "ORRERY_PLUGIN_PATH", unknown)
local _, odd = pcall(orrery.data.open, "tokens", files .. "tokens.bin", { length = 9, size = { 1, { 2 } } })
assert(odd:find "tokens: unknown option 'size.1'", odd)

local all = orrery.load(files .. "all.safetensors")
assert(all.u16.dtype == "i32" and all.bf16:tolist()[2][3] == 5)

local bpe = orrery.data.bpe(files .. "bpe/vocab.json", files .. "bpe/merges.txt")
assert(bpe.vocab == 600 and bpe:decode(bpe:encode "Hello, world!":tolist()) == "Hello, world!")
local words = orrery.data.text("Hello, world! Hello!", { ctx = 3, tokens = bpe, string = true })
assert(words.vocab == 600 and words:decode(words:batch(1, { size = 1 }).x:read():tolist()[1]) ~= "")

local special = { ["<|endoftext|>"] = 600, ["<|fim|>"] = 607 }
local gpt4 = orrery.data.tiktoken(files .. "bpe/ranks.tiktoken", { split = "gpt4", special = special })
local _, unknown_split = pcall(orrery.data.tiktoken, files .. "bpe/ranks.tiktoken")
assert(unknown_split:find "ranks.tiktoken: 600 tokens are none of r50k_base.*: write split = ", unknown_split)
assert(gpt4.vocab == 608 and gpt4:encode "<|fim|>12345<|endoftext|>":tolist()[1] == 607)
assert(#bpe:encode "<|fim|>":tolist() > 1, "without `special` it is text")

local trained = orrery.data.train_bpe("abc abc abcd abcd", { vocab = 260, special = { "<s>" }, string = true })
assert(trained.vocab == 260 and trained:encode "<s>":tolist()[1] == 0)
local saved, message = pcall(trained.save, trained, files .. "nowhere")
assert(not saved and message:find "nowhere/vocab.json: cannot be written", message)
local _, why = pcall(gpt4.save, gpt4, files .. "nowhere")
assert(why:find "nowhere/ranks.tiktoken: cannot be written", why)
local _, refused = pcall(orrery.data.bpe, files .. "bpe/vocab.json", files .. "bpe/merges.txt", { split = "gpt3" })
assert(refused:find "split is 'gpt3': a text is cut as gpt2 %(r50k, p50k%), gpt4 %(cl100k%) or o200k does", refused)
local learned = orrery.data.tokenizer("bpe", { tokens = 258 }, "abc abc abc")
assert(learned.vocab == 258 and learned:decode(learned:encode "cab":tolist()) == "cab")
_, why = pcall(orrery.data.tokenizer, "bpe", { token = 258 }, "abc")
assert(why:find "bpe: unknown option 'token' %(did you mean 'tokens'%?%)", why)
_, why = pcall(orrery.data.train_bpe, "abc", { vocab = 300, special = { ["<s>"] = 5 }, string = true })
assert(why:find "special is a list of texts", why)
_, why = pcall(orrery.data.tiktoken, "")
assert(why:find "is missing; restore it", why)
_, why = pcall(orrery.data.train_bpe, "abc", { vocab = 300, special = { "a\0b" }, string = true })
assert(why:find "option 'special.1.text' holds a zero byte", why)

local found, bert = pcall(orrery.data.tokenizer_json, files .. "tokenizer_json/bert.json")
if found then
  local ids = bert:encode "The lazy dog":tolist()
  assert(ids[1] == 2 and ids[#ids] == 3 and bert:decode(ids) == "the lazy dog", bert:decode(ids))
  local plain = orrery.data.tokenizer_json(files .. "tokenizer_json/bert.json",
    { add_special_tokens = false, skip_special_tokens = false })
  assert(#plain:encode "The lazy dog":tolist() == #ids - 2 and plain:decode { 2 } == "[CLS]")
  local windows = orrery.data.text("The lazy dog sleeps.", { ctx = 2, tokens = plain, string = true })
  assert(windows.vocab == bert.vocab and windows.samples == 2)
  _, why = pcall(plain.save, plain, files .. "nowhere")
  assert(why:find "nowhere/tokenizer.json: cannot be written", why)
  _, why = pcall(orrery.data.tokenizer_json, files .. "bpe/vocab.json")
  assert(why:find "vocab.json: 'model' is missing", why)
else
  assert(bert:find "tokenizer_json", bert) -- the plugin is not built without PCRE2 and utf8proc
end

local found_model, model = pcall(orrery.data.sentencepiece, files .. "sentencepiece/bpe.model", { bos = true, eos = true })
if found_model then
  local ids = model:encode "a fox":tolist()
  assert(ids[1] == 1 and ids[#ids] == 2 and model:decode(ids) == "a fox", model:decode(ids))
  _, why = pcall(orrery.data.sentencepiece, files .. "bpe/vocab.json")
  assert(why:find "vocab.json: not a model of SentencePiece", why)
else
  assert(model:find "sentencepiece", model) -- the plugin is not built without the library
end
