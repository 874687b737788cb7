// SPDX-License-Identifier: Apache-2.0
//
// One slot's share of a matmul: its tiles one after another, operands packed into its own scratch.
#pragma once

#include "matmul_plan.h"
#include "pack.h"
#include "tasks.h"

namespace orr_cpu::ORR_ISA {

template <class S>
struct MatmulSlot {
  using T = Scalar<S>;
  enum { kRows = kMicroRows, kCols = Lanes<T>::cols, kLanesOf = Lanes<T>::count };
  enum { kMicro = kRows * kCols };

  // A piece of the output: rows [m, m+rows), columns [n, n+cols) of matrix g.
  struct Tile {
    int64_t g, m, n, rows, cols;
  };

  const MatmulPlan& p;
  const S *a, *b;
  S* y;
  T *pack_a, *pack_b, *stack;

  MatmulSlot(const MatmulPlan& plan, const S* a_, const S* b_, S* y_, T* scratch)
      : p(plan), a(a_), b(b_), y(y_), pack_a(scratch), pack_b(scratch + plan.slot_a),
        stack(scratch + plan.slot_a + plan.slot_b) {}

  void run(int64_t first, int64_t last) const {
    int64_t packed_a = -1, packed_b = -1;
    for (int64_t i = first; i < last; ++i) {
      int64_t per = p.tiles_m * p.tiles_n, g = i / per, rest = i % per;
      int64_t im = p.m_inner ? rest % p.tiles_m : rest / p.tiles_n;
      int64_t in = p.m_inner ? rest / p.tiles_m : rest % p.tiles_n;
      Tile t{g, im * p.tile_m, in * p.tile_n, 0, 0};
      t.rows = smaller(p.tile_m, p.shape.m - t.m), t.cols = smaller(p.tile_n, p.shape.n - t.n);
      MatmulChunk all{0, 0, 0, p.shape.k};
      if (p.keep_a && packed_a != g * p.tiles_m + im) pack_rows(t, all);
      if (p.keep_b && packed_b != g * p.tiles_n + in) pack_cols(t, 0, t.cols, all);
      packed_a = g * p.tiles_m + im, packed_b = g * p.tiles_n + in;
      for (int32_t c = 0; c < p.n_chunks; ++c) run_chunk(t, c, i + 1 < last);
    }
  }

  const S* rows_at(const Tile& t, int64_t k) const {
    return a + t.g * p.shape.a.batch + t.m * p.shape.a.row + k * p.shape.a.col;
  }
  const S* cols_at(const Tile& t, int64_t j, int64_t k) const {
    return b + t.g * p.shape.b.batch + k * p.shape.b.row + (t.n + j) * p.shape.b.col;
  }

  void pack_rows(const Tile& t, const MatmulChunk& c) const {
    pack_panels<kRows>(rows_at(t, c.k0), p.shape.a.row, p.shape.a.col, t.rows, c.kc, pack_a,
                       kRows * c.kc);
  }
  void pack_cols(const Tile& t, int64_t j, int64_t cols, const MatmulChunk& c) const {
    pack_panels<kCols>(cols_at(t, j, c.k0), p.shape.b.col, p.shape.b.row, cols, c.kc, pack_b,
                       kCols * c.kc);
  }

  // A piece of an operand: `lines` along the dim of stride `step`, `length` along the other, which
  // is the neighbours' dim unless the strides say otherwise.
  static Ahead ahead_of(const S* at, int64_t lines, int64_t step, int64_t length, int64_t inner) {
    if (step == 1) return ahead_of(at, length, inner, lines, step);
    return {(const char*)at, step * int64_t(sizeof(S)), length * int64_t(sizeof(S)), lines, 0};
  }

