// SPDX-License-Identifier: Apache-2.0
#include "run/records.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/error.h"
#include "program/elements.h"
#include "run/run.h"
#include "run/runtime.h"

namespace orrery {
namespace {

template <class Tell>
void tell(const RecordPlace& place, Tell&& how) {
  Runtime& runtime = Runtime::get();
  if (runtime_options().plan_only || runtime.world().rank != 0) return;
  runtime.begin_records();
  const Observers::Scope scope = runtime.observe(place.run);
  how(runtime.observers());
}

orr_event_record event(int32_t kind, const RecordPlace& place) {
  orr_event_record e{};
  e.kind = kind, e.step = place.step, e.text = place.name.c_str();
  return e;
}

double element(const HostTensor& x, size_t i) {
  const auto bytes = static_cast<size_t>(orr_dtype_bytes(x.type.dtype));
  return read_element(x.type.dtype, x.data<std::byte>() + i * bytes);
}

// Images as dims say them; rows and columns of the tiles that they become.
struct Tiles {
  int64_t count, channels, height, width;
  int64_t columns() const { return std::min<int64_t>(count, 8); }
  int64_t rows() const { return (count + columns() - 1) / columns(); }
};

Tiles tiles_of(const RecordPlace& place, const Type& type) {
  Dims d = type.dims;
  if (d.size() == 2) d.insert(d.begin(), 1);
  if (d.size() == 3) d.insert(d.begin(), 1);
  const bool right =
      d.size() == 4 && (d[1] == 1 || d[1] == 3 || d[1] == 4) && d[0] * d[2] * d[3] > 0;
  if (!right)
    fail(ORR_INVALID,
         "record: '{}' is {}, which is no image: expected [H,W], [C,H,W] or [N,C,H,W] with 1, 3 or "
         "4 channels C, or as = \"histogram\"",
         place.name, to_string(type));
  if (type.dtype != ORR_U8 && !is_real(type.dtype))
    fail(ORR_INVALID, "record: the image '{}' is {}: expected u8, or real numbers from 0 to 1",
         place.name, to_string(type));
  return {d[0], d[1], d[2], d[3]};
}

// Says once of each name that an image has numbers which are not of an image.
void check_range(const RecordPlace& place, const HostTensor& x) {
  static std::set<std::string> told;
  if (x.type.dtype == ORR_U8 || world_info().rank != 0) return;
  double least = 0, most = 1;
  bool nan = false;
  for (size_t i = 0; i < static_cast<size_t>(x.type.elements()); ++i) {
    const double v = element(x, i);
    least = std::min(least, v), most = std::max(most, v), nan |= std::isnan(v);
  }
  constexpr double rounding = 1e-3;
  const bool good = least >= -rounding && most <= 1 + rounding && !nan;
  if (!good && told.insert(place.name).second)
    spdlog::warn(
        "record: the image '{}' has numbers from {} to {}{}: those below 0 are shown as 0, those "
        "above 1 as 1; scale it, or write as = \"histogram\" if it is no image",
        place.name, least, most, nan ? ", and NaN" : "");
}

uint8_t pixel(const HostTensor& x, size_t i) {
  if (x.type.dtype == ORR_U8) return x.data<uint8_t>()[i];
  const double v = element(x, i);
  return static_cast<uint8_t>(std::isnan(v) ? 0 : std::lround(255 * std::clamp(v, 0.0, 1.0)));
}

// Rows of interleaved channels, of all tiles; what is left over is 0.
std::vector<uint8_t> pixels_of(const HostTensor& x, const Tiles& t) {
  std::vector<uint8_t> all(
      static_cast<size_t>(t.rows() * t.columns() * t.height * t.width * t.channels));
  size_t i = 0;
  for (int64_t n = 0; n < t.count; ++n)
    for (int64_t c = 0; c < t.channels; ++c)
      for (int64_t y = 0; y < t.height; ++y)
        for (int64_t column = 0; column < t.width; ++column, ++i) {
          const int64_t row = n / t.columns() * t.height + y;
          const int64_t at = (row * t.columns() + n % t.columns()) * t.width + column;
          all[static_cast<size_t>(at * t.channels + c)] = pixel(x, i);
        }
  return all;
}

}  // namespace

void record_number(const RecordPlace& place, double value) {
  tell(place, [&](Observers& to) {
    orr_event_record e = event(ORR_EVENT_METRIC, place);
    e.value = value, e.detail = "script";
    to.send(e);
  });
}

void record_text(const RecordPlace& place, const std::string& given) {
  std::string text;  // of an event it ends at a NUL
  for (const char c : given) text += c ? std::string(1, c) : "\xef\xbf\xbd";
  tell(place, [&](Observers& to) {
    orr_event_record e = event(ORR_EVENT_TEXT, place);
    e.detail = text.c_str();
    to.send(e);
  });
}

void record_histogram(const RecordPlace& place, const HostTensor& x) {
  std::vector<float> values(static_cast<size_t>(x.type.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(element(x, i));
  tell(place, [&](Observers& to) {
    orr_event_record e = event(ORR_EVENT_HISTOGRAM, place);
    e.elements = values.data(), e.count = static_cast<int64_t>(values.size());
    to.send(e);
  });
}

void record_image(const RecordPlace& place, const HostTensor& x) {
  const Tiles tiles = tiles_of(place, x.type);
  check_range(place, x);
  const std::vector<uint8_t> pixels = pixels_of(x, tiles);
  tell(place, [&](Observers& to) {
    orr_event_record e = event(ORR_EVENT_IMAGE, place);
    e.pixels = pixels.data(), e.channels = static_cast<int32_t>(tiles.channels);
    e.width = static_cast<int32_t>(tiles.columns() * tiles.width);
    e.height = static_cast<int32_t>(tiles.rows() * tiles.height);
    to.send(e);
  });
}

}  // namespace orrery
