// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernel/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace kernel_suite {
namespace {

constexpr uint64_t kGuard = 256;

float f16_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double m = exponent == 31 ? (mantissa ? NAN : HUGE_VAL)
             : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                            : std::ldexp(mantissa, -24);
  return float(bits & 0x8000 ? -m : m);
}

float bf16_value(uint16_t bits) {
  uint32_t u = uint32_t(bits) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

// What each pattern of 16 bits stands for.
const std::vector<float>& f16_values() {
  static const std::vector<float> all = [] {
    std::vector<float> made;
    for (int bits = 0; bits <= 0xffff; ++bits) made.push_back(f16_value(uint16_t(bits)));
    return made;
  }();
  return all;
}

// A 16-bit format: stored bits of the significand, the exponent of the least normal number, the
// pattern of infinity.
struct Format {
  int bits, least;
  uint16_t infinity;
};
constexpr Format kBf16{7, -126, 0x7f80}, kF16{10, -14, 0x7c00};

// To nearest even, by arithmetic in f64. In units of its last place |x| rounds to an integer; its
// pattern is that integer plus 2^bits for each exponent between the least one and its own.
uint16_t nearest_16(double x, const Format& f) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return uint16_t(f.infinity | 1 | sign) | 0x40;
  const double m = std::fabs(x);
  if (std::isinf(m)) return f.infinity | sign;
  int exponent = f.least;
  if (m > 0) std::frexp(m, &exponent), exponent = std::max(exponent - 1, f.least);
  const double units = std::nearbyint(std::ldexp(m, f.bits - exponent));
  const double pattern = std::ldexp(exponent - f.least, f.bits) + units;
  return uint16_t(sign | uint16_t(std::min<double>(pattern, f.infinity)));
}

// The same for eight bits, of which E4M3 has a NaN in the place of infinity.
constexpr Format kE4M3{3, -6, 0x7f}, kE5M2{2, -14, 0x7c};
uint8_t nearest_8(double x, const Format& f) {
  const uint16_t wide = nearest_16(x, f);
  return uint8_t((wide & 0x7f) | (wide >> 8 & 0x80));
}
double value_8(uint8_t bits, const Format& f) {
  const int size = bits & 0x7f, exponent = size >> f.bits, steps = size & ((1 << f.bits) - 1);
  double x = exponent ? std::ldexp(steps + (1 << f.bits), f.least + exponent - 1 - f.bits)
                      : std::ldexp(steps, f.least - f.bits);
  if (size >= f.infinity) x = size == f.infinity && f.infinity == 0x7c ? HUGE_VAL : NAN;
  return std::copysign(x, bits & 0x80 ? -1.0 : 1.0);
}

template <class T>
void put(uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
double take(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return double(value);
}

void store(int32_t dtype, double v, uint8_t* to) {
  switch (dtype) {
    case ORR_F32: return put(to, float(v));
    case ORR_F64: return put(to, v);
    case ORR_BF16: return put(to, nearest_16(v, kBf16));
    case ORR_F16: return put(to, nearest_16(v, kF16));
    case ORR_F8_E4M3: return put(to, nearest_8(v, kE4M3));
    case ORR_F8_E5M2: return put(to, nearest_8(v, kE5M2));
    case ORR_I32: return put(to, int32_t(v));
    case ORR_I64: return put(to, int64_t(v));
    default: return put(to, uint8_t(v));
  }
}

double load(int32_t dtype, const uint8_t* from) {
  uint16_t half;
  std::memcpy(&half, from, orr_dtype_bytes(dtype) == 2 ? 2 : 0);
  switch (dtype) {
    case ORR_F32: return take<float>(from);
    case ORR_F64: return take<double>(from);
    case ORR_BF16: return bf16_value(half);
    case ORR_F16: return f16_values()[half];
    case ORR_F8_E4M3: return value_8(*from, kE4M3);
    case ORR_F8_E5M2: return value_8(*from, kE5M2);
    case ORR_I32: return take<int32_t>(from);
    case ORR_I64: return take<int64_t>(from);
    default: return take<uint8_t>(from);
  }
}

uint64_t extent_bytes(const orr_tensor& t) {
  int64_t extent = 1;
  for (int d = 0; d < t.rank; ++d) extent += (t.dims[d] - 1) * t.strides[d];
  return elements(t) == 0 ? 0 : uint64_t(extent * orr_dtype_bytes(t.dtype));
}

// The host's kernels take any address; a device names what it takes.
uint64_t shift_of(const Device& device, const orr_tensor& t, int64_t misalign) {
  const uint64_t shift = uint64_t(misalign * orr_dtype_bytes(t.dtype));
  const uint64_t step = device.is_host() ? 1 : device.alignment();
  return (shift + step - 1) / step * step;
}

}  // namespace

