// SPDX-License-Identifier: Apache-2.0
//
// Pointwise steps on integers, which compute in int64 and wrap to their dtype, and conversions.
#include <math.h>

#include "float8.h"
#include "pointwise_steps.h"
#include "pointwise_wide.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class To, class Fn>
inline void each(void* to, Fn&& fn) {
  To* out = (To*)to;
  for (int i = 0; i < kBlock; ++i) out[i] = fn(i);
}
inline int32_t mask(bool b) { return b ? -1 : 0; }

// Division truncates; by zero it gives 0, so that padding lanes do no harm.
int64_t quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
}
int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) return a;
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t power(int64_t a, int64_t n) {
  if (n < 0) return a == 1 ? 1 : a == -1 ? (n & 1 ? -1 : 1) : 0;
  uint64_t y = 1, x = uint64_t(a);
  for (; n; n >>= 1, x *= x)
    if (n & 1) y *= x;
  return int64_t(y);
}
// Truncation; what does not fit, and NaN, becomes -limit.
int64_t truncate(double x, double limit) {
  return int64_t(x > -limit - 1 && x < limit ? x : -limit);
}

void wrap(int dtype, void* p) {
  int64_t* v = (int64_t*)p;
  if (dtype == ORR_I32) each<int64_t>(p, [=](int i) { return int64_t(int32_t(v[i])); });
  if (dtype == ORR_U8) each<int64_t>(p, [=](int i) { return int64_t(uint8_t(v[i])); });
}

#define ORR_INT(name, value)                                  \
  case name:                                                  \
    each<int64_t>(to, [=](int i) { return int64_t(value); }); \
    break;
#define ORR_TEST(name, value) \
  case name: return each<int32_t>(to, [=](int i) { return mask(value); });

}  // namespace

void wide_int(int fn, int dtype, void* to, const void* pa, const void* pb, const void* pc) {
  const int64_t *a = (const int64_t*)pa, *b = (const int64_t*)pb, *c = (const int64_t*)pc;
  const uint64_t *ua = (const uint64_t*)pa, *ub = (const uint64_t*)pb, *uc = (const uint64_t*)pc;
  const int32_t* m = (const int32_t*)pa;
  switch (fn) {
    ORR_INT(ORR_FN_ADD, ua[i] + ub[i])
    ORR_INT(ORR_FN_SUB, ua[i] - ub[i])
    ORR_INT(ORR_FN_MUL, ua[i] * ub[i])
    ORR_INT(ORR_FN_DIV, quotient(a[i], b[i]))
    ORR_INT(ORR_FN_MIN, a[i] < b[i] ? a[i] : b[i])
    ORR_INT(ORR_FN_MAX, a[i] > b[i] ? a[i] : b[i])
    ORR_INT(ORR_FN_POW, power(a[i], b[i]))
    ORR_INT(ORR_FN_FMA, ua[i] * ub[i] + uc[i])
    ORR_INT(ORR_FN_MOD, modulo(a[i], b[i]))
    ORR_INT(ORR_FN_NEG, 0 - ua[i])
    ORR_INT(ORR_FN_ABS, a[i] < 0 ? 0 - ua[i] : ua[i])
    ORR_INT(ORR_FN_SIGN, (a[i] > 0) - (a[i] < 0))
    ORR_INT(ORR_FN_SELECT, m[i] ? b[i] : c[i])
    ORR_TEST(ORR_FN_EQ, a[i] == b[i])
    ORR_TEST(ORR_FN_NE, a[i] != b[i])
    ORR_TEST(ORR_FN_LT, a[i] < b[i])
    ORR_TEST(ORR_FN_LE, a[i] <= b[i])
    ORR_TEST(ORR_FN_GT, a[i] > b[i])
    ORR_TEST(ORR_FN_GE, a[i] >= b[i])
    default: each<int64_t>(to, [=](int i) { return a[i]; });  // floor, ceil, round
  }
  wrap(dtype, to);
}

