-- SPDX-License-Identifier: Apache-2.0
--
-- The calls of orrery.data for the plugins that come with Orrery, with options as these take them.
local _, orrery = ...
local engine, open, tokenizer = orrery.engine, orrery.data.open, orrery.data.tokenizer

local M = {}

function M.tokens(paths, o) return open("tokens", paths, { length = o.length, dtype = o.dtype }) end

function M.idx(images, labels, o) return open("idx", images, { labels = labels }, { x = o.dtype }) end

function M.cifar(paths, o) return open("cifar", paths, { classes = o.classes }, { x = o.dtype }) end

function M.images(directory, o) return open("images", directory, { size = o.size }, { x = o.dtype }) end

local function check_text(what, value)
  if type(value) == "string" then return value end
  local shown = type(value) == "table" and orrery.type(value) or tostring(value)
  orrery.fail(("%s is %s, expected a string"):format(what, shown))
end

local function check_known(dtypes, fields)
  local names = {}
  for name in pairs(fields) do names[#names + 1] = name end
  for name in pairs(dtypes) do
    if fields[name] == nil then
      orrery.fail(("csv: dtypes: unknown option '%s'%s"):format(name, orrery.did_you_mean(name, names)))
    end
  end
end

-- A field as the plugin takes it.
local function csv_field(name, columns, dtype)
  local list = type(columns) == "table" and columns or { columns }
  for _, column in ipairs(list) do check_text("name", column) end
  if #list == 0 then orrery.fail "an empty list of names; give at least one" end
  return { name = name, columns = list, list = type(columns) == "table", dtype = check_text("dtype", dtype) }
end

function M.csv(path, fields, o)
  check_known(o.dtypes, fields)
  local list = {}
  for name, columns in pairs(fields) do
    if type(name) == "string" then list[#list + 1] = csv_field(name, columns, o.dtypes[name] or "f32") end
  end
  return open("csv", path, { fields = list })
end

-- The option `special`, a list of texts or ids by text, as a list of {text =, id =}.
local function listed(special)
  if type(special) ~= "table" then return {} end
  local list = {}
  for _, text in ipairs(special) do list[#list + 1] = { text = check_text("special", text) } end
  if #list > 0 then return list end
  for text, id in pairs(special) do list[#list + 1] = { text = text, id = id } end
  return list
end

function M.bpe(vocab, merges, o)
  return tokenizer("bpe", { vocab = vocab, merges = merges, split = o.split, special = listed(o.special) })
end

function M.tiktoken(path, o)
  return tokenizer("bpe", { tiktoken = path, split = o.split, special = listed(o.special) })
end

function M.train_bpe(source, o)
  local text, name = engine.read_source(source, { string = o.string })
  return tokenizer("bpe", {
    tokens = o.vocab, min_frequency = o.min_frequency, split = o.split, special = listed(o.special),
  }, text, name)
end

return M
