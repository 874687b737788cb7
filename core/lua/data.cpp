// SPDX-License-Identifier: Apache-2.0
//
// Datasets in Lua: made from text and arrays, cut, sharded, and asked for batches.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/text_file.h"
#include "lua/api.h"
#include "lua/dataset.h"
#include "lua/host_tensor.h"
#include "lua/objects.h"
#include "lua/script.h"
#include "run/runtime.h"

namespace fs = std::filesystem;

namespace orrery::lua {
namespace {

std::string read_file(const std::string& path) {
  const std::string text = read_text(path, path, ORR_INVALID);
  if (text.empty()) fail(ORR_INVALID, "{}: the file is empty", path);
  return text;
}

int push_dataset(lua_State* L, Dataset data) {
  push(L, DatasetRef{std::make_shared<const Dataset>(std::move(data))});
  return 1;
}

// Argument 1 is a path, a list of paths (joined in order), or with options.string the text itself.
int text(lua_State* L) {
  std::string all, name;
  if (option_bool(L, 2, "string")) {
    all = to_text(L, 1, "text");
    name = "text";
  } else if (lua_istable(L, 1)) {
    for (lua_Integer i = 1; lua_rawgeti(L, 1, i) != LUA_TNIL; ++i) {
      all += read_file(to_text(L, -1, "path"));
      lua_pop(L, 1);
    }
    name = fmt::format("{} files", lua_rawlen(L, 1));
  } else {
    name = to_text(L, 1, "path");
    all = read_file(name);
  }
  return push_dataset(
      L, text_dataset(all, option_text(L, 2, "tokens"), option_int(L, 2, "ctx"), name));
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

int arrays(lua_State* L) {
  Dataset data;
  std::string first;
  for (const std::string& name : sorted_keys(L, 1)) {
    lua_getfield(L, 1, name.c_str());
    const bool path = lua_type(L, -1) == LUA_TSTRING;
    const HostTensor tensor = path ? load_npy(to_text(L, -1, name)) : host_at(L, lua_gettop(L));
    lua_pop(L, 1);
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
  return push_dataset(L, std::move(data));
}

const Dataset& self_at(lua_State* L) { return *check<DatasetRef>(L, 1).data; }

BatchOrder order_at(lua_State* L, int index, int64_t step) {
  BatchOrder order;
  order.step = step;
  order.size = option_int(L, index, "size");
  order.shuffle = option_bool(L, index, "shuffle");
  lua_getfield(L, index, "seed");
  order.seed =
      lua_isnil(L, -1) ? runtime_options().seed : static_cast<uint64_t>(lua_tointeger(L, -1));
  lua_pop(L, 1);
  if (order.size < 1 || order.step < 1) {
    fail(ORR_INVALID, "batches: step {} and size {}: both are at least 1", order.step, order.size);
  }
  return order;
}

int push_batch(lua_State* L, const DatasetRef& self, const BatchOrder& order) {
  lua_newtable(L);
  for (auto& [name, field] : make_batch(self.data, order)) {
    push(L, Field{std::move(field)});
    lua_setfield(L, -2, name.c_str());
  }
  return 1;
}

int batch(lua_State* L) {
  return push_batch(L, check<DatasetRef>(L, 1), order_at(L, 3, lua_tointeger(L, 2)));
}

// upvalues: dataset, options, next step, last step
int next_batch(lua_State* L) {
  return guard(L, [](lua_State* state) {
    const lua_Integer step = lua_tointeger(state, lua_upvalueindex(3));
    const lua_Integer last = lua_tointeger(state, lua_upvalueindex(4));
    if (step > last) return 0;
    lua_pushinteger(state, step + 1);
    lua_replace(state, lua_upvalueindex(3));
    lua_pushinteger(state, step);
    const BatchOrder order = order_at(state, lua_upvalueindex(2), step);
    return 1 + push_batch(state, check<DatasetRef>(state, lua_upvalueindex(1)), order);
  });
}

int batches(lua_State* L) {
  const int64_t first = option_int(L, 2, "from");
  const bool ends = lua_getfield(L, 2, "steps") != LUA_TNIL;
  const int64_t last = ends ? lua_tointeger(L, -1) : std::numeric_limits<int64_t>::max();
  order_at(L, 2, first);
  Runtime::get().set_planned_steps(ends ? last : 0);
  lua_settop(L, 2);
  lua_pushinteger(L, first);
  lua_pushinteger(L, last);
  lua_pushcclosure(L, next_batch, 4);
  return 1;
}

int split(lua_State* L) {
  const Dataset& self = self_at(L);
  const double fraction = lua_tonumber(L, 2);
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
  return push_dataset(L, std::move(head)) + push_dataset(L, std::move(tail));
}

int shard(lua_State* L) {
  Dataset part = self_at(L);
  const int64_t rank = lua_tointeger(L, 2), size = lua_tointeger(L, 3);
  if (size < 1 || rank < 0 || rank >= size)
    fail(ORR_INVALID, "shard: {} of {}: ranks are 0..size-1", rank, size);
  part.shard = part.shard + rank * part.shards;
  part.shards *= size;
  if (part.items() < 1)
    fail(ORR_INVALID, "shard: {} samples do not fill {} shards", part.samples, size);
  return push_dataset(L, std::move(part));
}

const Dataset& text_at(lua_State* L) {
  const Dataset& self = self_at(L);
  if (!self.symbols) fail(ORR_INVALID, "this dataset holds arrays, not text");
  return self;
}

int encode_text(lua_State* L) {
  const std::vector<int32_t> ids = encode(text_at(L), to_text(L, 2, "text"));
  HostTensor tensor = HostTensor::make({ORR_I32, {static_cast<int64_t>(ids.size())}});
  std::copy(ids.begin(), ids.end(), tensor.data<int32_t>());
  push(L, Host{tensor});
  return 1;
}

int decode_text(lua_State* L) {
  push_text(L, decode(text_at(L), to_integers(L, 2, "token")));
  return 1;
}

bool dataset_properties(lua_State* L, const std::string& key) {
  const Dataset& self = self_at(L);
  if (key == "samples") return lua_pushinteger(L, self.items()), true;
  if (key == "vocab" && self.symbols) {
    return lua_pushinteger(L, static_cast<lua_Integer>(self.symbols->size())), true;
  }
  return false;
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

int push_sorted(lua_State* L, std::vector<std::string> found) {
  std::sort(found.begin(), found.end());
  lua_createtable(L, static_cast<int>(found.size()), 0);
  for (size_t i = 0; i < found.size(); ++i) {
    push_text(L, found[i]);
    lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
  }
  return 1;
}

int files(lua_State* L) {
  std::vector<std::string> endings, found;
  for (lua_Integer i = 1; lua_rawgeti(L, 2, i) != LUA_TNIL; ++i) {
    endings.push_back(to_text(L, -1, "ending"));
    lua_pop(L, 1);
  }
  list_files(to_text(L, 1, "directory"), endings, found);
  return push_sorted(L, std::move(found));
}

// In a source tree all of it, else what is installed.
int sources(lua_State* L) {
  const fs::path library = lua_library(), root = library.parent_path();
  const std::vector<std::string> endings = {".cpp", ".h", ".hpp", ".lua", ".md"};
  std::vector<std::string> found;
  if (fs::exists(root / "meson.build")) {
    for (const char* room : {"core", "kernels", "plugins", "scripts", "examples"}) {
      list_files((root / room).string(), endings, found);
    }
    if (fs::exists(root / "README.md")) found.push_back((root / "README.md").string());
  } else {
    list_files(library.string(), endings, found);
  }
  return push_sorted(L, std::move(found));
}

}  // namespace

std::vector<Api> data_api() {
  const Arg self{"self", "Dataset"};
  const char* d = "orrery.Dataset";
  return {
      {"data",
       "text",
       d,
       "Text as fields x and y (x one token later); a path, a list of paths or text.",
       text,
       {{"source", "any"}, {"options", "options"}},
       {{"ctx", "integer", nullptr, "tokens in a sample"},
        {"tokens", "string", "'chars'", "'chars' or 'bytes'"},
        {"string", "boolean", "false", "source is the text itself"}}},
      {"data",
       "arrays",
       d,
       "Fields from HostTensors, lists or .npy paths; the first dim counts the samples.",
       arrays,
       {{"fields", "table"}},
       {}},
      {"data",
       "files",
       "string[]",
       "Files below a directory with these endings, sorted.",
       files,
       {{"directory", "string"}, {"endings", "table"}},
       {}},
      {"orrery",
       "sources",
       "string[]",
       "Orrery's own sources and documents, as text to train on.",
       sources,
       {},
       {}},
      {"Dataset",
       "batch",
       "table",
       "The batch of a step: lazy fields, each rank loads its rows.",
       batch,
       {self, {"step", "integer"}, {"options", "options"}},
       {{"size", "integer", nullptr, "samples in the whole batch, over all ranks"},
        {"shuffle", "boolean", "true", "a new order in every epoch; random windows of text"},
        {"seed", "integer", "nil", "the job's seed if left out"}}},
      {"Dataset",
       "batches",
       "fun(): integer, table",
       "for step, batch in data:batches{size = 32} do.",
       batches,
       {self, {"options", "options"}},
       {{"size", "integer", nullptr, "samples in the whole batch, over all ranks"},
        {"steps", "integer", "nil", "last step; goes on for ever if left out"},
        {"from", "integer", "1", "first step; run.steps + 1 continues a run"},
        {"shuffle", "boolean", "true", "a new order in every epoch; random windows of text"},
        {"seed", "integer", "nil", "the job's seed if left out"}}},
      {"Dataset",
       "split",
       "orrery.Dataset, orrery.Dataset",
       "The first part and the rest.",
       split,
       {self, {"fraction", "number"}},
       {}},
      {"Dataset",
       "shard",
       d,
       "Every size-th sample, from the rank-th on.",
       shard,
       {self, {"rank", "integer"}, {"size", "integer"}},
       {}},
      {"Dataset",
       "encode",
       "orrery.HostTensor",
       "The token ids of a text.",
       encode_text,
       {self, {"text", "string"}},
       {}},
      {"Dataset",
       "decode",
       "string",
       "The text of a list of token ids.",
       decode_text,
       {self, {"ids", "integers"}},
       {}},
  };
}

void define_data_class(lua_State* L) {
  define_class<DatasetRef>(L, {"Dataset"}, dataset_properties, {"samples", "vocab"});
  lua_pop(L, 1);
}

}  // namespace orrery::lua
