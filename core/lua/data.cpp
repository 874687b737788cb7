// SPDX-License-Identifier: Apache-2.0
//
// orrery.data: datasets made of files, arrays and text.
#include <algorithm>
#include <filesystem>

#include "base/text_file.h"
#include "data/columns.h"
#include "data/joined.h"
#include "data/made_tokenizer.h"
#include "data/npy.h"
#include "data/opened.h"
#include "data/text.h"
#include "lua/call.h"

namespace fs = std::filesystem;

namespace orrery::lua {
namespace {

DatasetRef whole(DatasetPtr data) { return {{std::move(data)}}; }

// A name, of a file or a column, or a list of names.
std::vector<std::string> names_at(lua_State* L, int index) {
  if (!lua_istable(L, index)) return {to_text(L, index, "name")};
  std::vector<std::string> names = texts_at(L, index, "name");
  if (names.empty()) fail(ORR_INVALID, "an empty list of names; give at least one");
  return names;
}

std::string read_file(const std::string& path) {
  const std::string text = read_text(path, path, ORR_INVALID);
  if (text.empty()) fail(ORR_INVALID, "{}: the file is empty", path);
  return text;
}

struct Text {
  std::string all, name;  // what it says, what messages call it
};

// `source` is a path, a list of paths (joined in order), or with options.string the text itself.
Text text_in(lua_State* L, Index source, const Table& options) {
  if (options.flag("string")) return {to_text(L, source, "text"), "text"};
  const std::vector<std::string> paths = names_at(L, source);
  Text text{"", paths.size() == 1 ? paths[0] : fmt::format("{} files", paths.size())};
  for (const std::string& path : paths) text.all += read_file(path);
  return text;
}

DatasetRef text(lua_State* L, Index source, const Table& options) {
  const auto [all, name] = text_in(L, source, options);
  const auto tokenizer = options.with("tokens", [&](lua_State*, int index) {
    const auto* made = test<TokenizerRef>(L, index);
    return made ? made->tokenizer : text_tokenizer(to_text(L, index, "tokens"), all, name);
  });
  return whole(text_dataset(all, tokenizer, options.integer("ctx"), name));
}

// Adds the value at `index` to the options of a plugin: a table as the options "name.key", a list
// as "name.1", "name.2".
void add_option(lua_State* L, int index, const std::string& name, Attrs& to) {
  constexpr size_t deepest = 8;
  luaL_checkstack(L, 4, "options");
  const int type = lua_type(L, index);
  if (type == LUA_TBOOLEAN) {
    to[name] = int64_t{lua_toboolean(L, index)};
  } else if (int whole; type == LUA_TNUMBER) {
    const int64_t integer = lua_tointegerx(L, index, &whole);
    to[name] = whole ? Attr(integer) : Attr(to_number(L, index, name));
  } else if (type == LUA_TSTRING) {
    const std::string text = to_text(L, index, name);
    if (text.find('\0') != text.npos)
      fail(ORR_INVALID, "option '{}' holds a zero byte, which plugins cannot be given", name);
    to[name] = text;
  } else if (type != LUA_TTABLE || std::count(name.begin(), name.end(), '.') > int{deepest}) {
    fail(ORR_INVALID,
         "option '{}' is {}; give a data plugin texts, numbers, booleans or tables of them", name,
         type == LUA_TTABLE ? "too deep" : luaL_typename(L, index));
  } else {
    const Table table{L, index};
    for (const std::string& key : sorted_keys(L, index))
      table.with(key,
                 [&](lua_State*, int at) { return add_option(L, at, name + "." + key, to), 0; });
    for (lua_Unsigned i = 1; i <= lua_rawlen(L, index); ++i) {
      lua_rawgeti(L, index, static_cast<lua_Integer>(i));
      add_option(L, lua_gettop(L), fmt::format("{}.{}", name, i), to);
      lua_pop(L, 1);
    }
  }
}

Attrs options_in(lua_State* L, const Table& options) {
  Attrs given;
  for (const std::string& name : sorted_keys(L, options.index))
    options.with(name, [&](lua_State*, int at) { return add_option(L, at, name, given), 0; });
  return given;
}

DatasetRef open(lua_State* L, const std::string& format, Index paths, const Table& options,
                const Table& dtypes) {
  const Attrs given = options_in(L, options);
  std::map<std::string, int32_t> wanted;
  for (const std::string& field : sorted_keys(L, dtypes.index))
    wanted[field] = dtypes.with(field, to_dtype);
  const std::vector<std::string> names = names_at(L, paths);
  std::vector<DatasetPtr> parts;
  for (const std::string& path : names) parts.push_back(open_data(format, path, given, wanted));
  return whole(join(parts, names));
}

TokenizerRef tokenizer(lua_State* L, const std::string& plugin, const Table& options,
                       const std::string& text, const std::string& name) {
  return {plugin_tokenizer(plugin, options_in(L, options), text, name)};
}

Pushed read_source(lua_State* L, Index source, const Table& options) {
  const auto [all, name] = text_in(L, source, options);
  push_text(L, all);
  push_text(L, name);
  return {2};
}

NpyFile array_at(lua_State* L, int index) {
  if (lua_type(L, index) == LUA_TSTRING) return open_npy(to_text(L, index, "path"));
  const HostTensor tensor = host_at(L, index);
  return {Bytes(tensor.bytes), tensor.type, {stored_as(tensor.type.dtype)}, 0};
}

Column array_column(const std::string& name, const NpyFile& array) {
  if (array.type.dims.empty() || array.type.dims[0] == 0) {
    fail(ORR_INVALID, "arrays: '{}' is {}: its first dim counts the samples and is at least 1",
         name, to_string(array.type));
  }
  Type row = array.type;
  row.dims.erase(row.dims.begin());
  const auto stride = stored_kind(array.elements.kind).bytes * row.elements();
  return {{name, row}, array.bytes, array.elements, array.offset, static_cast<uint64_t>(stride)};
}

DatasetRef arrays(const Table& fields) {
  std::vector<Column> columns;
  int64_t samples = 0;
  for (const std::string& name : sorted_keys(fields.L, fields.index)) {
    const NpyFile array = fields.with(name, array_at);
    columns.push_back(array_column(name, array));
    if (columns.size() == 1) samples = array.type.dims[0];
    if (array.type.dims[0] != samples)
      fail(ORR_INVALID, "arrays: '{}' has {} samples and '{}' has {}", columns[0].field.name,
           samples, name, array.type.dims[0]);
  }
  if (columns.empty()) fail(ORR_INVALID, "arrays: the table is empty; write {{x = ..., y = ...}}");
  return whole(std::make_shared<Columns>(std::move(columns), samples));
}

DatasetRef mixed(lua_State* L, Index parts, Index weights) {
  const auto dataset = [](lua_State* state, int at) {
    const Samples& samples = check<DatasetRef>(state, at).samples;
    if (samples.shards > 1) fail(ORR_INVALID, "mix: a part is sharded; shard the mixture instead");
    return samples.data;
  };
  const auto all = list_at(L, parts, dataset);
  const auto shares = list_at(
      L, weights, [](lua_State* state, int at) { return to_number(state, at, "mix: a weight"); });
  if (all.empty() || all.size() != shares.size())
    fail(ORR_INVALID, "mix: {} parts and {} weights: give one weight for each part", all.size(),
         shares.size());
  return whole(mix(all, shares));
}

// Adds the non-empty files below `root` whose names end so. The order is set by the caller.
void list_files(const std::string& root, const std::vector<std::string>& endings,
                std::vector<std::string>& found) {
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(root, error);
       it != fs::recursive_directory_iterator(); it.increment(error)) {
    const std::string path = it->path().string();
    const auto ends = [&path](const std::string& ending) { return path.ends_with(ending); };
    if (it->is_regular_file() && it->file_size() &&
        std::any_of(endings.begin(), endings.end(), ends)) {
      found.push_back(path);
    }
  }
  if (error) fail(ORR_INVALID, "{}: cannot list: {}", root, error.message());
}

std::vector<std::string> files(lua_State* L, const std::string& directory, Index endings) {
  std::vector<std::string> found;
  list_files(directory, texts_at(L, endings, "ending"), found);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<Api> data_api() {
  return {
      {"data.text(source: any, options) -> Dataset; Text as fields x and y (x one token later); a "
       "path, a list of paths or text. "
       "@option ctx: integer; tokens in a sample "
       "@option tokens: any = 'chars'; 'chars', 'bytes' or a tokenizer, such as data.bpe's "
       "@option string: boolean = false; source is the text itself",
       call<text>},
      {"data.bpe(vocab: string, merges: string, options?) -> Tokenizer; A byte-level BPE from "
       "vocab.json and merges.txt. "
       "@option split: string = 'gpt2'; where text is cut before merging: as gpt2 or gpt4 does "
       "@option special: any = false; texts that are one token: a list of those that the "
       "vocabulary has (others get the next ids), or ids by text",
       library<"orrery.data", "bpe">},
      {"data.tiktoken(path: string, options?) -> Tokenizer; A byte-level BPE from tiktoken's file, "
       "a line of base64 and id for each token, such as cl100k_base.tiktoken. "
       "@option split: string = 'gpt4'; where text is cut before merging: as gpt2 or gpt4 does "
       "@option special: any = false; texts that are one token: ids by text, or a list that gets "
       "the next ids",
       library<"orrery.data", "tiktoken">},
      {"data.train_bpe(source: any, options) -> Tokenizer; Learns a byte-level BPE from a path, a "
       "list of paths or text: the tokens of Hugging Face's BpeTrainer. "
       "@option vocab: integer; tokens at the end, bytes and special ones included "
       "@option min_frequency: integer = 2; how often a pair must occur to be merged "
       "@option split: string = 'gpt2'; where text is cut before merging: as gpt2 or gpt4 does "
       "@option special: any = false; a list of texts that are one token; they get the first ids "
       "@option string: boolean = false; source is the text itself",
       library<"orrery.data", "train_bpe">},
      {"data.tokens(paths: any, options) -> Dataset; Files of token ids alone, such as nanoGPT's "
       "train.bin, as fields x and y (x one token later); a path or a list of them. They are read "
       "a window at a time and may be larger than the memory. "
       "@option length: integer; tokens in a sample "
       "@option dtype: string = 'u16'; how a token is stored: u8, u16, u32, u64, i8, i16, i32, i64",
       library<"orrery.data", "tokens">},
      {"data.arrays(fields: table) -> Dataset; Fields from HostTensors, lists or .npy paths; the "
       "first dim counts the samples. Files are read a sample at a time.",
       call<arrays>},
      {"data.idx(images: string, labels: string, options?) -> Dataset; MNIST's idx files, "
       "also "
       "packed by gzip: x the images [C,H,W], y the labels. "
       "@option dtype: dtype = 'f32'; of x: bytes divided by 255 where it is real, 'u8' as they "
       "are",
       library<"orrery.data", "idx">},
      {"data.cifar(paths: any, options?) -> Dataset; Binary files of CIFAR-10 or CIFAR-100: x the "
       "images [3,32,32], y the labels, of CIFAR-100 the fine ones and coarse; a path or a list of "
       "them. "
       "@option classes: integer = 10; 10 or 100 "
       "@option dtype: dtype = 'f32'; of x: bytes divided by 255 where it is real, 'u8' as they "
       "are",
       library<"orrery.data", "cifar">},
      {"data.images(directory: string, options) -> Dataset; A directory with one for each class, "
       "in "
       "which PNG and JPEG files are: x the images [3,size,size], y the class by the order of the "
       "names, which are data.classes. A file is read when its sample is. "
       "@option size: integer; edge of the square in the middle, the shorter edge resized to it "
       "@option dtype: dtype = 'f32'; of x: bytes divided by 255 where it is real, 'u8' as they "
       "are",
       library<"orrery.data", "images">},
      {"data.csv(path: string, fields: table, options?) -> Dataset; A table of text with column "
       "names "
       "in its first line, kept in memory: fields {x = {'height', 'width'}, y = 'kind'} are "
       "columns "
       "by name, a list of them or one. "
       "@option dtypes: table = {}; of fields, {y = 'i32'}, f32 else; 'class' makes numbers of "
       "texts, "
       "by their order in data.classes",
       library<"orrery.data", "csv">},
      {"data.open(format: string, paths: any, options: table = {}, dtypes: table = {}) -> Dataset; "
       "What the data plugin of this name reads at a path, or at each of a list of them. "
       "@param options; those of the plugin "
       "@param dtypes; of fields, {x = 'u8'}, instead of those that the plugin gives them",
       call<open>},
      {"data.tokenizer(plugin: string, options: table = {}, text: string = '', name: string = "
       "'text') "
       "-> Tokenizer; What the data plugin of this name makes, of files or of a text. "
       "@param options; those of the plugin "
       "@param text; what it learns from "
       "@param name; what errors call the text",
       call<tokenizer>},
      {"engine.read_source(source: any, options) -> string, string; The text of a source, and what "
       "messages call it. "
       "@option string: boolean = false; source is the text itself",
       call<read_source>},
      {"data.mix(parts: table, weights: table) -> Dataset; Several datasets of the same fields, "
       "each "
       "with its share of the samples. An epoch is as long as it takes to see all of every part.",
       call<mixed>},
      {"data.files(directory: string, endings: table) -> string[]; Files below a directory with "
       "these endings, sorted.",
       call<files>},
      {"orrery.sources() -> string[]; Paths of Orrery's own sources and documents, texts to train "
       "on.",
       library<"orrery.paths", "sources">},
  };
}

}  // namespace orrery::lua
