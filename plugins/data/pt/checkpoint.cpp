// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "../bytes.h"
#include "../refuse.h"
#include "elements.h"
#include "pickle.h"
#include "tensors.h"

namespace data {
namespace {

const std::string kMetadata = "torch.distributed.checkpoint.metadata.";
const std::string kStorageInfo = "torch.distributed.checkpoint.filesystem._StorageInfo";
const std::string kShardedTensor =
    "torch.distributed._shard.sharded_tensor.metadata.";  // before 2.3

PickleRules rules_of(const std::string& label) {
  PickleRules rules{
      label,
      "",
      "; the checkpoint is altered, or of another version: restore it, or make one file of it by "
      "torch.distributed.checkpoint.format_utils.dcp_to_torch_save",
      "tensors and numbers of a state_dict are; save others apart",
      {"collections.OrderedDict", "torch.Size", "torch.serialization._get_layout",
       kMetadata + "_MEM_FORMAT_ENCODING", kShardedTensor + "MEM_FORMAT_ENCODING",
       "pathlib.PosixPath", "pathlib._local.PosixPath"},
      {kStorageInfo, kShardedTensor + "TensorProperties"},
      {}};
  for (const char* name :
       {"Metadata", "TensorStorageMetadata", "TensorProperties", "ChunkStorageMetadata",
        "BytesStorageMetadata", "MetadataIndex", "StorageMeta"})
    rules.classes.insert(kMetadata + name);
  for (const TorchElements& each : kTorchElements) rules.constants.insert(each.dtype);
  return rules;
}

using Place = std::pair<std::string, std::vector<int64_t>>;  // of a chunk: its tensor, and offsets

class Metadata {
 public:
  Metadata(const std::string& pickle, const std::string& directory)
      : directory_(directory),
        label_(directory + "/.metadata"),
        rules_(rules_of(label_)),
        pickle_(pickle, rules_) {
    if (const Value* version = find(root(), "version"))
      if (const auto* text = std::get_if<std::string>(&version->is))
        if (!text->starts_with("1."))
          refuse(label_, ": version ", *text, " of checkpoints; 1 is read");
    add_places(dictionary(root(), "storage_data"));
  }

  std::vector<ChunkedTensor> tensors(const std::string& only) {
    std::vector<ChunkedTensor> found;
    std::set<std::string> names;
    for (const auto& [key, value] : dictionary(root(), "state_dict_metadata")) {
      const auto& name = pickle_.as<std::string>(*key, "a tensor's name");
      if (!names.insert(name).second || !is_printable(name))
        pickle_.damaged("a name comes twice, or holds control characters");
      const auto& kind = pickle_.as<Object>(*value, "a tensor's metadata").kind;
      if (kind == kMetadata + "BytesStorageMetadata" || (!only.empty() && name != only)) continue;
      found.push_back(tensor(name, object(*value, kMetadata + "TensorStorageMetadata")));
    }
    return found;
  }
  ChunksByName values() {
    ChunksByName found;
    for (const auto& [name, info] : values_) found.emplace(name, placed({}, name, *info));
    return found;
  }
  std::set<std::string> files() const {
    std::set<std::string> found;
    for (const auto& [place, info] : places_) found.insert(path_of(place.first, *info));
    for (const auto& [name, info] : values_) found.insert(path_of(name, *info));
    return found;
  }

 private:
  using Items = std::vector<std::pair<Value*, Value*>>;

