// SPDX-License-Identifier: Apache-2.0
//
// Datasets in Lua: made from text and arrays, cut, sharded, and asked for batches.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/text_file.h"
#include "lua/call.h"
#include "lua/dataset.h"
#include "lua/host_tensor.h"
#include "run/runtime.h"

namespace fs = std::filesystem;

namespace orrery::lua {
namespace {

std::string read_file(const std::string& path) {
  const std::string text = read_text(path, path, ORR_INVALID);
  if (text.empty()) fail(ORR_INVALID, "{}: the file is empty", path);
  return text;
}

DatasetRef shared(Dataset data) { return {std::make_shared<const Dataset>(std::move(data))}; }

// `source` is a path, a list of paths (joined in order), or with options.string the text itself.
DatasetRef text(lua_State* L, Index source, const Table& options) {
  std::string all, name;
  if (options.flag("string")) {
    all = to_text(L, source, "text");
    name = "text";
  } else if (lua_istable(L, source)) {
    for (const std::string& path : texts_at(L, source, "path")) all += read_file(path);
    name = fmt::format("{} files", lua_rawlen(L, source));
  } else {
    name = to_text(L, source, "path");
    all = read_file(name);
  }
  return shared(text_dataset(all, options.text("tokens"), options.integer("ctx"), name));
}

Column array_column(const std::string& name, const HostTensor& tensor) {
  if (tensor.type.dims.empty() || tensor.type.dims[0] == 0) {
    fail(ORR_INVALID, "arrays: '{}' is {}: its first dim counts the samples and is at least 1",
         name, to_string(tensor.type));
  }
  Column column{name, tensor.type, tensor.bytes, 0, 0};
  column.row.dims.erase(column.row.dims.begin());
  column.stride = static_cast<int64_t>(column.row.bytes());
  return column;
}

HostTensor array_at(lua_State* L, int index) {
  return lua_type(L, index) == LUA_TSTRING ? load_npy(to_text(L, index, "path"))
                                           : host_at(L, index);
}

DatasetRef arrays(const Table& fields) {
  Dataset data;
  std::string first;
  for (const std::string& name : sorted_keys(fields.L, fields.index)) {
    const HostTensor tensor = fields.with(name, array_at);
    data.columns.push_back(array_column(name, tensor));
    const int64_t samples = tensor.type.dims[0];
    if (first.empty()) {
      first = name;
      data.samples = samples;
    } else if (samples != data.samples) {
      fail(ORR_INVALID, "arrays: '{}' has {} samples and '{}' has {}", first, data.samples, name,
           samples);
    }
  }
  if (first.empty()) fail(ORR_INVALID, "arrays: the table is empty; write {{x = ..., y = ...}}");
  return shared(std::move(data));
}

BatchOrder order_in(const Table& options, int64_t step) {
  const bool own = options.has("seed");
  const BatchOrder order{
      step, options.integer("size"), options.flag("shuffle"),
      own ? static_cast<uint64_t>(options.integer("seed")) : runtime_options().seed};
  if (order.size < 1 || order.step < 1) {
    fail(ORR_INVALID, "batches: step {} and size {}: both are at least 1", order.step, order.size);
  }
  return order;
}

Pushed batch(lua_State* L, DatasetRef& self, int64_t step, const Table& options) {
  lua_newtable(L);
  for (auto& [name, field] : make_batch(self.data, order_in(options, step))) {
    push(L, Field{std::move(field)});
    lua_setfield(L, -2, name.c_str());
  }
  return {1};
}

// upvalues: dataset, options, next step, last step
int next_batch(lua_State* L) {
  return guard(L, [](lua_State* state) {
    const lua_Integer step = lua_tointeger(state, lua_upvalueindex(3));
    if (step > lua_tointeger(state, lua_upvalueindex(4))) return 0;
    lua_pushinteger(state, step + 1);
    lua_replace(state, lua_upvalueindex(3));
    lua_pushinteger(state, step);
    auto& self = check<DatasetRef>(state, lua_upvalueindex(1));
    return 1 + batch(state, self, step, {state, lua_upvalueindex(2)}).count;
  });
}

Pushed batches(lua_State* L, DatasetRef&, const Table& options) {
  const int64_t first = options.integer("from");
  const bool ends = options.has("steps");
  const int64_t last = ends ? options.integer("steps") : std::numeric_limits<int64_t>::max();
  order_in(options, first);
  Runtime::get().set_planned_steps(ends ? last : 0);
  lua_pushinteger(L, first);
  lua_pushinteger(L, last);
  lua_pushcclosure(L, next_batch, 4);
  return {1};
}

Pushed split(lua_State* L, DatasetRef& from, double fraction) {
  const Dataset& self = *from.data;
  const int64_t all = self.samples + self.overlap;
  const auto cut = static_cast<int64_t>(std::floor(static_cast<double>(all) * fraction));
  Dataset head = self, tail = self;
  head.samples = cut - self.overlap;
  tail.begin = self.begin + cut;
  tail.samples = all - cut - self.overlap;
  if (head.samples < 1 || tail.samples < 1) {
    fail(ORR_INVALID, "split: {} of {} samples leaves a part without a sample", fraction,
         self.samples);
  }
  push(L, shared(std::move(head)));
  push(L, shared(std::move(tail)));
  return {2};
}

DatasetRef shard(DatasetRef& self, int64_t rank, int64_t size) {
  Dataset part = *self.data;
  if (size < 1 || rank < 0 || rank >= size)
    fail(ORR_INVALID, "shard: {} of {}: ranks are 0..size-1", rank, size);
  part.shard = part.shard + rank * part.shards;
  part.shards *= size;
  if (part.items() < 1)
    fail(ORR_INVALID, "shard: {} samples do not fill {} shards", part.samples, size);
  return shared(std::move(part));
}

const Dataset& text_of(const DatasetRef& self) {
  if (!self.data->symbols) fail(ORR_INVALID, "this dataset holds arrays, not text");
  return *self.data;
}

HostTensor encode_text(DatasetRef& self, const std::string& text) {
  const std::vector<int32_t> ids = encode(text_of(self), text);
  HostTensor tensor = HostTensor::make({ORR_I32, {static_cast<int64_t>(ids.size())}});
  std::copy(ids.begin(), ids.end(), tensor.data<int32_t>());
  return tensor;
}

std::string decode_text(lua_State* L, DatasetRef& self, Index ids) {
  return decode(text_of(self), to_integers(L, ids, "token"));
}

int64_t samples(DatasetRef& self) { return self.data->items(); }

// Only text has one.
Pushed vocab(lua_State* L, DatasetRef& self) {
  if (!self.data->symbols) return {0};
  push_value(L, self.data->symbols->size());
  return {1};
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
       "@option tokens: string = 'chars'; 'chars' or 'bytes' "
       "@option string: boolean = false; source is the text itself",
       call<text>},
      {"data.arrays(fields: table) -> Dataset; Fields from HostTensors, lists or .npy paths; the "
       "first dim counts the samples.",
       call<arrays>},
      {"data.files(directory: string, endings: table) -> string[]; Files below a directory with "
       "these endings, sorted.",
       call<files>},
      {"orrery.sources() -> string[]; Orrery's own sources and documents, as text to train on.",
       library<"orrery.paths", "sources">},
      {"Dataset.samples: integer", call<samples>},
      {"Dataset.vocab: integer", call<vocab>},
      {"Dataset:batch(step: integer, options) -> table; The batch of a step: lazy fields, each "
       "rank loads its rows. "
       "@option size: integer; samples in the whole batch, over all ranks "
       "@option shuffle: boolean = true; a new order in every epoch; random windows of text "
       "@option seed?: integer; the job's seed if left out",
       call<batch>},
      {"Dataset:batches(options) -> fun(): integer, table; for step, batch in data:batches{size = "
       "32} do. "
       "@option size: integer; samples in the whole batch, over all ranks "
       "@option steps?: integer; last step; goes on for ever if left out "
       "@option from: integer = 1; first step; run.steps + 1 continues a run "
       "@option shuffle: boolean = true; a new order in every epoch; random windows of text "
       "@option seed?: integer; the job's seed if left out",
       call<batches>},
      {"Dataset:split(fraction: number) -> orrery.Dataset, orrery.Dataset; The first part and the "
       "rest.",
       call<split>},
      {"Dataset:shard(rank: integer, size: integer) -> Dataset; Every size-th sample, from the "
       "rank-th on.",
       call<shard>},
      {"Dataset:encode(text: string) -> HostTensor; The token ids of a text.", call<encode_text>},
      {"Dataset:decode(ids: integers) -> string; The text of a list of token ids.",
       call<decode_text>},
  };
}

}  // namespace orrery::lua
