// SPDX-License-Identifier: Apache-2.0
//
// The scalar model that collectives are compared with, bit for bit: one element at a time, 16-bit
// floats through their own conversions.
#pragma once

#include <orrery/comm.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <orrery/sdk/fold.hpp>
#include <span>
#include <type_traits>
#include <vector>

#include "conformance/comm/peer.h"

namespace comm_suite {

// One element, held wide enough for its folds: floats in f, f64 in d, integers in i.
struct Scalar {
  float f = 0;
  double d = 0;
  uint64_t i = 0;
};

inline uint16_t to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t low = u & 0xFFFF, high = u >> 16;
  const bool up = low > 0x8000 || (low == 0x8000 && (high & 1));
  return static_cast<uint16_t>(high + up);
}

inline Scalar load(int dtype, const char* p) {
  Scalar s;
  uint16_t h;
  orr::folds::F16 half;
  int32_t i32;
  switch (dtype) {
    case ORR_F32: std::memcpy(&s.f, p, 4); break;
    case ORR_F64: std::memcpy(&s.d, p, 8); break;
    case ORR_BF16:
      std::memcpy(&h, p, 2);
      s.f = std::bit_cast<float>(uint32_t{h} << 16);
      break;
    case ORR_F16:
      std::memcpy(&half, p, 2);
      s.f = static_cast<float>(half);
      break;
    case ORR_I32:
      std::memcpy(&i32, p, 4);
      s.i = static_cast<uint64_t>(int64_t{i32});
      break;
    case ORR_I64: std::memcpy(&s.i, p, 8); break;
    default: s.i = static_cast<unsigned char>(*p);
  }
  return s;
}

inline void store(int dtype, const Scalar& s, char* p) {
  const uint16_t h = to_bf16(s.f);
  const orr::folds::F16 half = static_cast<orr::folds::F16>(s.f);
  switch (dtype) {
    case ORR_F32: std::memcpy(p, &s.f, 4); break;
    case ORR_F64: std::memcpy(p, &s.d, 8); break;
    case ORR_BF16: std::memcpy(p, &h, 2); break;
    case ORR_F16: std::memcpy(p, &half, 2); break;
    default: std::memcpy(p, &s.i, static_cast<size_t>(orr_dtype_bytes(dtype)));
  }
}

template <class T>
T apply(int redop, T a, T b) {
  switch (redop) {
    case ORR_RED_SUM: return a + b;
    case ORR_RED_PROD: return a * b;
    case ORR_RED_MIN: return b < a ? b : a;
    default: return b > a ? b : a;
  }
}

inline Scalar fold(int dtype, int redop, const Scalar& a, const Scalar& b) {
  Scalar s;
  s.f = apply(redop, a.f, b.f);
  s.d = apply(redop, a.d, b.d);
  const bool compares = redop == ORR_RED_MIN || redop == ORR_RED_MAX;
  s.i = compares ? static_cast<uint64_t>(
                       apply(redop, static_cast<int64_t>(a.i), static_cast<int64_t>(b.i)))
                 : apply(redop, a.i, b.i);
  if (dtype == ORR_I32) s.i = static_cast<uint64_t>(int64_t{static_cast<int32_t>(s.i)});
  if (dtype == ORR_U8) s.i &= 255;
  return s;
}

// Elements of a sequence that is kept: valid until a longer part of the same sequence is asked for.
using Bytes = std::span<const char>;

// f(dtype) with the dtype as a constant, for loops over elements that are made for it.
template <class F>
void with_dtype(int dtype, F&& f) {
  switch (dtype) {
    case ORR_F32: return f(std::integral_constant<int, ORR_F32>());
    case ORR_F64: return f(std::integral_constant<int, ORR_F64>());
    case ORR_BF16: return f(std::integral_constant<int, ORR_BF16>());
    case ORR_F16: return f(std::integral_constant<int, ORR_F16>());
    case ORR_I32: return f(std::integral_constant<int, ORR_I32>());
    case ORR_I64: return f(std::integral_constant<int, ORR_I64>());
    case ORR_BOOL: return f(std::integral_constant<int, ORR_BOOL>());
    default: return f(std::integral_constant<int, ORR_U8>());
  }
}