  void run_chunk(const Tile& t, int32_t index, bool more) const {
    const MatmulChunk& c = p.chunks[index];
    const MatmulStrides &sa = p.shape.a, &sb = p.shape.b;
    if (!p.keep_a) pack_rows(t, c);
    Ahead ahead[2];
    bool last = index + 1 == p.n_chunks;
    const MatmulChunk& next = p.chunks[last ? 0 : index + 1];
    if (!p.keep_a && !last)
      ahead[0] = ahead_of(rows_at(t, next.k0), t.rows, sa.row, next.kc, sa.col);
    if (p.m_inner && last && more && t.m + 2 * t.rows <= p.shape.m)
      ahead[0] = ahead_of(rows_at(t, next.k0) + t.rows * sa.row, t.rows, sa.row, next.kc, sa.col);
    for (int64_t j = 0; j < t.cols; j += p.group) {
      int64_t cols = smaller(p.group, t.cols - j);
      if (!p.keep_b) {
        pack_cols(t, j, cols, c);
        bool wrap = j + cols == t.cols;
        if (!wrap || !last || t.n + j + 2 * cols <= p.shape.n)
          ahead[1] = ahead_of(wrap && !last ? cols_at(t, 0, next.k0) : cols_at(t, j + cols, c.k0),
                              cols, sb.col, c.kc, sb.row);
      }
      run_group(t, j, cols, c, ahead);
    }
  }

  void run_group(const Tile& t, int64_t j, int64_t cols, const MatmulChunk& c, Ahead* ahead) const {
    int64_t depth_a = p.keep_a ? p.shape.k : c.kc, depth_b = p.keep_b ? p.shape.k : c.kc;
    const T* panel_a = pack_a + (p.keep_a ? c.k0 * kRows : 0);
    const T* panel_b = pack_b + (p.keep_b ? c.k0 * kCols + j * depth_b : 0);
    for (int64_t n = 0; n < cols; n += kCols)
      for (int64_t i = 0; i < t.rows; i += kRows)
        micro(t, i, j + n, c, panel_a + i * depth_a, panel_b + n * depth_b, ahead);
  }

  // The steps of one chunk for the micro-tile at (i, j) of the tile.
  void micro(const Tile& t, int64_t i, int64_t j, const MatmulChunk& c, const T* panel_a,
             const T* panel_b, Ahead* ahead) const {
    int rows = int(smaller(kRows, t.rows - i)), cols = int(smaller(kCols, t.cols - j));
    int vectors = (cols + kLanesOf - 1) / kLanesOf;
    const MatmulShape& s = p.shape;
    S* to = y + t.g * s.y.batch + (t.m + i) * s.y.row + (t.n + j) * s.y.col;
    if (direct(cols)) {
      for (int32_t x = c.first; x < c.last; ++x) {
        const MatmulStep& step = p.steps[x];
        multiply_micro<T>(rows, vectors,
                          {step.kc, panel_a + (step.k0 - c.k0) * kRows, kRows,
                           panel_b + (step.k0 - c.k0) * kCols, kCols, (T*)to, s.y.row,
                           step.add != 0, ahead});
      }
      return;
    }
    int64_t across = (p.tile_n + kCols - 1) / kCols;
    T* base = stack;
    if (p.n_chunks > 1) base += (i / kRows * across + j / kCols) * p.levels * kMicro;
    for (int32_t x = c.first; x < c.last; ++x) {
      const MatmulStep& step = p.steps[x];
      T* top = base + step.level * kMicro;
      multiply_micro<T>(rows, vectors,
                        {step.kc, panel_a + (step.k0 - c.k0) * kRows, kRows,
                         panel_b + (step.k0 - c.k0) * kCols, kCols, top, kCols, step.add != 0, ahead});
      for (int32_t merge = 0; merge < step.merges; ++merge, top -= kMicro)
        add(top - kMicro, top, rows, vectors);
      if (step.node >= 0) write(to + step.node * s.node, base, rows, cols);
    }
  }

  // Whether whole vectors of the accumulator are whole vectors of y.
  bool direct(int cols) const {
    return sizeof(S) == sizeof(T) && p.shape.leaf_n == 1 && p.shape.y.col == 1 &&
           cols % kLanesOf == 0;
  }

  static void add(T* to, const T* from, int rows, int vectors) {
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) {
        T* at = to + r * kCols + v * kLanesOf;
        store(at, load(at) + load(from + r * kCols + v * kLanesOf));
      }
  }

  void write(S* to, const T* from, int rows, int cols) const {
    int64_t row = p.shape.y.row, col = p.shape.y.col;
    for (int r = 0; r < rows; ++r, from += kCols) {
      int c = 0;
      if (col == 1)
        for (; c + 16 <= cols; c += 16) store(to + r * row + c, load(from + c, Full{}), Full{});
      for (; c < cols; ++c) store_one(to + r * row + c * col, from[c]);
    }
  }
};

}  // namespace orr_cpu::ORR_ISA