namespace {

// Element i of a slot as a double or as an integer.
struct Reader {
  int dtype;
  const void* p;
  double real(int i) const {
    switch (dtype) {
      case ORR_F32:
      case ORR_BF16:
      case ORR_F16:
      case ORR_F8_E4M3:
      case ORR_F8_E5M2: return ((const float*)p)[i];
      case ORR_F64: return ((const double*)p)[i];
      case ORR_BOOL: return ((const int32_t*)p)[i] != 0;
      default: return double(((const int64_t*)p)[i]);
    }
  }
  int64_t integer(int i, double limit) const {
    bool exact = dtype == ORR_I32 || dtype == ORR_I64 || dtype == ORR_U8;
    return exact ? ((const int64_t*)p)[i] : truncate(real(i), limit);
  }
  // Straight from int64: through double it would round twice.
  float single(int i) const {
    return dtype == ORR_I64 ? float(((const int64_t*)p)[i]) : float(real(i));
  }
};

}  // namespace

void convert(int from, int dtype, void* to, const void* a) {
  Reader r{from, a};
  switch (dtype) {
    case ORR_F32:
    case ORR_BF16:
    case ORR_F16:
    case ORR_F8_E4M3:
    case ORR_F8_E5M2: return each<float>(to, [=](int i) { return r.single(i); });
    case ORR_F64: return each<double>(to, [=](int i) { return r.real(i); });
    case ORR_BOOL: return each<int32_t>(to, [=](int i) { return mask(r.real(i) != 0); });
    default: {
      const double limit = dtype == ORR_I32 ? 0x1p31 : 0x1p63;
      each<int64_t>(to, [=](int i) { return r.integer(i, limit); });
      wrap(dtype, to);
    }
  }
}

namespace {

// Bytes in lanes, one at a time: machine code does better (pointwise_trace_memory.h).
template <class Fn>
void from_bytes(void* to, const uint8_t* a, Fn&& fn) {
  alignas(64) int32_t lanes[kLanes];
  for (int i = 0; i < kBlock; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lanes[j] = a[i + j];
    store((float*)to + i, fn(load_int(lanes)));
  }
}
template <class Fn>
void to_bytes(uint8_t* to, const void* a, Fn&& fn) {
  alignas(64) int32_t lanes[kLanes];
  for (int i = 0; i < kBlock; i += kLanes) {
    store_int(lanes, fn(load((const float*)a + i)));
    for (int j = 0; j < kLanes; ++j) to[i + j] = uint8_t(lanes[j]);
  }
}

}  // namespace

void widen(int from, void* to, const void* a) {
  const uint8_t* byte = (const uint8_t*)a;
  const int32_t* word = (const int32_t*)a;
  switch (from) {
    case ORR_BOOL: return each<int32_t>(to, [=](int i) { return mask(byte[i] != 0); });
    case ORR_U8: return each<int64_t>(to, [=](int i) { return int64_t(byte[i]); });
    case ORR_F8_E4M3: return from_bytes(to, byte, [](v16i x) { return from_e4m3(x); });
    case ORR_F8_E5M2: return from_bytes(to, byte, [](v16i x) { return from_e5m2(x); });
    default: return each<int64_t>(to, [=](int i) { return int64_t(word[i]); });
  }
}

void narrow(int dtype, void* to, const void* a) {
  const int64_t* wide = (const int64_t*)a;
  const int32_t* word = (const int32_t*)a;
  switch (dtype) {
    case ORR_BOOL: return each<uint8_t>(to, [=](int i) { return uint8_t(word[i] != 0); });
    case ORR_U8: return each<uint8_t>(to, [=](int i) { return uint8_t(wide[i]); });
    case ORR_I32: return each<int32_t>(to, [=](int i) { return int32_t(wide[i]); });
    case ORR_F8_E4M3: return to_bytes((uint8_t*)to, a, [](v16f x) { return to_e4m3(x); });
    case ORR_F8_E5M2: return to_bytes((uint8_t*)to, a, [](v16f x) { return to_e5m2(x); });
    default: return each<int64_t>(to, [=](int i) { return wide[i]; });  // f64 too: the same bytes
  }
}

}  // namespace orr_cpu::ORR_ISA