double rounded(int32_t dtype, double value) {
  uint8_t bytes[8];
  store(dtype, value, bytes);
  return load(dtype, bytes);
}

GuardPages::GuardPages(uint64_t bytes) {
  const uint64_t page = 4096, room = (bytes + page - 1) / page * page, guard = 256 * page;
  mapped_ = room + guard;
  begin_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin_ == MAP_FAILED) orrery::fail(ORR_FAILED, "no memory for a tensor of {} bytes", bytes);
  auto* end = static_cast<uint8_t*>(begin_) + room;
  mprotect(end, guard, PROT_NONE);
  bytes_ = {end - bytes, bytes};
  std::fill(bytes_.begin(), bytes_.end(), uint8_t{0xff});
}

GuardPages::~GuardPages() { munmap(begin_, mapped_); }

// A guard zone, the tensor from its shift on, and `behind` bytes.
Buffer::Buffer(const Device& device, uint64_t bytes, uint64_t shift, uint64_t behind)
    : device_(device), bytes_(bytes) {
  const uint64_t step = device.alignment(), front = (kGuard + step - 1) / step * step + shift;
  // What is aligned ends up to a step before the page; what is not must not become so.
  const uint64_t over = (bytes + behind) % step;
  const uint64_t slack = !shift ? (step - over) % step : over == 0 && device.is_host() ? shift : 0;
  pages_ = std::make_unique<GuardPages>(front + bytes + behind + slack);
  storage_ = pages_->bytes();
  offset_ = front;
  memory_ = {sizeof(orr_memory),
             ORR_TIER_HOST,
             storage_.size(),
             storage_.data(),
             nullptr,
             "host",
             nullptr};
  tensor_ = kernel_suite::tensor(ORR_U8, {int64_t(bytes)});
  if (!device.is_host()) remote_ = device.allocate(storage_.size());
}

Buffer::Buffer(const Device& device, uint64_t bytes) : Buffer(device, bytes, 0, kGuard) {}

Buffer::Buffer(const Device& device, const orr_tensor& t, int64_t misalign, bool input)
    : Buffer(device, extent_bytes(t), shift_of(device, t, misalign), input ? 0 : kGuard) {
  tensor_ = t;
}

Buffer::~Buffer() {
  if (remote_) device_.free(remote_);
}

void Buffer::send() {
  if (remote_) device_.put(storage_, remote_);
}

void Buffer::fetch() {
  if (remote_) device_.get(remote_, storage_);
}

template <class F>
void Buffer::each_row(F&& f) const {
  const orr_tensor& t = tensor_;
  const int64_t size = orr_dtype_bytes(t.dtype), n = t.rank ? t.dims[t.rank - 1] : 1;
  const int64_t step = t.rank ? t.strides[t.rank - 1] * size : size;
  for (int64_t row = 0, rows = n ? elements(t) / n : 0; row < rows; ++row) {
    int64_t rest = row, at = 0;
    for (int d = t.rank - 2; d >= 0; --d) {
      at += rest % t.dims[d] * t.strides[d];
      rest /= t.dims[d];
    }
    f(offset_ + uint64_t(at * size), n, step);
  }
}

template <class F>
void Buffer::each(F&& f) const {
  each_row([&](uint64_t at, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; ++i) f(at + uint64_t(i * step));
  });
}

void Buffer::write(const Values& values) {
  size_t i = 0;
  each([&](uint64_t at) { store(tensor_.dtype, values[i++], storage_.data() + at); });
}

Values Buffer::read() const {
  Values values;
  each([&](uint64_t at) { values.push_back(load(tensor_.dtype, storage_.data() + at)); });
  return values;
}

std::vector<uint8_t> Buffer::bits() const {
  std::vector<uint8_t> out;
  int64_t size = orr_dtype_bytes(tensor_.dtype);
  each([&](uint64_t at) {
    out.insert(out.end(), storage_.data() + at, storage_.data() + at + size);
  });
  return out;
}

bool Buffer::intact() const {
  std::vector<uint8_t> rest(storage_.begin(), storage_.end());
  const int64_t size = orr_dtype_bytes(tensor_.dtype);
  each_row([&](uint64_t at, int64_t n, int64_t step) {
    if (step == size) std::memset(rest.data() + at, 0xff, size_t(n * size));
    for (int64_t i = 0; step != size && i < n; ++i)
      std::memset(rest.data() + at + i * step, 0xff, size_t(size));
  });
  return rest.empty() ||
         (rest[0] == 0xff && std::memcmp(rest.data(), rest.data() + 1, rest.size() - 1) == 0);
}

orr_buffer Buffer::view() const { return {remote_ ? remote_ : &memory_, offset_, bytes_}; }

}  // namespace kernel_suite
