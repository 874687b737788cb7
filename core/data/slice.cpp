// SPDX-License-Identifier: Apache-2.0
#include "data/slice.h"

namespace orrery {
namespace {

class Slice : public Dataset {
 public:
  Slice(DatasetPtr data, int64_t begin, int64_t count) : data_(std::move(data)), begin_(begin) {
    describe_as(*data_);
    samples_ = count;
  }
  void read(std::span<const Pick> picks, std::span<std::byte* const> to) const override {
    std::vector<Pick> moved(picks.begin(), picks.end());
    for (Pick& pick : moved) pick.sample += begin_;
    data_->read(moved, to);
  }
  bool slow() const override { return data_->slow(); }
  bool main_thread() const override { return data_->main_thread(); }

 private:
  DatasetPtr data_;
  int64_t begin_;
};

}  // namespace

DatasetPtr slice(DatasetPtr data, int64_t begin, int64_t count) {
  return std::make_shared<Slice>(std::move(data), begin, count);
}

}  // namespace orrery
