// SPDX-License-Identifier: Apache-2.0
//
// What orrery.data (scripts/orrery/data.lua) is made of: datasets of files, arrays and text.
#include <algorithm>
#include <filesystem>

#include "base/text_file.h"
#include "data/columns.h"
#include "data/joined.h"
#include "data/made_tokenizer.h"
#include "data/opened.h"
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

Attrs options_in(const Table& options) {
  Attrs given;
  for (const std::string& name : sorted_keys(options.L, options.index))
    given.set(name, options.with(name, attr_at));
  return given;
}

DatasetRef open(lua_State* L, const std::string& format, Index paths, const Table& options,
                const Table& dtypes) {
  const Attrs given = options_in(options);
  std::map<std::string, int32_t> wanted;
  for (const std::string& field : sorted_keys(L, dtypes.index))
    wanted[field] = dtypes.with(field, to_dtype);
  const std::vector<std::string> names = names_at(L, paths);
  std::vector<DatasetPtr> parts;
  for (const std::string& path : names) parts.push_back(open_data(format, path, given, wanted));
  return whole(join(parts, names));
}

TokenizerRef tokenizer(const std::string& plugin, const Table& options, const std::string& text,
                       const std::string& name) {
  return {plugin_tokenizer(plugin, options_in(options), text, name)};
}

DatasetRef windows(const std::string& text, TokenizerRef& tokenizer, int64_t length,
                   const std::string& name) {
  return whole(windows_of(text, tokenizer.tokenizer, length, name));
}

// Pushes the text of a source, and what messages call it. A source is a path, a list of paths
// (joined in order), or with options.string the text itself.
Pushed read_source(lua_State* L, Index source, const Table& options) {
  std::string text, name = "text";
  if (options.flag("string")) {
    text = to_text(L, source, "text");
  } else {
    const std::vector<std::string> paths = names_at(L, source);
    name = paths.size() == 1 ? paths[0] : fmt::format("{} files", paths.size());
    for (const std::string& path : paths) text += read_file(path);
  }
  push_text(L, text);
  push_text(L, name);
  return {2};
}

DatasetRef array(const std::string& name, const HostTensor& tensor) {
  Type row = tensor.type;
  if (row.dims.empty() || row.dims[0] == 0)
    fail(ORR_INVALID, "arrays: '{}' is {}: its first dim counts the samples and is at least 1",
         name, to_string(row));
  const int64_t samples = row.dims[0];
  row.dims.erase(row.dims.begin());
  return whole(std::make_shared<Columns>(
      std::vector<Column>{{{name, row}, tensor.bytes, 0, row.bytes()}}, samples));
}

DatasetRef beside_each_other(lua_State* L, Index parts) {
  return whole(beside(list_at(L, parts, [](lua_State* state, int at) {
    return check<DatasetRef>(state, at).samples.data;
  })));
}

DatasetRef mixed(lua_State* L, const std::string& caller, Index parts, Index lengths) {
  const auto dataset = [&caller](lua_State* state, int at) {
    const Samples& samples = check<DatasetRef>(state, at).samples;
    if (samples.shards > 1)
      fail(ORR_INVALID, "{}: a part is sharded; shard the result of {} instead", caller, caller);
    return samples.data;
  };
  return whole(mix(list_at(L, parts, dataset), to_integers(L, lengths, caller + ": a length")));
}

int64_t samples_of(DatasetRef& self) { return self.samples.data->samples(); }

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
  if (error == std::errc::not_enough_memory) throw std::bad_alloc();  // whose error names the limit
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
      {"engine.open_data(format: string, paths: any, options: table, dtypes: table) -> Dataset; "
       "data.open; a table among the options has become fields 'outer.inner'.",
       call<open>},
      {"engine.make_tokenizer(plugin: string, options: table, text: string, name: string) -> "
       "Tokenizer; data.tokenizer, with options likewise.",
       call<tokenizer>},
      {"engine.windows(text: string, tokenizer: Tokenizer, length: integer, name: string) -> "
       "Dataset; A text, which errors call so, as fields x and y.",
       call<windows>},
      {"engine.array(name: string, tensor: any) -> Dataset; A field of samples that a HostTensor "
       "or lists have.",
       call<array>},
      {"engine.beside(parts: table) -> Dataset; The fields of several datasets.",
       call<beside_each_other>},
      {"engine.read_source(source: any, options) -> string, string; The text of a source, and what "
       "messages call it. "
       "@option string: boolean = false; source is the text itself",
       call<read_source>},
      {"engine.samples(data: Dataset) -> integer; How many samples can be read, windows of text at "
       "every token.",
       call<samples_of>},
      {"engine.mix(call: string, parts: table, lengths: table) -> Dataset; Parts one after "
       "another, each so many samples long; errors begin with the call.",
       call<mixed>},
      {"data.files(directory: string, endings: list) -> string[]; Files below a directory with "
       "these endings, sorted.",
       call<files>},
  };
}

}  // namespace orrery::lua
