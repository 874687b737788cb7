// SPDX-License-Identifier: Apache-2.0
//
// Products of bf16 by AMX: a tile register holds 16 rows of 64 bytes, and one instruction,
// tdpbf16ps, adds the product of 16 x 32 and 32 x 16 elements to 16 x 16 sums of f32. Its sums have
// another order than ops.h asks for, so it is used where "numerics" = "fast" allows any.
//
// Operands are packed in pairs along K (pack_pairs.h), in multiples of kAmxK elements that zeros
// complete: a in rows, kAmxStride apart, b in panels of 32 columns, each pair of its rows 128
// bytes.
#pragma once

#include "matmul_micro.h"
#include "matmul_plan.h"
#include "pack_pairs.h"

namespace orr_cpu::ORR_ISA {

// How many rows the micro-kernel computes at a time.
template <Along kAlong>
constexpr int kRowsOf = kMicroRows;

// The distance of packed rows of A (kRowStride), in numbers of T.
template <Along kAlong>
constexpr int64_t kStrideOf = kRowStride;

// What a thread holds while it multiplies.
template <Along kAlong>
struct Registers {};

#ifdef __AVX512F__

// Tiles for the lifetime of the object, in this thread, all of 16 rows of 64 bytes.
struct TileRegisters {
  TileRegisters() {
    struct alignas(64) {
      uint8_t palette, start, unused[14];
      uint16_t row_bytes[16];
      uint8_t rows[16];
    } shapes = {};
    shapes.palette = 1;
    for (int i = 0; i < 8; ++i) shapes.row_bytes[i] = 64, shapes.rows[i] = 16;
    asm volatile("ldtilecfg %0" ::"m"(shapes));
  }
  ~TileRegisters() { asm volatile("tilerelease"); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

template <>
constexpr int kRowsOf<Along::tiles> = kAmxRows;
template <>
constexpr int64_t kStrideOf<Along::tiles> = kAmxStride;
template <>
struct Registers<Along::tiles> : TileRegisters {};

#define ORR_TILE_ZERO(tile) asm volatile("tilezero %%tmm" #tile ::: "memory")
#define ORR_TILE_LOAD(tile, at, step) \
  asm volatile("tileloadd (%0,%1), %%tmm" #tile ::"r"(at), "r"((step)*4) : "memory")
#define ORR_TILE_STORE(tile, at, step) \
  asm volatile("tilestored %%tmm" #tile ", (%0,%1)" ::"r"(at), "r"((step)*4) : "memory")
#define ORR_TILE_MULTIPLY(to, x, y) \
  asm volatile("tdpbf16ps %%tmm" #y ", %%tmm" #x ", %%tmm" #to ::: "memory")

// As micro_kernel, for whole tiles; those of rows from 16 on if kLow, and of columns from 16 on if
// kRight. REQUIRES: args.kc is a multiple of kAmxK / 2; TileRegisters are alive; C has whole
// tiles.
template <bool kLow, bool kRight>
__attribute__((noinline)) void multiply_tiles(const MicroArgs<float>& args) {
  const int64_t a_step = args.a_step, b_step = args.b_step, c_step = args.c_step;
  float *c = args.c, *low = c + 16 * c_step;
  if (args.add) {
    ORR_TILE_LOAD(0, c, c_step);
    if (kRight) ORR_TILE_LOAD(1, c + 16, c_step);
    if (kLow) ORR_TILE_LOAD(2, low, c_step);
    if (kLow && kRight) ORR_TILE_LOAD(3, low + 16, c_step);
  } else {
    ORR_TILE_ZERO(0);
    ORR_TILE_ZERO(1);
    ORR_TILE_ZERO(2);
    ORR_TILE_ZERO(3);
  }
  for (int64_t k = 0; k < args.kc; k += kAmxK / 2) {
    const float *a = args.a + k, *b = args.b + k * b_step;
    if (args.ahead) {
      args.ahead[0].next();
      args.ahead[1].next();
    }
    ORR_TILE_LOAD(4, a, a_step);
    ORR_TILE_LOAD(6, b, b_step);
    ORR_TILE_MULTIPLY(0, 4, 6);
    if (kRight) {
      ORR_TILE_LOAD(7, b + 16, b_step);
      ORR_TILE_MULTIPLY(1, 4, 7);
    }
    if (kLow) {
      ORR_TILE_LOAD(5, a + 16 * a_step, a_step);
      ORR_TILE_MULTIPLY(2, 5, 6);
      if (kRight) ORR_TILE_MULTIPLY(3, 5, 7);
    }
  }
  ORR_TILE_STORE(0, c, c_step);
  if (kRight) ORR_TILE_STORE(1, c + 16, c_step);
  if (kLow) ORR_TILE_STORE(2, low, c_step);
  if (kLow && kRight) ORR_TILE_STORE(3, low + 16, c_step);
}

// REQUIRES: rows <= kAmxRows, vectors <= 2, both at least 1.
inline void multiply_tiles(int rows, int vectors, const MicroArgs<float>& args) {
  if (rows > 16)
    vectors > 1 ? multiply_tiles<true, true>(args) : multiply_tiles<true, false>(args);
  else
    vectors > 1 ? multiply_tiles<false, true>(args) : multiply_tiles<false, false>(args);
}

// Pairs of rows that lie across K: sixteen of them at a time are turned in the nearest cache.
inline void pack_turned_rows(const bf16* src, int64_t k_step, int count, int64_t kc, float* to) {
  alignas(64) float pairs[16 * 16];
  const float* row[16];
  row_pointers(pairs, 16, 16, row);
  for (int64_t k = 0; k < kc; k += 32) {
    for (int64_t p = 0; p < 16; ++p) {
      const bf16* at = src + (k + 2 * p) * k_step;
      const int64_t left = kc - k - 2 * p;
      const bf16* second = left > 1 ? at + k_step : nullptr;
      const v16f x = left <= 0     ? splat(0.0f)
                     : count == 16 ? pairs_of(at, second, Full{})
                                   : pairs_of(at, second, count);
      store(pairs + p * 16, x);
    }
    for (int i = 0; i < count; i += 4) {
      v16f column[4];
      load_columns(row, i, column);
      for (int j = 0; j < 4 && i + j < count; ++j)
        store(to + (i + j) * kAmxStride + k / 2, column[j]);
    }
  }
}

// Packs `count` rows of a over kc of K. REQUIRES: kc <= ORR_MATMUL_K.
inline void pack_tile_rows(const bf16* src, int64_t i_step, int64_t k_step, int64_t count,
                           int64_t kc, float* to) {
  if (i_step == 1 && k_step != 1) {
    for (int64_t i = 0; i < count; i += 16)
      pack_turned_rows(src + i, k_step, int(smaller(16, count - i)), kc, to + i * kAmxStride);
    return;
  }
  for (int64_t i = 0; i < count; ++i, src += i_step, to += kAmxStride) {
    int64_t k = 0;
    if (k_step == 1)
      for (; k + 32 <= kc; k += 32) store_int(to + k / 2, load_int(src + k));
    for (; k < kc; k += 2)
      to[k / 2] = one_pair(src + k * k_step, k + 1 < kc ? src + (k + 1) * k_step : nullptr);
    for (; k % kAmxK; k += 2) to[k / 2] = 0;
  }
}

// Packs b as pack_pair_panels, and completes each panel by pairs of zeros.
inline void pack_tile_panels(const bf16* src, int64_t i_step, int64_t k_step, int64_t count,
                             int64_t kc, float* to, int64_t panel) {
  pack_pair_panels<kAmxCols>(src, i_step, k_step, count, kc, to, panel);
  const int64_t pairs = (kc + 1) / 2, whole = ceil_div(kc, kAmxK) * (kAmxK / 2);
  if (pairs == whole) return;
  for (int64_t p = 0; p < count; p += kAmxCols, to += panel)
    for (int64_t i = pairs * kAmxCols; i < whole * kAmxCols; i += 16) store(to + i, splat(0.0f));
}

#endif

}  // namespace orr_cpu::ORR_ISA
