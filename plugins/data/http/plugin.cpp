// SPDX-License-Identifier: Apache-2.0
//
// Files of servers, by http:// and https://. The one sample says where the copy is that other
// readers open.
#include <cstring>
#include <orrery/sdk/data.hpp>

#include "copy.h"

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

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "http", "0.1.0", "Copies of files of servers",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
