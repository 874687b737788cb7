// SPDX-License-Identifier: Apache-2.0
//
// Tensors that PyTorch has saved: files of torch.save (.pt, .pth, .bin) since 1.6, and directories
// of torch.distributed.checkpoint. All their tensors are the fields of one sample, by their places;
// with the option `tensor` that one alone.
#include <orrery/sdk/data.hpp>

#include "../refuse.h"
#include "archive.h"
#include "checkpoint.h"
#include "dcp.h"

namespace data {
namespace {

class Tensors : public orr::Dataset {
 public:
  void read(const int64_t*, int64_t n, void* const* to) const override {
    for (size_t i = 0; i < fields.size(); ++i) {
      auto* out = static_cast<std::byte*>(to[i]);
      for (int64_t k = 0; out && k < n; ++k) out = read_one(i, out);
    }
  }

 protected:
  void add(const std::string& path, const std::string& name, const std::vector<int64_t>& dims,
           const std::string& elements) {
    if (dims.size() > ORR_MAX_RANK)
      refuse(path, ": the tensor '", name, "' has ", dims.size(), " dims, at most ", ORR_MAX_RANK,
             " are read");
    fields.push_back({name, dims, elements});
    samples = 1;
  }
  void check_some(const std::string& path, const std::string& only) const {
    if (fields.empty()) refuse(path, ": it has no tensor", only.empty() ? "" : " '" + only + "'");
  }

 private:
  // Returns where the next one goes.
  virtual std::byte* read_one(size_t field, std::byte* to) const = 0;
};

class File : public Tensors {
 public:
  File(const std::string& path, const std::string& only) : archive_(Bytes::open(path), only) {
    for (const auto& [name, saved] : archive_.tensors()) {
      add(path, name, saved.tensor.dims, saved.tensor.elements);
      tensors_.push_back(&saved);
    }
    check_some(path, only);
  }

 private:
  std::byte* read_one(size_t field, std::byte* to) const override {
    return archive_.read(*tensors_[field], to);
  }

  const Archive archive_;
  std::vector<const SavedTensor*> tensors_;  // of the fields
};

class Checkpoint : public Tensors {
 public:
  Checkpoint(const std::string& path, const std::string& only)
      : tensors_(checkpoint_tensors(path, only)) {
    for (const ChunkedTensor& each : tensors_) add(path, each.name, each.dims, each.elements);
    check_some(path, only);
  }

 private:
  std::byte* read_one(size_t field, std::byte* to) const override {
    return tensors_[field].read(to);
  }

  const std::vector<ChunkedTensor> tensors_;  // of the fields
};

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const std::string only = options.text("tensor", "");
  if (is_checkpoint(path)) return std::make_unique<Checkpoint>(path, only);
  return std::make_unique<File>(path, only);
}

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* interface, uint32_t version) -> const void* {
    const std::string_view asked = interface;
    if (version != 1) return nullptr;
    if (asked == "checkpoint") return &dcp_table;
    return asked == "data" ? &orr::Reader<open>::table : nullptr;
  };
  return nullptr;
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "pt", "0.2.0", "Tensors and checkpoints of PyTorch", data::entry, 2,
           {{"data", 1, 1}, {"checkpoint", 1, 1}})
