// SPDX-License-Identifier: Apache-2.0
#include "data/slice.h"

#include <utility>

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

class Chosen : public Dataset {
 public:
  Chosen(DatasetPtr data, std::vector<int64_t> chosen)
      : data_(std::move(data)), chosen_(std::move(chosen)) {
    describe_as(*data_);
    samples_ = static_cast<int64_t>(chosen_.size()), window_ = 0;
  }
  void read(std::span<const Pick> picks, std::span<std::byte* const> to) const override {
    std::vector<Pick> moved(picks.begin(), picks.end());
    for (Pick& pick : moved) pick.sample = chosen_[static_cast<size_t>(pick.sample)];
    data_->read(moved, to);
  }
  bool slow() const override { return data_->slow(); }
  bool main_thread() const override { return data_->main_thread(); }

 private:
  DatasetPtr data_;
  std::vector<int64_t> chosen_;
};

}  // namespace

DatasetPtr slice(DatasetPtr data, int64_t begin, int64_t count) {
  return std::make_shared<Slice>(std::move(data), begin, count);
}

DatasetPtr chosen(DatasetPtr data, std::vector<int64_t> samples) {
  return std::make_shared<Chosen>(std::move(data), std::move(samples));
}

}  // namespace orrery
