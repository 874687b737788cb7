// SPDX-License-Identifier: Apache-2.0
#include "data/augment.h"

#include <cstring>

#include "data/random.h"

namespace orrery {
namespace {

enum : uint32_t { kTop = 1, kLeft, kFlip };

struct Image {
  int64_t channels, height, width;
};

// Where the cropped image begins in the given one; negative inside of the padding.
struct Window {
  int64_t top, left;
  bool flip;
};

int64_t below(int64_t limit, const Pick& pick, uint32_t purpose) {
  return static_cast<int64_t>(random_bits(pick.draw, purpose, 0, 0) % static_cast<uint64_t>(limit));
}

class Augmented : public Dataset {
 public:
  Augmented(DatasetPtr data, Augmentation how, size_t field)
      : data_(std::move(data)), how_(std::move(how)), field_(field) {
    describe_as(*data_);
    const Dims& dims = fields_[field_].sample.dims;
    from_ = to_ = {dims[0], dims[1], dims[2]};
    if (how_.crop) to_.height = to_.width = how_.crop;
    fields_[field_].sample.dims = {to_.channels, to_.height, to_.width};
    size_ = static_cast<size_t>(orr_dtype_bytes(fields_[field_].sample.dtype));
  }

  void read(std::span<const Pick> picks, std::span<std::byte* const> to) const override {
    if (!to[field_]) return data_->read(picks, to);
    const size_t whole = data_->fields()[field_].sample.bytes();
    const size_t part = fields_[field_].sample.bytes();
    std::vector<std::byte> images(whole * picks.size());
    std::vector<std::byte*> places(to.begin(), to.end());
    places[field_] = images.data();
    data_->read(picks, places);
    for (size_t i = 0; i < picks.size(); ++i) {
      change(window(picks[i]), images.data() + i * whole, to[field_] + i * part);
      if (!how_.mean.empty()) normalise(reinterpret_cast<float*>(to[field_] + i * part));
    }
  }
  bool main_thread() const override { return data_->main_thread(); }

 private:
  Window window(const Pick& pick) const {
    Window window{0, 0, how_.flip && below(2, pick, kFlip)};
    if (!how_.crop) return window;
    window.top = below(from_.height + 2 * how_.pad - to_.height + 1, pick, kTop) - how_.pad;
    window.left = below(from_.width + 2 * how_.pad - to_.width + 1, pick, kLeft) - how_.pad;
    return window;
  }

  void change(const Window& w, const std::byte* from, std::byte* to) const {
    const int64_t begin = std::max<int64_t>(0, -w.left);  // columns of the result that are not zero
    const int64_t end = std::min(to_.width, from_.width - w.left);
    std::memset(to, 0, fields_[field_].sample.bytes());
    for (int64_t row = 0; row < to_.channels * to_.height; ++row, to += size_of(to_.width)) {
      const int64_t y = row % to_.height + w.top, channel = row / to_.height;
      if (y < 0 || y >= from_.height || begin >= end) continue;
      const std::byte* line =
          from + size_of((channel * from_.height + y) * from_.width + begin + w.left);
      std::memcpy(to + size_of(begin), line, size_of(end - begin));
      if (w.flip) reverse(to);
    }
  }

  size_t size_of(int64_t elements) const { return static_cast<size_t>(elements) * size_; }

  void reverse(std::byte* line) const {
    for (int64_t a = 0, b = to_.width - 1; a < b; ++a, --b)
      std::swap_ranges(line + size_of(a), line + size_of(a + 1), line + size_of(b));
  }

  void normalise(float* image) const {
    for (size_t c = 0; c < how_.mean.size(); ++c) {
      const auto mean = static_cast<float>(how_.mean[c]), std = static_cast<float>(how_.std[c]);
      for (int64_t i = 0; i < to_.height * to_.width; ++i, ++image) *image = (*image - mean) / std;
    }
  }

  DatasetPtr data_;
  Augmentation how_;
  size_t field_, size_;
  Image from_, to_;
};

}  // namespace

DatasetPtr augment(DatasetPtr data, const Augmentation& how) {
  size_t field = 0;
  while (data->fields()[field].name != how.field) ++field;
  return std::make_shared<Augmented>(std::move(data), how, field);
}

}  // namespace orrery
