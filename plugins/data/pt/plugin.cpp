// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save (.pt, .pth, .bin) since PyTorch 1.6. All their tensors are the fields of one
// sample, by their places; with the option `tensor` that one alone.
#include <algorithm>
#include <cstring>
#include <orrery/sdk/data.hpp>

#include "../refuse.h"
#include "pickle.h"
#include "zip.h"

namespace data {
namespace {

struct Placed {
  PickledTensor tensor;
  uint64_t begin;  // of its first element in the file
};

// Throws unless all elements are in their storage.
Placed placed(const PickledTensor& tensor, const std::string& name, const ZipEntry& storage,
              const std::string& label) {
  int64_t last = tensor.offset, count = 1;
  bool is_wrong = tensor.offset < 0;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    int64_t more = 0;
    is_wrong |= tensor.dims[d] < 0 || tensor.steps[d] < 0;
    is_wrong |= __builtin_mul_overflow(count, tensor.dims[d], &count);
    is_wrong |= __builtin_mul_overflow(tensor.dims[d] - 1, tensor.steps[d], &more);
    is_wrong |= __builtin_add_overflow(last, more, &last);
  }
  const auto most = static_cast<int64_t>(storage.bytes) / tensor.element_bytes;
  if (is_wrong || (count > 0 && last >= most))
    refuse(label, ": the tensor '", name, "' is not within its ", storage.bytes,
           " bytes; the file is altered: restore it");
  return {tensor, storage.offset + static_cast<uint64_t>(tensor.offset * tensor.element_bytes)};
}

bool is_in_rows(const PickledTensor& tensor) {
  int64_t step = 1;
  for (size_t d = tensor.dims.size(); d-- > 0; step *= tensor.dims[d])
    if (tensor.dims[d] != 1 && tensor.steps[d] != step) return false;
  return true;
}

class Pt : public orr::Dataset {
 public:
  Pt(const std::string& path, const std::string& only) : file_(Bytes::open(path)) {
    const auto entries = zip_entries(*file_);
    const std::string root = root_of(entries);
    if (const auto order = entries.find(root + "byteorder"); order != entries.end())
      if (text_of(order->second) != "little")
        refuse(path, ": its numbers are big-endian; save it on another machine");
    for (const auto& [name, tensor] :
         pickled_tensors(text_of(entries.at(root + "data.pkl")), path)) {
      if (!only.empty() && name != only) continue;
      const auto storage = entries.find(root + "data/" + tensor.storage);
      if (storage == entries.end())
        refuse(path, ": the data of the tensor '", name,
               "' is missing; the file is altered: restore it");
      if (tensor.dims.size() > ORR_MAX_RANK)
        refuse(path, ": the tensor '", name, "' has ", tensor.dims.size(), " dims, at most ",
               ORR_MAX_RANK, " are read");
      tensors_.push_back(placed(tensor, name, storage->second, path));
      fields.push_back({name, tensor.dims, tensor.elements});
    }
    if (tensors_.empty()) refuse(path, ": it has no tensor", only.empty() ? "" : " '" + only + "'");
    samples = 1;
  }

  void read(const int64_t*, int64_t n, void* const* to) const override {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!to[i]) continue;
      auto* out = static_cast<std::byte*>(to[i]);
      for (int64_t k = 0; k < n; ++k) out = read_one(tensors_[i], out);
    }
  }

 private:
  // What the names of entries begin with: that of the archive.
  std::string root_of(const std::map<std::string, ZipEntry>& entries) const {
    for (const auto& [name, entry] : entries)
      if (name.ends_with("/data.pkl") && name.find('/') == name.size() - 9)
        return name.substr(0, name.size() - 8);
    refuse(file_->label(), ": a zip archive without data.pkl, which torch.save writes");
  }
  std::string text_of(const ZipEntry& entry) const {
    check_memory(entry.bytes, file_->label());
    std::string text(static_cast<size_t>(entry.bytes), '\0');
    file_->read(text.data(), text.size(), entry.offset);
    return text;
  }

  // Returns where the next one goes.
  std::byte* read_one(const Placed& placed, std::byte* to) const {
    const PickledTensor& tensor = placed.tensor;
    const auto size = static_cast<size_t>(tensor.element_bytes);
    size_t count = 1, span = 1;
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      count *= static_cast<size_t>(tensor.dims[d]);
      span += static_cast<size_t>((tensor.dims[d] - 1) * tensor.steps[d]);
    }
    if (count == 0) return to;
    if (is_in_rows(tensor)) {
      file_->read(to, count * size, placed.begin);
      return to + count * size;
    }
    std::vector<std::byte> all(span * size);
    file_->read(all.data(), all.size(), placed.begin);
    std::vector<int64_t> index(tensor.dims.size());
    for (size_t from = 0; count > 0; --count, to += size) {
      std::memcpy(to, all.data() + from * size, size);
      for (size_t d = index.size(); d-- > 0;) {
        from += static_cast<size_t>(tensor.steps[d]);
        if (++index[d] < tensor.dims[d]) break;
        from -= static_cast<size_t>(tensor.steps[d] * tensor.dims[d]);
        index[d] = 0;
      }
    }
    return to;
  }

  BytesPtr file_;
  std::vector<Placed> tensors_;  // of the fields
};

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  return std::make_unique<Pt>(path, options.text("tensor", ""));
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "pt", "0.1.0", "Tensors that torch.save has saved",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
