-- SPDX-License-Identifier: Apache-2.0
--
-- Tokens of a GGUF file: of Hugging Face's tokenizer.json, or of vocab.json and merges.txt, as byte-level BPE ("gpt2") or
-- as SentencePiece's BPE ("llama").
local _, orrery = ...
local json = require "orrery.watch.json"

local M = {}

local NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

-- Where a text is cut before pairs are merged: the expression in a file, and llama.cpp's name of it.
local SPLITS = {
  ["(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"] = "llama-bpe",
  ["(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"] = "qwen2",
}

local function text_of(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a"
end

local function decoded(path, text)
  local there, value = pcall(json.decode, text)
  if there and type(value) == "table" then return value end
  orrery.fail(("save_weights: tokenizer: %s: %s"):format(path, there and "no JSON object" or value))
end

local function refuse(path, what) orrery.fail(("save_weights: tokenizer: %s: GGUF has no name for %s"):format(path, what)) end

-- vocab.json and merges.txt as tokenizer.json has them.
local function of_pair(folder, vocab, merges)
  local list = {}
  for line in merges:gmatch "[^\r\n]+" do if not line:find "^#version" then list[#list + 1] = line end end
  return {
    model = { type = "BPE", vocab = decoded(folder .. "/vocab.json", vocab), merges = list },
    pre_tokenizer = { type = "ByteLevel", use_regex = true },
  }
end

local function read(place)
  for _, path in ipairs { place, place .. "/tokenizer.json" } do
    local text = text_of(path)
    if text then return decoded(path, text), path end
  end
  local vocab, merges = text_of(place .. "/vocab.json"), text_of(place .. "/merges.txt")
  if vocab and merges then return of_pair(place, vocab, merges), place .. "/vocab.json" end
  orrery.fail(("save_weights: tokenizer: %s is no tokenizer.json, nor a folder with one or with vocab.json and merges.txt")
    :format(place))
end

-- The tokens by their ids from 0, so many; those that the file does not have are filled in. And their kinds.
local function tokens_of(path, file, count)
  local tokens, kinds = {}, {}
  local function take(id, token, kind)
    if id < 0 or id >= count then
      orrery.fail(("save_weights: tokenizer: %s: '%s' has the id %d, the model has %d tokens"):format(path, token, id, count))
    end
    tokens[id + 1], kinds[id + 1] = token, kind
  end
  for token, id in pairs(file.model.vocab) do
    local byte = file.model.byte_fallback and token:find "^<0x%x%x>$"
    take(id, token, byte and BYTE or token == file.model.unk_token and UNKNOWN or NORMAL)
  end
  for _, added in ipairs(file.added_tokens or {}) do
    local unknown = added.content == file.model.unk_token
    take(added.id, added.content, unknown and UNKNOWN or added.special and CONTROL or USER_DEFINED)
  end
  for i = 1, count do
    if not tokens[i] then tokens[i], kinds[i] = ("[PAD%d]"):format(i - 1), UNUSED end
  end
  return tokens, kinds
end

local function pair_of(merge)
  if type(merge) == "table" then return merge[1], merge[2] end
  return merge:match "^(.-) (.+)$"
end

-- llama.cpp's name of how a byte-level BPE cuts texts.
local function split_of(path, file)
  local regex, bytes
  local function look(part)
    if part.type == "Sequence" then
      for _, each in ipairs(part.pretokenizers) do look(each) end
    elseif part.type == "Split" and part.pattern.Regex and not regex then
      regex = part.pattern.Regex
    elseif part.type == "ByteLevel" and not bytes then
      bytes = true
      if part.use_regex ~= false then
        if regex then refuse(path, "a Split and ByteLevel's own") end
        regex = "gpt-2"
      end
    else
      refuse(path, "the pre-tokenizer " .. part.type)
    end
  end
  look(file.pre_tokenizer)
  if not bytes then refuse(path, "a BPE without ByteLevel or byte_fallback") end
  return regex == "gpt-2" and regex or SPLITS[regex] or refuse(path, ("the split '%s'"):format(regex or "none"))
end

local function byte_level(path, file)
  local merges = {}
  for i, merge in ipairs(file.model.merges) do merges[i] = ("%s %s"):format(pair_of(merge)) end
  return {
    { "tokenizer.ggml.model", "text", "gpt2" }, { "tokenizer.ggml.pre", "text", split_of(path, file) },
    { "tokenizer.ggml.merges", "texts", merges },
  }
end

-- What is merged first has the highest score; SentencePiece knows what comes out alone, not of which pair.
local function scores_of(path, file, tokens)
  local rank, last = {}, nil
  for i, merge in ipairs(file.model.merges) do
    local first, second = pair_of(merge)
    local made = first .. second
    if rank[made] and made ~= last then
      refuse(path, ("pairs that make '%s', among which others are merged"):format(made))
    end
    rank[made], last = rank[made] or i, made
  end
  local scores = {}
  for i, token in ipairs(tokens) do scores[i] = -(rank[token] or 0) end
  return scores
end

local function part_named(part, kind)
  if not part or part.type == kind then return part end
  for _, each in ipairs(part.normalizers or part.pretokenizers or {}) do
    local found = part_named(each, kind)
    if found then return found end
  end
end

local function sentence_piece(path, file, tokens)
  local space = part_named(file.normalizer, "Prepend") ~= nil
  local meta = part_named(file.pre_tokenizer, "Metaspace")
  if meta then space = meta.prepend_scheme ~= "never" end
  return {
    { "tokenizer.ggml.model", "text", "llama" }, { "tokenizer.ggml.pre", "text", "default" },
    { "tokenizer.ggml.scores", "reals", scores_of(path, file, tokens) },
    { "tokenizer.ggml.add_space_prefix", "flag", space },
  }
end

-- Whether the file puts a token in front of, and behind, a text: its ids.
local function around(file)
  local first, last
  local function look(part)
    for _, each in ipairs(part.processors or {}) do look(each) end
    local single = part.type == "TemplateProcessing" and part.single
    local function id_of(each)
      return each and each.SpecialToken and part.special_tokens[each.SpecialToken.id].ids[1]
    end
    if single then first, last = id_of(single[1]), id_of(single[#single]) end
  end
  if file.post_processor then look(file.post_processor) end
  return first, last
end

-- Fields of a file's header; `place` is nil for a model without texts.
function M.fields(path, place, config)
  if not place then return { { "tokenizer.ggml.model", "text", "none" } } end
  local file, source = read(place)
  if not file.model or file.model.type ~= "BPE" then refuse(source, file.model and file.model.type or "no model") end
  local tokens, kinds = tokens_of(source, file, config.vocab_size)
  local fields
  if file.model.byte_fallback then
    fields = sentence_piece(source, file, tokens)
  else
    fields = byte_level(source, file)
  end
  local first, last = around(file)
  local function add(name, kind, value)
    if value ~= nil then fields[#fields + 1] = { "tokenizer.ggml." .. name, kind, value } end
  end
  add("tokens", "texts", tokens)
  add("token_type", "wholes", kinds)
  add("bos_token_id", "count", first or config.bos_token_id)
  add("eos_token_id", "count", last or config.eos_token_id)
  add("unknown_token_id", "count", file.model.unk_token and file.model.vocab[file.model.unk_token])
  add("add_bos_token", "flag", first ~= nil)
  add("add_eos_token", "flag", last ~= nil)
  return fields
end

return M
