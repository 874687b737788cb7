-- SPDX-License-Identifier: Apache-2.0
--
-- orrery.data and what reads tensors from files: the calls for the plugins that come with Orrery, with options as these
-- take them.
local _, orrery = ...
local engine = orrery.engine
local define = require "orrery.define"
local remote = require "orrery.remote"

-- Adds an option as plugins take them: a table as "name.key", a list as "name.1", "name.2".
local function add_option(to, name, value, depth)
  local kind = type(value)
  if kind == "table" and depth <= 9 then
    for key, each in pairs(value) do add_option(to, name .. "." .. tostring(key), each, depth + 1) end
    return
  elseif kind == "string" and value:find("\0", 1, true) then
    orrery.fail(("option '%s' holds a zero byte, which plugins cannot be given"):format(name))
  elseif kind ~= "boolean" and kind ~= "number" and kind ~= "string" then
    orrery.fail(("option '%s' is %s; give a data plugin texts, numbers, booleans or tables of them"):format(name,
      kind == "table" and "too deep" or kind))
  end
  to[name] = kind == "number" and math.tointeger(value) or value
end

local function flat(options)
  local all = {}
  for name, value in pairs(options) do
    if type(name) == "string" then add_option(all, name, value, 1) end
  end
  return all
end

local function open(format, paths, options, dtypes) return engine.open_data(format, paths, flat(options), dtypes or {}) end

local function tokenizer(plugin, options, text, name)
  return engine.make_tokenizer(plugin, flat(options), text or "", name or "text")
end

local function check_text(what, value)
  if type(value) == "string" then return value end
  local shown = type(value) == "table" and orrery.type(value) or tostring(value)
  orrery.fail(("%s is %s, expected a string"):format(what, shown))
end

define([[data.open(format: string, paths: any, options: table = {}, dtypes: table = {}) -> Dataset; What the data plugin
    of this name reads at a path, or at each of a list of them.
    @param options; those of the plugin
    @param dtypes; of fields, {x = 'u8'}, instead of those that the plugin gives them]], open)

local function open_files(format, paths, options, dtypes) return open(format, remote.paths(paths), options, dtypes) end

define([[data.tokenizer(plugin: string, options: table = {}, text: string = '', name: string = 'text') -> Tokenizer;
    What the data plugin of this name makes, of files or of a text.
    @param options; those of the plugin
    @param text; what it learns from
    @param name; what errors call the text]], tokenizer)

define([[data.text(source: any, options) -> Dataset; Text as fields x and y (x one token later); a path, a list of
    paths or text.
    @option ctx: integer; tokens in a sample
    @option tokens: any = 'chars'; 'chars', 'bytes' or a tokenizer, such as data.bpe's
    @option string: boolean = false; source is the text itself]],
  function(source, o)
    local text, name = engine.read_source(o.string and source or remote.paths(source), { string = o.string })
    local made = o.tokens
    if orrery.type(made) ~= "Tokenizer" then made = tokenizer("text", { kind = made }, text, name) end
    return engine.windows(text, made, o.ctx, name)
  end)

