// SPDX-License-Identifier: Apache-2.0
#include "metadata_writer.h"

#include <cstring>

#include "pickle_writer.h"

namespace data {
namespace {

const std::string kModule = "torch.distributed.checkpoint.metadata";

// Attributes are written between `begin_object` and `end_object`, name and value in turn.
void begin_object(PickleWriter& pickle, const std::string& module, const std::string& name) {
  pickle.name(module, name);
  pickle.object();
  pickle.empty_dictionary();
  pickle.begin();
}
void end_object(PickleWriter& pickle) {
  pickle.set_items();
  pickle.build();
}

// Five values, as all releases read them.
void put_properties(PickleWriter& pickle, const std::string& dtype) {
  pickle.name(kModule, "TensorProperties");
  pickle.object();
  pickle.begin();
  pickle.name("torch", dtype.substr(std::strlen("torch.")));
  pickle.name("torch.serialization", "_get_layout");
  pickle.begin();
  pickle.text("torch.strided");
  pickle.tuple();
  pickle.call();
  pickle.no();  // no gradient is wanted
  pickle.name(kModule, "_MEM_FORMAT_ENCODING");
  pickle.numbers({0});  // contiguous
  pickle.call();
  pickle.no();  // not pinned
  pickle.tuple();
  pickle.build();
}

void put_tensor(PickleWriter& pickle, const WrittenTensor& tensor) {
  begin_object(pickle, kModule, "TensorStorageMetadata");
  pickle.text("properties");
  put_properties(pickle, tensor.dtype);
  pickle.text("size");
  pickle.size(tensor.dims);
  pickle.text("chunks");
  pickle.empty_list();
  for (const WrittenChunk& chunk : tensor.chunks) {
    begin_object(pickle, kModule, "ChunkStorageMetadata");
    pickle.text("offsets");
    pickle.size(chunk.offsets);
    pickle.text("sizes");
    pickle.size(chunk.sizes);
    end_object(pickle);
    pickle.append();
  }
  end_object(pickle);
}

// A key and a value of storage_data; `offset`: of a chunk, else null.
void put_place(PickleWriter& pickle, const std::string& name, const std::vector<int64_t>* offset,
               const WrittenPlace& place) {
  begin_object(pickle, kModule, "MetadataIndex");
  pickle.text("fqn");
  pickle.text(name);
  pickle.text("index");
  pickle.none();
  if (offset) {
    pickle.text("offset");
    pickle.size(*offset);
  }
  end_object(pickle);
  begin_object(pickle, "torch.distributed.checkpoint.filesystem", "_StorageInfo");
  pickle.text("relative_path");
  pickle.text(place.path);
  pickle.text("offset");
  pickle.number(static_cast<int64_t>(place.begin));
  pickle.text("length");
  pickle.number(static_cast<int64_t>(place.bytes));
  end_object(pickle);
}

std::string name_of(const WrittenValue& value) { return value.outer + "." + value.inner; }

}  // namespace

std::string metadata_of(const std::map<std::string, WrittenTensor>& tensors,
                        const std::vector<WrittenValue>& values) {
  PickleWriter pickle;
  begin_object(pickle, kModule, "Metadata");
  pickle.text("state_dict_metadata");
  pickle.empty_dictionary();
  pickle.begin();
  for (auto& [name, tensor] : tensors) pickle.text(name), put_tensor(pickle, tensor);
  for (const WrittenValue& value : values) {
    pickle.text(name_of(value));
    pickle.name(kModule, "BytesStorageMetadata");
    pickle.object();
  }
  pickle.set_items();
  // The keys of the dictionaries that lead to each.
  pickle.text("planner_data");
  pickle.empty_dictionary();
  pickle.begin();
  for (auto& [name, tensor] : tensors) {
    pickle.text(name);
    pickle.begin();
    pickle.text(name);
    pickle.tuple();
  }
  for (const WrittenValue& value : values) {
    pickle.text(name_of(value));
    pickle.begin();
    pickle.text(value.outer);
    pickle.text(value.inner);
    pickle.tuple();
  }
  pickle.set_items();
  pickle.text("storage_data");
  pickle.empty_dictionary();
  pickle.begin();
  for (auto& [name, tensor] : tensors)
    for (const WrittenChunk& chunk : tensor.chunks)
      put_place(pickle, name, &chunk.offsets, chunk.place);
  for (const WrittenValue& value : values) put_place(pickle, name_of(value), nullptr, value.place);
  pickle.set_items();
  pickle.text("storage_meta");
  pickle.none();
  pickle.text("version");
  pickle.text("1.0.0");
  end_object(pickle);
  return pickle.bytes();
}

}  // namespace data