  // -- attributes of objects
  const Object& root() const { return object(pickle_.root(), kMetadata + "Metadata"); }
  const Object& object(const Value& value, const std::string& kind) const {
    const Object& found = pickle_.as<Object>(value, kind.c_str());
    if (found.kind != kind) pickle_.damaged("expected " + kind);
    return found;
  }
  // Null if there is none.
  const Value* find(const Object& object, const std::string& name) const {
    if (!object.attributes) return nullptr;
    for (const auto& [key, value] : pickle_.as<Dictionary>(*object.attributes, "attributes").items)
      if (pickle_.as<std::string>(*key, "an attribute's name") == name) return value;
    return nullptr;
  }
  const Value& get(const Object& object, const std::string& name) const {
    const Value* found = find(object, name);
    if (!found) pickle_.damaged(object.kind + " without '" + name + "'");
    return *found;
  }
  const Items& dictionary(const Object& object, const std::string& name) const {
    return pickle_.as<Dictionary>(get(object, name), "a dictionary").items;
  }
  std::vector<int64_t> numbers(const Object& object, const std::string& name) const {
    std::vector<int64_t> found;
    for (const Value* each : pickle_.as<List>(get(object, name), "a size").items) {
      found.push_back(pickle_.as<int64_t>(*each, "a number"));
      if (found.back() < 0) pickle_.damaged("a size or an offset below 0");
    }
    if (found.size() > ORR_MAX_RANK)
      refuse(label_, ": a tensor of ", found.size(), " dims, at most ", ORR_MAX_RANK, " are read");
    return found;
  }

  // -- where chunks are
  void add_places(const Items& places) {
    for (const auto& [key, value] : places) {
      const Object& index = object(*key, kMetadata + "MetadataIndex");
      const Object& info = object(*value, kStorageInfo);
      const auto& name = pickle_.as<std::string>(get(index, "fqn"), "a name");
      const Value* offset = find(index, "offset");
      if (!offset || std::holds_alternative<Nothing>(offset->is)) {  // of no tensor
        values_[name] = &info;
        continue;
      }
      if (!places_.emplace(Place{name, numbers(index, "offset")}, &info).second)
        pickle_.damaged("a chunk is in two places");
    }
  }
  // The path of a file in the directory.
  const std::string& path_of(const std::string& name, const Object& info) const {
    const auto& path = pickle_.as<std::string>(get(info, "relative_path"), "a path");
    const std::filesystem::path parts(path);
    bool is_inside = !path.empty() && is_printable(path) && parts.has_filename();
    for (const auto& part : parts) is_inside &= part != ".." && part != "." && part != "/";
    if (!is_inside)
      pickle_.damaged("'" + name + "' is in '" + path + "', which is no file of the directory");
    return path;
  }
  Chunk chunk(const std::string& name, const Object& metadata) {
    Chunk chunk{numbers(metadata, "offsets"), numbers(metadata, "sizes"), "", 0, 0};
    const auto found = places_.find({name, chunk.offsets});
    if (found == places_.end()) pickle_.damaged("a chunk of '" + name + "' is in no file");
    return placed(std::move(chunk), name, *found->second);
  }
  Chunk placed(Chunk chunk, const std::string& name, const Object& info) {
    const Value* changed = find(info, "transform_descriptors");
    if (changed && !std::holds_alternative<Nothing>(changed->is))
      refuse(label_, ": '", name, "' is packed; save the checkpoint without extensions");
    chunk.file = directory_ + "/" + path_of(name, info);
    const auto begin = pickle_.as<int64_t>(get(info, "offset"), "a number");
    const auto bytes = pickle_.as<int64_t>(get(info, "length"), "a number");
    const auto size = static_cast<int64_t>(size_of(chunk.file));
    if (begin < 0 || bytes < 0 || begin > size || bytes > size - begin)
      refuse(chunk.file, ": has ", size, " bytes, '", name, "' is ", bytes, " from ", begin,
             " on, as .metadata says; one of them is cut short or altered: restore it");
    chunk.begin = static_cast<uint64_t>(begin), chunk.bytes = static_cast<uint64_t>(bytes);
    return chunk;
  }
  uint64_t size_of(const std::string& file) {
    const auto [found, is_new] = sizes_.try_emplace(file, 0);
    if (is_new) found->second = Bytes::open(file)->size();
    return found->second;
  }