// An element of a sequence depends on its index alone, so that a short sequence is the beginning of
// a long one: of each key the longest that was asked for is kept.
class Sequences {
 public:
  using Key = std::array<int64_t, 4>;
  // n elements of the sequence `key`. What is missing is made by `make(dtype)`, a function that
  // gives one that stores the element i at p.
  template <class Make>
  Bytes get(const Key& key, int dtype, int64_t n, Make make) {
    const auto unit = static_cast<size_t>(orr_dtype_bytes(dtype)),
               bytes = static_cast<size_t>(n) * unit;
    std::vector<char>& kept = kept_[key];
    if (size_t at = kept.size(); at < bytes) {
      kept.resize(bytes);
      with_dtype(dtype, [&](auto constant) {
        const auto element = make(constant);
        for (; at < bytes; at += unit) element(static_cast<int64_t>(at / unit), kept.data() + at);
      });
    }
    return {kept.data(), bytes};
  }

 private:
  std::map<Key, std::vector<char>> kept_;
};

// Sequence `s` of n elements.
inline Bytes numbers(int dtype, uint64_t s, int64_t n) {
  static Sequences kept;
  const auto make = [=](auto constant) {
    return [=](int64_t i, char* p) {
      Scalar x;
      x.d = number(s, static_cast<uint64_t>(i));
      x.f = static_cast<float>(x.d);
      x.i = static_cast<uint64_t>(static_cast<int64_t>(x.d * 1e6));
      store(constant, x, p);
    };
  };
  return kept.get({dtype, static_cast<int64_t>(s)}, dtype, n, make);
}

// The same as magnitudes.
inline Bytes magnitudes(int dtype, uint64_t s, int64_t n) {
  static Sequences kept;
  const auto make = [=](auto constant) {
    return [=, in = numbers(dtype, s, n)](int64_t i, char* p) {
      Scalar x = load(constant, in.data() + i * orr_dtype_bytes(constant));
      x.f = std::abs(x.f), x.d = std::abs(x.d);
      store(constant, x, p);
    };
  };
  return kept.get({dtype, static_cast<int64_t>(s)}, dtype, n, make);
}

using Sequence = Bytes(int dtype, uint64_t s, int64_t n);

// The fold of sequences 0 .. ranks-1 in that order, rounded once.
inline Bytes folded(int dtype, int redop, int ranks, int64_t n, Sequence* sequence = numbers) {
  static Sequences kept;
  const auto make = [=](auto constant) {
    std::vector<Bytes> in;
    for (int r = 0; r < ranks; ++r) in.push_back(sequence(dtype, static_cast<uint64_t>(r), n));
    return [=, in = std::move(in)](int64_t i, char* p) {
      const int64_t at = i * orr_dtype_bytes(constant);
      Scalar acc = load(constant, in[0].data() + at);
      for (size_t r = 1; r < in.size(); ++r)
        acc = fold(constant, redop, acc, load(constant, in[r].data() + at));
      store(constant, acc, p);
    };
  };
  return kept.get({dtype, redop, ranks, sequence == magnitudes}, dtype, n, make);
}

// The tree node over leaves [lo, lo + width) of `total`; leaf l is sequence l. Rounds at every
// node.
inline Bytes tree(int dtype, int64_t lo, int64_t width, int64_t total, int64_t n) {
  static Sequences kept;
  if (width == 1) return numbers(dtype, static_cast<uint64_t>(lo), n);
  if (lo + width / 2 >= total) return tree(dtype, lo, width / 2, total, n);
  const auto make = [=](auto constant) {
    return [=, left = tree(dtype, lo, width / 2, total, n),
            right = tree(dtype, lo + width / 2, width / 2, total, n)](int64_t i, char* p) {
      const int64_t at = i * orr_dtype_bytes(constant);
      store(constant,
            fold(constant, ORR_RED_SUM, load(constant, left.data() + at),
                 load(constant, right.data() + at)),
            p);
    };
  };
  return kept.get({dtype, lo, width, total}, dtype, n, make);
}

}  // namespace comm_suite