define([[data.tokens(paths: any, options) -> Dataset; Files of token ids alone, such as nanoGPT's train.bin, as fields
    x and y (x one token later); a path or a list of them, one after another: a sample may begin in one file and end in
    the next. They are read a window at a time and may be larger than the memory. Of Megatron's files name NAME.idx,
    which says how the tokens of NAME.bin are stored.
    @option length: integer; tokens in a sample
    @option dtype: any = false; how a token is stored: 'u8', 'u16', 'u32', 'u64', 'i8', 'i16', 'i32', 'i64'; without it
    as NAME.idx or the header of llm.c's files says, else u16]],
  function(paths, o)
    local list = type(paths) == "table" and #paths > 0 and paths or { paths }
    local more = {}
    for k = 2, #list do more[k - 1] = remote.path(check_text("name", list[k])) end
    local dtype = o.dtype and check_text("dtype", o.dtype) or nil
    return open_files("tokens", list[1], { length = o.length, dtype = dtype, more = more })
  end)

define([[data.arrays(fields: table) -> Dataset; Fields from HostTensors, lists or .npy paths; the first dim counts the
    samples. Files are read a sample at a time.]],
  function(fields)
    local parts = {}
    for name, value in pairs(fields) do
      if type(name) == "string" then
        parts[#parts + 1] = type(value) == "string" and open_files("npy", value, { field = name }) or engine.array(name, value)
      end
    end
    if #parts == 0 then orrery.fail "arrays: the table is empty; write {x = ..., y = ...}" end
    return engine.beside(parts)
  end)

define([[data.idx(images: string, labels: string, options?) -> Dataset; MNIST's idx files, also packed by gzip or zstd:
    x the images [C,H,W], y the labels.
    @option dtype: dtype = 'f32'; of x: bytes divided by 255 where it is real, 'u8' as they are]],
  function(images, labels, o) return open_files("idx", images, { labels = remote.path(labels) }, { x = o.dtype }) end)

define([[data.cifar(paths: any, options?) -> Dataset; Binary files of CIFAR-10 or CIFAR-100: x the images [3,32,32], y
    the labels, of CIFAR-100 the fine ones and coarse; a path or a list of them.
    @option classes: integer = 10; 10 or 100
    @option dtype: dtype = 'f32'; of x: bytes divided by 255 where it is real, 'u8' as they are]],
  function(paths, o) return open_files("cifar", paths, { classes = o.classes }, { x = o.dtype }) end)

-- Names of an option that are to be those of fields.
local function check_known(format, option, named, fields)
  local names = {}
  for name in pairs(fields) do names[#names + 1] = name end
  for name in pairs(named) do
    if fields[name] == nil then
      orrery.fail(("%s: %s: unknown option '%s'%s"):format(format, option, name, orrery.did_you_mean(name, names)))
    end
  end
end

-- A field of a table as plugins take it.
local function table_field(format, name, columns, dtype)
  local list = type(columns) == "table" and columns or { columns }
  for _, column in ipairs(list) do check_text("name", column) end
  if #list == 0 then orrery.fail(format .. ": an empty list of names; give at least one") end
  local kept = dtype ~= nil and check_text("dtype", dtype) or nil
  return { name = name, columns = list, list = type(columns) == "table", dtype = kept }
end

-- The fields of a table as plugins take them.
local function table_fields(format, fields, dtypes)
  check_known(format, "dtypes", dtypes, fields)
  local list = {}
  for name, columns in pairs(fields) do
    if type(name) == "string" then list[#list + 1] = table_field(format, name, columns, dtypes[name]) end
  end
  return list
end

local function open_table(format, path, fields, dtypes)
  return open_files(format, path, { fields = table_fields(format, fields, dtypes) })
end

-- Images that a table names, and other columns of it.
local function open_listed(path, o)
  if o.fields.x then orrery.fail "images: fields: x is the images; name the column otherwise" end
  check_text("column", o.column)
  local given = { size = o.size, column = o.column, ending = check_text("ending", o.ending) }
  given.folder = o.folder and check_text("folder", o.folder) or nil
  given.fields = table_fields("images", o.fields, o.dtypes)
  return open_files("images", path, given, { x = o.dtype })
end

define([[data.images(path: string, options) -> Dataset; Images in PNG, JPEG, WebP, BMP and TIFF: x [3,size,size]. The path is
    that of a directory with one for each class, in which files are, also in directories of their own: y is the class by the
    order of the names, which are data.classes; samples are in the order of torchvision's ImageFolder, without hidden files
    and directories. Or it is that of a table of text, one column of which names files. A file is read when its sample is.
    @option size: integer; edge of the square in the middle, the shorter edge resized to it
    @option dtype: dtype = 'f32'; of x: bytes divided by 255 where it is real, 'u8' as they are
    @option column: any = false; of a table: 'file', the column that names files
    @option folder: any = false; of a table: where these are; in its own directory if left out
    @option ending: string = ''; of a table: '.jpg', what its names lack
    @option fields: table = {}; of a table: other columns, {y = 'breed'}, as data.csv has them
    @option dtypes: table = {}; of these, {y = 'class'}, as data.csv has them]],
  function(path, o)
    if o.column then return open_listed(path, o) end
    for _, option in ipairs { "folder", "ending", "fields", "dtypes" } do
      local value = o[option]
      if value and value ~= "" and (type(value) ~= "table" or next(value)) then
        orrery.fail(("images: %s is for tables: give the column that names files, too"):format(option))
      end
    end
    return open("images", path, { size = o.size }, { x = o.dtype })
  end)

define([[data.csv(path: string, fields: table, options?) -> Dataset; A table of text with column names in its first
    line, kept in memory: fields {x = {'height', 'width'}, y = 'kind'} are columns by name, a list of them or one.
    @option dtypes: table = {}; of fields, {y = 'i32'}; without one f32, and an error for a whole number that f32 would
    round; 'class' makes numbers of texts, by their order in data.classes, 'text' keeps their bytes, filled up by
    zeros to the longest: x:text() of a sample]],
  function(path, fields, o) return open_table("csv", path, fields, o.dtypes) end)

define([[data.jsonl(path: string, fields: table, options?) -> Dataset; JSON lines, each an object that is a sample, also
    packed by gzip or zstd, kept in memory: fields {x = {'height', 'width'}, ids = 'input_ids'} are values by their keys, a list
    of keys or one; the value of one may be a list of numbers, or of lists.
    @option dtypes: table = {}; of fields, {ids = 'i32'}; without one f32, and an error for a whole number that f32 would
    round; 'class' makes numbers of texts, by their order in data.classes, 'text' keeps their bytes, filled up by
    zeros to the longest: x:text() of a sample]],
  function(path, fields, o) return open_table("jsonl", path, fields, o.dtypes) end)

-- Fields of columns as the plugin arrow takes them; what is a dtype of tensors is the host's.
local function column_fields(format, fields, o)
  local words, dtypes, list = { text = true, class = true, image = true }, {}, {}
  for _, option in ipairs { "dtypes", "pad", "nulls" } do check_known(format, option, o[option], fields) end
  for name, columns in pairs(fields) do
    if type(name) == "string" then
      local field = table_field(format, name, columns, o.dtypes[name])
      if not words[field.dtype] then dtypes[name] = field.dtype end
      field.as, field.dtype = words[field.dtype] and field.dtype or nil, nil
      field.pads, field.pad = o.pad[name] ~= nil, o.pad[name]
      field.fills, field.null = o.nulls[name] ~= nil, o.nulls[name]
      list[#list + 1] = field
    end
  end
  return list, dtypes
end

-- Opens by a plugin that is built where there is a library.
local function open_optional(library, format, ...)
  local ok, opened = pcall(open_files, format, ...)
  if ok then return opened end
  local missing = tostring(opened):find(("no plugin provides data '%s'"):format(format), 1, true)
  error(missing and opened .. "; it is built where " .. library or opened, 0)
end

local function open_columns(format, paths, fields, o)
  local files = type(paths) == "table" and #paths > 0 and paths or { paths }
  local list, dtypes = column_fields(format, fields, o)
  local more = {}
  for k = 2, #files do more[k - 1] = remote.path(check_text("name", files[k])) end
  local given = { fields = list, more = more, size = o.size, memory = o.memory }
  given.split = o.split and check_text("split", o.split) or nil
  return open_optional("Apache Arrow's library is (meson's -Darrow=DIR)", "arrow", files[1], given, dtypes)
end

define([[data.parquet(paths: any, fields: table, options?) -> Dataset; Columns of Parquet files: fields {x = {'height',
    'width'}, ids = 'input_ids'} are columns by name, a list of them or one: of numbers, of lists of numbers, of texts
    (their bytes, filled up by zeros: x:text() of a sample) and of images. A path, a list of paths, or directories.
    A row group is read when a sample of it is.
    @option dtypes: table = {}; of fields, {ids = 'i32'}; without one that of the column; 'class' makes numbers of texts,
    by their order in data.classes; 'image' says that bytes are those of PNG or JPEG files
    @option pad: table = {}; of fields, {ids = 0}: what lists are filled up with to the longest of all
    @option nulls: table = {}; of fields, {x = 0}: what stands for values that are missing, an error else
    @option size: integer = 0; edge of the square in the middle of images, the shorter edge resized to it
    @option split: any = false; of a directory with several: 'train'
    @option memory: integer = 1073741824; bytes of row groups that are kept]],
  function(paths, fields, o) return open_columns("parquet", paths, fields, o) end)

define([[data.arrow(paths: any, fields: table, options?) -> Dataset; Columns of Arrow files (Feather) and streams, and of
    directories that Hugging Face's datasets saves or keeps in its cache, as data.parquet has them of Parquet.
    @option dtypes: table = {}; of fields, {ids = 'i32'}, or 'class', 'image'
    @option pad: table = {}; of fields, {ids = 0}: what lists are filled up with to the longest of all
    @option nulls: table = {}; of fields, {x = 0}: what stands for values that are missing, an error else
    @option size: integer = 0; edge of the square in the middle of images, the shorter edge resized to it
    @option split: any = false; of a directory with several: 'train'
    @option memory: integer = 1073741824; bytes of record batches that are kept]],
  function(paths, fields, o) return open_columns("arrow", paths, fields, o) end)

define([[data.hdf5(paths: any, fields: table, options?) -> Dataset; Arrays in files of HDF5: fields {x = 'images', y =
    'train/labels'} are those of these paths within a file, of numbers, booleans, or texts (their bytes, filled up by zeros:
    x:text() of a sample); the first dim counts the samples. A path, or a list of them, one after another. A sample is read
    when it is asked for, texts when it is opened.
    @option dtypes: table = {}; of fields, {x = 'f32'}, instead of those that they have; 'class' makes numbers of texts,
    by their order in data.classes]],
  function(paths, fields, o)
    check_known("hdf5", "dtypes", o.dtypes, fields)
    local list, dtypes = {}, {}
    for name, dataset in pairs(fields) do
      if type(name) == "string" then
        local as = (o.dtypes[name] == "class" or o.dtypes[name] == "text") and o.dtypes[name] or nil
        if not as then dtypes[name] = o.dtypes[name] end
        list[#list + 1] = { name = name, dataset = check_text("name", dataset), as = as }
      end
    end
    return open_optional("HDF5's library is (libhdf5-dev)", "hdf5", paths, { fields = list }, dtypes)
  end)

-- The paths that a name with a range of numbers stands for: "shard-{000..002}.tar".
local function expanded(path)
  local before, first, last, behind = path:match "^(.-){(%d+)%.%.(%d+)}(.*)$"
  if not before then return { path } end
  local paths, width = {}, ("%%0%dd"):format(#first)
  for number = math.tointeger(first), math.tointeger(last) do
    for _, rest in ipairs(expanded(behind)) do paths[#paths + 1] = before .. width:format(number) .. rest end
  end
  if #paths == 0 then orrery.fail(("%s: {%s..%s} is no range: begin with the smaller number"):format(path, first, last)) end
  return paths
end

define([[data.webdataset(paths: any, fields: table, options?) -> Dataset; WebDataset's shards, tar archives in which files
    of one name but different endings are a sample: fields {x = 'jpg', y = 'cls'} are files by their ending, {x = {'jpg',
    'png'}} those of either. A path, in which {000..009} stands for ten, or a list. Images are [3,size,size]; cls, index
    and id whole numbers; npy arrays; other files are bytes, filled up by zeros to the longest: x:text() of a sample.
    The headers of all shards are read when they are opened, a file when its sample is.
    @option size: integer = 0; edge of the square in the middle of images, the shorter edge resized to it
    @option dtypes: table = {}; of fields, {x = 'u8'}, instead of those that they have]],
  function(paths, fields, o)
    check_known("webdataset", "dtypes", o.dtypes, fields)
    local files, list = {}, {}
    for _, path in ipairs(type(paths) == "table" and #paths > 0 and paths or { paths }) do
      for _, each in ipairs(expanded(check_text("name", path))) do files[#files + 1] = remote.path(each) end
    end
    for name, endings in pairs(fields) do
      if type(name) == "string" then
        local field = table_field("webdataset", name, endings)
        list[#list + 1] = { name = field.name, columns = field.columns }
      end
    end
    return open("webdataset", files[1], { fields = list, more = table.move(files, 2, #files, 1, {}), size = o.size }, o.dtypes)
  end)

define([[HostTensor:text() -> string; The text that u8[n] holds, up to the zeros at its end.]], function(bytes)
  if bytes.dtype ~= "u8" or #bytes.shape ~= 1 then
    orrery.fail(("text: the tensor is %s%s, expected u8[n]"):format(bytes.dtype, tostring(bytes.shape)))
  end
  return (engine.bytes(bytes):gsub("\0+$", ""))
end)

-- The option `special`, a list of texts or ids by text, as a list of {text =, id =}.
local function listed(special)
  if type(special) ~= "table" then return {} end
  local list = {}
  for _, text in ipairs(special) do list[#list + 1] = { text = check_text("special", text) } end
  if #list > 0 then return list end
  for text, id in pairs(special) do list[#list + 1] = { text = text, id = id } end
  return list
end

define([[data.bpe(vocab: string, merges: string, options?) -> Tokenizer; A byte-level BPE from vocab.json and merges.txt.
    @option split: string = 'gpt2'; where text is cut before merging: as gpt2, gpt4 or o200k does
    @option special: any = false; texts that are one token: a list of those that the vocabulary has (others get the
    next ids), or ids by text]],
  function(vocab, merges, o)
    return tokenizer("bpe", { vocab = remote.path(vocab), merges = remote.path(merges), split = o.split, special = listed(o.special) })
  end)

define([[data.tiktoken(path: string, options?) -> Tokenizer; A byte-level BPE from tiktoken's file, a line of base64
    and id for each token, such as cl100k_base.tiktoken.
    @option split: any = false; where text is cut before merging: as 'gpt2' (r50k_base, p50k_base), 'gpt4' (cl100k_base)
    or 'o200k' does; needed unless the number of tokens is that of one of these
    @option special: any = false; texts that are one token: ids by text, or a list that gets the next ids]],
  function(path, o)
    local split = o.split and check_text("split", o.split) or nil
    return tokenizer("bpe", { tiktoken = remote.path(path), split = split, special = listed(o.special) })
  end)

define([[data.tokenizer_json(path: string, options?) -> Tokenizer; A tokenizer of Hugging Face, from its tokenizer.json:
    its ids, and its texts.
    @option add_special_tokens: boolean = true; whether texts get the ids of begin and end that the file says
    @option skip_special_tokens: boolean = true; whether decode leaves special tokens out]],
  function(path, o)
    return tokenizer("tokenizer_json", {
      path = remote.path(path), add_special_tokens = o.add_special_tokens, skip_special_tokens = o.skip_special_tokens,
    })
  end)

define([[data.sentencepiece(path: string, options?) -> Tokenizer; A tokenizer of SentencePiece, from its model: its ids and
    its texts.
    @option bos: boolean = false; whether texts get the id of their beginning, as LLaMA's do
    @option eos: boolean = false; whether they get that of their end, as T5's do]],
  function(path, o) return tokenizer("sentencepiece", { path = remote.path(path), bos = o.bos, eos = o.eos }) end)

define([[data.train_bpe(source: any, options) -> Tokenizer; Learns a byte-level BPE from a path, a list of paths or
    text: the tokens of Hugging Face's BpeTrainer.
    @option vocab: integer; tokens at the end, bytes and special ones included
    @option min_frequency: integer = 2; how often a pair must occur to be merged
    @option split: string = 'gpt2'; where text is cut before merging: as gpt2, gpt4 or o200k does
    @option special: any = false; a list of texts that are one token; they get the first ids
    @option string: boolean = false; source is the text itself]],
  function(source, o)
    local text, name = engine.read_source(o.string and source or remote.paths(source), { string = o.string })
    return tokenizer("bpe", {
      tokens = o.vocab, min_frequency = o.min_frequency, split = o.split, special = listed(o.special),
    }, text, name)
  end)
