// SPDX-License-Identifier: Apache-2.0
#include "opened_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "../refuse.h"
#include "dcp_elements.h"

namespace data {
namespace {

const std::string kFacts = "orrery.";

// What a chunk and a box have in common, as runs of elements that are contiguous in both.
class Common {
 public:
  Common(const Chunk& chunk, const int64_t* offset, const int64_t* dims)
      : chunk_(chunk), offset_(offset), dims_(dims), first_(chunk.sizes.size()), size_(first_) {
    for (size_t d = 0; d < first_.size(); ++d) {
      first_[d] = std::max(chunk.offsets[d], offset[d]);
      size_[d] = std::min(chunk.offsets[d] + chunk.sizes[d], offset[d] + dims[d]) - first_[d];
    }
  }

  // Calls run(place in the chunk, place in the box, elements) for each.
  template <class Run>
  void each_run(Run&& run) const {
    if (std::ranges::any_of(size_, [](int64_t size) { return size <= 0; })) return;
    size_t outer = size_.size();
    int64_t length = 1;
    while (outer > 0) {
      const size_t d = --outer;
      length *= size_[d];
      if (size_[d] != chunk_.sizes[d] || size_[d] != dims_[d]) break;
    }
    std::vector<int64_t> index(outer);
    while (true) {
      run(place(index, chunk_.offsets.data(), chunk_.sizes.data()), place(index, offset_, dims_),
          length);
      size_t d = outer;
      while (d > 0 && ++index[d - 1] == size_[d - 1]) index[--d] = 0;
      if (d == 0) return;
    }
  }

 private:
  // Of the run's first element, in rows that begin at `offset`.
  int64_t place(const std::vector<int64_t>& index, const int64_t* offset,
                const int64_t* dims) const {
    int64_t at = 0;
    for (size_t d = 0; d < size_.size(); ++d)
      at = at * dims[d] + first_[d] - offset[d] + (d < index.size() ? index[d] : 0);
    return at;
  }

  const Chunk& chunk_;
  const int64_t *offset_, *dims_;
  std::vector<int64_t> first_, size_;
};

}  // namespace

OpenedCheckpoint::OpenedCheckpoint(const std::string& directory) : directory_(directory) {
  for (ChunkedTensor& tensor : checkpoint_tensors(directory, "")) {
    Opened opened{std::move(tensor), {}};
    for (const Chunk& chunk : opened.tensor.chunks) {
      verify_archive(*part_of(chunk));
      opened.archives.push_back(archive_of(open(chunk.file), chunk, opened.tensor));
    }
    const std::string name = opened.tensor.name;
    tensors_.emplace(name, std::move(opened));
  }
  for (const auto& [name, chunk] : checkpoint_values(directory))
    if (name.starts_with(kFacts)) read_value(name, chunk);
  for (const char* name : {"step", "seed"})
    if (!values_.contains(kFacts + name))
      refuse(directory, ": it has no '", kFacts, name,
             "', without which a run cannot go on: save {\"orrery\": {\"step\": S, \"seed\": N}} "
             "beside the tensors, or load the weights alone by model:load_weights");
}

BytesPtr OpenedCheckpoint::open(const std::string& file) {
  BytesPtr& found = files_[file];
  if (!found) found = Bytes::open(file);
  return found;
}

BytesPtr OpenedCheckpoint::part_of(const Chunk& chunk) {
  return Bytes::part(open(chunk.file), chunk.begin, chunk.bytes);
}

void OpenedCheckpoint::read_value(const std::string& name, const Chunk& chunk) {
  const BytesPtr part = part_of(chunk);
  verify_archive(*part);
  values_[name] = saved_value(part);
}

// 0 where there is none.
int64_t OpenedCheckpoint::number(const std::string& name) const {
  const auto found = values_.find(kFacts + name);
  if (found == values_.end()) return 0;
  if (const auto* number = std::get_if<int64_t>(&found->second)) return *number;
  refuse(directory_, ": '", found->first, "' is a text, expected a whole number");
}

void OpenedCheckpoint::facts(orr_run_facts* out) const {
  out->step = number("step"), out->microbatches = number("microbatches");
  out->seed = static_cast<uint64_t>(number("seed"));
  out->fast_sums = number("fast_sums") != 0;
  const auto extra = values_.find(kFacts + "extra");
  if (extra == values_.end()) return;
  const auto* text = std::get_if<std::string>(&extra->second);
  if (!text) refuse(directory_, ": '", extra->first, "' is a number, expected a text");
  out->extra = text->c_str();
}

void OpenedCheckpoint::tensors(orr_give_tensor* give, void* to) const {
  for (const auto& [name, opened] : tensors_) {
    const ChunkedTensor& tensor = opened.tensor;
    orr_tensor type{};
    type.dtype = dtype_of(tensor.elements);
    if (!type.dtype)
      refuse(directory_, ": '", name, "' has elements '", tensor.elements,
             "', which no state of a run has; save without it");
    type.rank = static_cast<int32_t>(tensor.dims.size());
    int64_t stride = 1;
    for (size_t d = tensor.dims.size(); d-- > 0; stride *= tensor.dims[d])
      type.dims[d] = tensor.dims[d], type.strides[d] = stride;
    give(to, name.c_str(), &type);
  }
}

void OpenedCheckpoint::read(const std::string& name, const int64_t* offset, const int64_t* dims,
                            void* to) const {
  const Opened& opened = tensors_.at(name);
  const auto bytes = static_cast<size_t>(opened.tensor.element_bytes);
  for (size_t i = 0; i < opened.archives.size(); ++i) {
    const Chunk& chunk = opened.tensor.chunks[i];
    const Archive& archive = opened.archives[i];
    const SavedTensor& saved = archive.tensors().at(kChunk);
    const bool in_rows = Archive::is_in_rows(saved);
    std::vector<std::byte> all;  // of one that PyTorch has saved with other strides
    Common(chunk, offset, dims).each_run([&](int64_t from, int64_t place, int64_t length) {
      std::byte* out = static_cast<std::byte*>(to) + static_cast<size_t>(place) * bytes;
      const auto first = static_cast<size_t>(from), count = static_cast<size_t>(length);
      if (in_rows) return archive.read_rows(saved, first, count, out);
      if (all.empty()) {
        size_t elements = 1;
        for (int64_t size : chunk.sizes) elements *= static_cast<size_t>(size);
        all.resize(elements * bytes);
        archive.read(saved, all.data());
      }
      std::memcpy(out, all.data() + first * bytes, count * bytes);
    });
  }
}

}  // namespace data