  // -- tensors
  const TorchElements& elements(const Object& metadata) const {
    const auto& properties = pickle_.as<Object>(get(metadata, "properties"), "properties");
    if (!properties.attributes) pickle_.damaged("a tensor without a dtype");
    const auto& items = pickle_.as<List>(*properties.attributes, "properties").items;
    if (items.empty()) pickle_.damaged("a tensor without a dtype");
    const auto& dtype = pickle_.as<Name>(*items[0], "a dtype").text;
    for (const TorchElements& each : kTorchElements)
      if (dtype == each.dtype) return each;
    pickle_.damaged("expected a dtype");
  }
  ChunkedTensor tensor(const std::string& name, const Object& metadata) {
    const TorchElements& kind = elements(metadata);
    ChunkedTensor tensor{name, kind.name, kind.bytes, numbers(metadata, "size"), {}};
    for (const Value* each : pickle_.as<List>(get(metadata, "chunks"), "chunks").items) {
      const Object& of = object(*each, kMetadata + "ChunkStorageMetadata");
      if (std::ranges::count(numbers(of, "sizes"), 0) == 0)
        tensor.chunks.push_back(chunk(name, of));
    }
    check_whole(tensor);
    return tensor;
  }
  static bool meet(const Chunk& a, const Chunk& b) {
    for (size_t d = 0; d < a.sizes.size(); ++d)
      if (a.offsets[d] >= b.offsets[d] + b.sizes[d] || b.offsets[d] >= a.offsets[d] + a.sizes[d])
        return false;
    return true;
  }
  // Throws unless each element is in one chunk, which is large enough.
  void check_whole(ChunkedTensor& tensor) const {
    int64_t count = tensor.element_bytes, held = 0;
    for (int64_t dim : tensor.dims)
      if (__builtin_mul_overflow(count, dim, &count))
        pickle_.damaged("'" + tensor.name + "' is larger than a file can be");
    for (const Chunk& chunk : tensor.chunks) {
      int64_t bytes = tensor.element_bytes;
      bool is_wrong =
          chunk.sizes.size() != tensor.dims.size() || chunk.offsets.size() != tensor.dims.size();
      for (size_t d = 0; !is_wrong && d < tensor.dims.size(); ++d) {
        is_wrong =
            chunk.sizes[d] > tensor.dims[d] || chunk.offsets[d] > tensor.dims[d] - chunk.sizes[d];
        bytes *= chunk.sizes[d];
      }
      if (is_wrong || static_cast<uint64_t>(bytes) > chunk.bytes)
        pickle_.damaged("a chunk of '" + tensor.name + "' is not within it");
      held += bytes;
    }
    if (held != count || have_common(tensor.chunks))
      pickle_.damaged("the chunks of '" + tensor.name + "' are not all of it, each element once");
  }
  // Sorted, a chunk can meet those alone that begin before its end.
  static bool have_common(std::vector<Chunk>& chunks) {
    std::ranges::sort(chunks, {}, &Chunk::offsets);
    for (size_t i = 0; i < chunks.size(); ++i)
      for (size_t k = i + 1; k < chunks.size(); ++k) {
        const Chunk &a = chunks[i], &b = chunks[k];
        if (meet(a, b)) return true;
        if (b.offsets[0] >= a.offsets[0] + a.sizes[0]) break;
      }
    return false;
  }

  const std::string directory_, label_;
  const PickleRules rules_;
  const Pickle pickle_;
  std::map<Place, const Object*> places_;
  std::map<std::string, const Object*> values_;  // that are no tensors
  std::map<std::string, uint64_t> sizes_;        // of files
};

}  // namespace

bool is_checkpoint(const std::string& directory) {
  return std::filesystem::is_directory(directory);
}

static std::string pickle_in(const std::string& directory) {
  const auto bytes = Bytes::open(directory + "/.metadata")->all();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<ChunkedTensor> checkpoint_tensors(const std::string& directory,
                                              const std::string& only) {
  return Metadata(pickle_in(directory), directory).tensors(only);
}

ChunksByName checkpoint_values(const std::string& directory) {
  return Metadata(pickle_in(directory), directory).values();
}

std::set<std::string> checkpoint_files(const std::string& directory) {
  return Metadata(pickle_in(directory), directory).files();
}

}  // namespace data
