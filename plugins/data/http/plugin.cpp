// SPDX-License-Identifier: Apache-2.0
//
// Files of servers, by http:// and https://, in buckets of S3 and of the Hugging Face Hub. The one
// sample of a dataset says where the copy is that other readers open.
#include <cstring>
#include <orrery/sdk/data.hpp>

#include "copy.h"
#include "storage.h"

namespace data {
namespace {

class File : public orr::Dataset {
 public:
  explicit File(const std::string& url) : path_(copy_of(url)) {
    fields.push_back({"path", {static_cast<int64_t>(path_.size())}, "|u1"});
    samples = 1, slow = false;
  }
  void read(const int64_t*, int64_t n, void* const* to) const override {
    auto* out = static_cast<char*>(to[0]);
    for (int64_t k = 0; out && k < n; ++k, out += path_.size())
      std::memcpy(out, path_.data(), path_.size());
  }

 private:
  const std::string path_;
};

std::unique_ptr<orr::Dataset> open(const std::string& url, const orr::DataOptions&) {
  return std::make_unique<File>(url);
}

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* interface, uint32_t version) -> const void* {
    const std::string_view asked = interface;
    if (version != 1) return nullptr;
    if (asked == "storage") return &storage_table;
    return asked == "data" ? &orr::Reader<open>::table : nullptr;
  };
  return nullptr;
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "http", "0.2.0", "Files of servers, and copies of them", data::entry, 2,
           {{"data", 1, 1}, {"storage", 1, 1}})
