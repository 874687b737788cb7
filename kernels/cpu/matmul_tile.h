// SPDX-License-Identifier: Apache-2.0
//
// Computes one slot's share of a matmul: its tiles one after another, with operands packed into the
// slot's scratch.
#pragma once

#include "matmul_amx.h"
#include "matmul_plan.h"
#include "pack.h"
#include "pack_pairs.h"
#include "pack_windows.h"
#include "tasks.h"

namespace orr_cpu::ORR_ISA {

// Operands have the type S, the result Y. Packed operands are numbers of type T or pairs of bf16.
template <class S, class Y, Along kAlong>
struct MatmulSlot {
  using T = Scalar<S>;
  enum { kRows = kRowsOf<kAlong>, kCols = Lanes<T>::cols, kLanesOf = Lanes<T>::count };
  enum { kMicro = kRows * kCols };
  static constexpr bool kTiles = kAlong == Along::tiles, kPairs = kAlong == Along::pairs;
  // Packed elements along K, of so many.
  static int64_t depth(int64_t k) {
    return kTiles ? (k + kAmxK - 1) / kAmxK * (kAmxK / 2) : kPairs ? (k + 1) / 2 : k;
  }

  // A tile of the output: rows [m, m+rows), columns [n, n+cols) of matrix g.
  struct Tile {
    int64_t g, m, n, rows, cols;
  };

  const MatmulPlan& p;
  const S *a, *b;
  Y* y;
  T *pack_a, *pack_b, *stack;
  // As the micro-kernel reads them, in numbers of T: from one element of K to the next, and from
  // one row of a to the next (from one element of K to the next, unless by_rows).
  int64_t a_k, a_step, b_k;

  MatmulSlot(const MatmulPlan& plan, const S* a_, const S* b_, Y* y_, T* scratch)
      : p(plan),
        a(a_),
        b(b_),
        y(y_),
        pack_a(scratch),
        pack_b(scratch + plan.slot_a),
        stack(scratch + plan.slot_a + plan.slot_b),
        a_step(p.by_rows ? kStrideOf<kAlong> : int64_t(kRows)),
        b_k(kCols) {
    if (p.read_a) a_step = p.by_rows ? p.shape.a.row : p.shape.a.col;
    if (p.read_b) b_k = p.shape.b.row;
    a_k = p.by_rows ? 1 : a_step;
  }

  void run(int64_t first, int64_t last) const {
    [[maybe_unused]] const Registers<kAlong> registers;
    int64_t packed_a = -1, packed_b = -1;
    for (int64_t i = first; i < last; ++i) {
      int64_t per = p.tiles_m * p.tiles_n, g = i / per, rest = i % per;
      int64_t im = p.m_inner ? rest % p.tiles_m : rest / p.tiles_n;
      int64_t in = p.m_inner ? rest / p.tiles_m : rest % p.tiles_n;
      Tile t{g, im * p.tile_m, in * p.tile_n, 0, 0};
      t.rows = smaller(p.tile_m, p.shape.m - t.m), t.cols = smaller(p.tile_n, p.shape.n - t.n);
      if (p.keep_a && packed_a != g * p.tiles_m + im)
        for (int32_t c = 0; c < p.n_chunks; ++c) pack_a_chunk(t, c);
      if (p.keep_b && packed_b != g * p.tiles_n + in)
        pack_b_group(t, 0, t.cols, {0, 0, 0, p.shape.k});
      packed_a = g * p.tiles_m + im, packed_b = g * p.tiles_n + in;
      if (p.by_panels)
        run_panels(t);
      else
        run_tile(t, i + 1 < last);
    }
    if (p.streams) streams_are_seen();
  }

  const S* group_of_a(const Tile& t) const { return a + t.g * p.shape.a.batch; }
  const S* group_of_b(const Tile& t) const { return b + t.g * p.shape.b.batch; }
  const S* rows_at(const Tile& t, int64_t k) const {
    return group_of_a(t) + t.m * p.shape.a.row + k * p.shape.a.col;
  }
  const S* cols_at(const Tile& t, int64_t j, int64_t k) const {
    return group_of_b(t) + k * p.shape.b.row + (t.n + j) * p.shape.b.col;
  }

  T* chunk_of_a(int32_t index) const {
    return pack_a + (p.keep_a ? index * p.panels * p.panel_a : 0);
  }
  void pack_a_chunk(const Tile& t, int32_t index) const {
    const MatmulChunk& c = p.chunks[index];
    T* to = chunk_of_a(index);
    if (p.by_rows)
      for (int64_t i = 0; i < t.rows; i += kRows, to += p.panel_a)
        pack_whole_rows(rows_at(t, c.k0) + i * p.shape.a.row, p.shape.a.row, p.shape.a.col,
                        smaller(kRows, t.rows - i), c.kc, to);
    else
      pack<kRows>(rows_at(t, c.k0), p.shape.a.row, p.shape.a.col, t.rows, c.kc, to, p.panel_a);
  }
  void pack_b_group(const Tile& t, int64_t j, int64_t cols, const MatmulChunk& c) const {
    if (p.shape.windows_b.run)
      return pack_window_panels<kCols>(group_of_b(t), p.shape.windows_b, t.n + j, cols, c.k0, c.kc,
                                       pack_b, kCols * depth(c.kc));
    pack<kCols>(cols_at(t, j, c.k0), p.shape.b.col, p.shape.b.row, cols, c.kc, pack_b,
                kCols * depth(c.kc));
  }
  static void pack_whole_rows(const S* from, int64_t step, int64_t k_step, int64_t count,
                              int64_t kc, T* to) {
    if constexpr (kTiles)
      pack_tile_rows(from, step, k_step, count, kc, to);
    else if constexpr (kPairs)
      pack_pair_rows(from, step, count, kc, to);
    else
      pack_rows(from, step, count, kc, to);
  }
  template <int W>
  static void pack(const S* from, int64_t i_step, int64_t k_step, int64_t count, int64_t kc, T* to,
                   int64_t panel) {
    if constexpr (kTiles)
      pack_tile_panels(from, i_step, k_step, count, kc, to, panel);
    else if constexpr (kPairs)
      pack_pair_panels<W>(from, i_step, k_step, count, kc, to, panel);
    else
      pack_panels<W>(from, i_step, k_step, count, kc, to, panel);
  }

  // The memory of a piece of an operand, to be prefetched: `lines` along the dim with stride
  // `step`, each with `length` elements along the dim with stride `inner`. If `step` is 1, the dims
  // change roles, so that elements of a line are neighbours.
  static Ahead ahead_of(const S* at, int64_t lines, int64_t step, int64_t length, int64_t inner) {
    if (step == 1 && inner != 1) return ahead_of(at, length, inner, lines, step);
    return {(const char*)at, step * int64_t(sizeof(S)), length * int64_t(sizeof(S)), lines, 0};
  }

  // If all of A is packed (keep_a), each group of columns runs through all of K, and its part of y
  // stays in cache.
  void run_tile(const Tile& t, bool more) const {
    if (p.read_a) return run_unpacked(t);
    Ahead ahead[2];
    int64_t outer = p.keep_a ? (t.cols + p.group - 1) / p.group : p.n_chunks;
    int64_t inner = p.keep_a ? p.n_chunks : (t.cols + p.group - 1) / p.group;
    for (int64_t i = 0; i < outer * inner; ++i) {
      int32_t chunk = int32_t(p.keep_a ? i % inner : i / inner);
      int64_t j = (p.keep_a ? i / inner : i % inner) * p.group;
      if (!p.keep_a && j == 0) {
        pack_a_chunk(t, chunk);
        want_a(t, chunk, more, ahead[0]);
      }
      if (!p.keep_b) {
        if (!p.read_b) pack_b_group(t, j, smaller(p.group, t.cols - j), p.chunks[chunk]);
        int64_t next = i + 1;
        if (p.shape.windows_b.run) {
          if (j == 0 && chunk + 1 < p.n_chunks)
            ahead[1] = span_of(group_of_b(t), p.shape.windows_b.apart, p.chunks[chunk + 1].k0,
                               p.chunks[chunk + 1].kc);
        } else if (next < outer * inner)
          want_b(t, int32_t(p.keep_a ? next % inner : next / inner),
                 (p.keep_a ? next / inner : next % inner) * p.group, ahead[1]);
      }
      run_group(t, j, smaller(p.group, t.cols - j), chunk, ahead);
    }
  }

  // A where it lies: each panel of it runs through all of K, beside all of B.
  void run_unpacked(const Tile& t) const {
    Ahead ahead[2];
    for (int64_t i = 0; i < t.rows; i += kRows)
      for (int32_t index = 0; index < p.n_chunks; ++index) {
        const MatmulChunk& c = p.chunks[index];
        const S* panel = rows_at(t, c.k0) + i * p.shape.a.row;
        const int64_t below = smaller(kRows, p.shape.m - t.m - i - kRows);
        ahead[0] =
            ahead_of(panel + kRows * p.shape.a.row, below, p.shape.a.row, c.kc, p.shape.a.col);
        for (int64_t n = 0; n < t.cols; n += kCols)
          micro(target(t, i), n, t.cols, c, (const T*)panel, packed_b(c, n), ahead, whole(c));
      }
  }

  // A few rows at a time, by all of K. Each panel of A is packed into the same memory, which stays
  // in the nearest cache.
  void run_panels(const Tile& t) const {
    const MatmulWindows& w = p.shape.windows_a;
    for (int64_t i = 0; i < t.rows; i += w.block) {
      const Tile rows{t.g, t.m + i, t.n, smaller(w.block, t.rows - i), t.cols};
      const int64_t next = i + rows.rows;
      Ahead ahead[2];
      if (next < t.rows)
        ahead[0] = span_of(group_of_a(t), w.apart, t.m + next, smaller(w.block, t.rows - next));
      for (int32_t c = 0; c < p.n_chunks; ++c) run_rows(rows, p.chunks[c], ahead);
    }
  }

  void run_rows(const Tile& t, const MatmulChunk& c, Ahead* ahead) const {
    const MatmulWindows& w = p.shape.windows_a;
    RunPart parts[ORR_MATMUL_K];
    const int64_t n = parts_of_runs(w, c.k0, c.kc, 64, 0, parts);
    const int64_t step = w.out.strides[w.out.count - 1];
    if (!p.keep_b) pack_b_group(t, 0, t.cols, c);
    int64_t rows = 0, panel = 0;
    for (int64_t i = 0; i < t.rows; i += rows, ++panel) {
      // As many rows as the other panels of the line.
      const int64_t line = smaller(w.line, t.rows), left = smaller(line - i % line, t.rows - i);
      const int64_t panels = (left + kRows - 1) / kRows;
      rows = (left + panels - 1) / panels;
      const NonZero k = pack_window_rows(group_of_a(t), w.apart, t.m + i, rows, parts, n, pack_a);
      const Target to{y + t.g * p.shape.y.batch + offset_of(w.out, t.m + i) + t.n * p.shape.y.col,
                      step, panel, int(rows)};
      for (int64_t j = 0; j < t.cols; j += kCols)
        micro(to, j, t.cols, c, pack_a, packed_b(c, j), ahead, p.shape.leaf_n == 1 ? k : whole(c));
    }
  }

  // Most of the memory of windows from index `first` on.
  static Ahead span_of(const S* at, const JoinedDim& apart, int64_t first, int64_t count) {
    const int64_t from = offset_of(apart, first), to = offset_of(apart, first + count - 1);
    return {(const char*)(at + from), 0, (to - from) * int64_t(sizeof(S)), 1, 0};
  }

  // Sets `ahead` to the piece of a that is packed next: the next chunk, or the tile below.
  void want_a(Tile t, int32_t index, bool more, Ahead& ahead) const {
    const MatmulStrides& s = p.shape.a;
    if (++index == p.n_chunks) {
      index = 0, t.m += t.rows;
      if (!more || !p.m_inner || t.m >= p.shape.m) return;
      t.rows = smaller(t.rows, p.shape.m - t.m);
    }
    const MatmulChunk& c = p.chunks[index];
    ahead = ahead_of(rows_at(t, c.k0), t.rows, s.row, c.kc, s.col);
  }
  void want_b(const Tile& t, int32_t index, int64_t j, Ahead& ahead) const {
    const MatmulChunk& c = p.chunks[index];
    ahead = ahead_of(cols_at(t, j, c.k0), smaller(p.group, t.cols - j), p.shape.b.col, c.kc,
                     p.shape.b.row);
  }

  // Packed elements along K of a panel of B, and where the chunk's panel of column j begins.
  int64_t depth_b(const MatmulChunk& c) const { return depth(p.keep_b ? p.shape.k : c.kc); }
  const T* packed_b(const MatmulChunk& c, int64_t j) const {
    return pack_b + (p.keep_b ? depth(c.k0) * kCols + j * depth_b(c) : 0);
  }
  void run_group(const Tile& t, int64_t j, int64_t cols, int32_t index, Ahead* ahead) const {
    const MatmulChunk& c = p.chunks[index];
    const T* panel_b = p.read_b ? (const T*)cols_at(t, j, c.k0) : packed_b(c, j);
    const int64_t column = p.read_b ? 1 : depth_b(c);
    for (int64_t n = 0; n < cols; n += kCols) {
      const T* panel_a = chunk_of_a(index);
      for (int64_t i = 0; i < t.rows; i += kRows, panel_a += p.panel_a)
        micro(target(t, i), j + n, t.cols, c, panel_a, panel_b + n * column, ahead, whole(c));
    }
  }

  // Elements [k, k + kc) of the chunk.
  void multiply(const MatmulStep& step, int64_t k, int64_t kc, int rows, int vectors,
                const T* panel_a, const T* panel_b, T* to, int64_t to_step, Ahead* ahead,
                bool stream = false) const {
    MicroArgs<T> args{depth(kc), panel_a + depth(k) * a_k,
                      a_step,    panel_b + depth(k) * b_k,
                      b_k,       to,
                      to_step,   step.add != 0,
                      ahead,     p.read_a || p.read_b ? 0 : 7,
                      stream};
    if constexpr (kTiles)
      multiply_tiles(rows, vectors, args);
    else if (p.by_rows)
      multiply_micro<T, kAlong, true>(rows, vectors, args);
    else
      multiply_micro<T, kAlong, false>(rows, vectors, args);
  }

  // A panel's rows of y: the first one, in column 0 of the tile, and the distance to the next.
  struct Target {
    Y* y;
    int64_t step;
    int64_t panel;  // its number in the tile
    int rows;
  };
  Target target(const Tile& t, int64_t i) const {
    const MatmulStrides& s = p.shape.y;
    return {y + t.g * s.batch + (t.m + i) * s.row + t.n * s.col, s.row, p.read_a ? 0 : i / kRows,
            int(smaller(kRows, t.rows - i))};
  }
  static NonZero whole(const MatmulChunk& c) { return {0, c.kc}; }

  // Runs the steps of one chunk for the panel's micro-tile at column j of the tile. `some`: the
  // elements of K that count, if the chunk has one step.
  void micro(const Target& at, int64_t j, int64_t all_cols, const MatmulChunk& c, const T* panel_a,
             const T* panel_b, Ahead* ahead, NonZero some) const {
    int rows = at.rows, cols = int(smaller(kCols, all_cols - j));
    int vectors = (cols + kLanesOf - 1) / kLanesOf;
    const MatmulShape& s = p.shape;
    Y* to = at.y + j * s.y.col;
    const auto first = [&](const MatmulStep& x) { return x.k0 - c.k0 + some.first; };
    const auto count = [&](const MatmulStep& x) {
      return c.last - c.first == 1 ? some.last - some.first : int64_t(x.kc);
    };
    if (direct(cols)) {
      const bool stream = p.streams && sizeof(T) == 4 && uintptr_t(to) % 64 == 0;
      for (int32_t x = c.first; x < c.last; ++x) {
        const MatmulStep& step = p.steps[x];
        if (step.add && count(step) == 0) continue;
        multiply(step, first(step), count(step), rows, vectors, panel_a, panel_b, (T*)to, at.step,
                 ahead, stream);
      }
      return;
    }
    int64_t across = (p.tile_n + kCols - 1) / kCols;
    T* base = stack;
    if (p.n_chunks > 1) base += (at.panel * across + j / kCols) * p.levels * kMicro;
    const int32_t node = p.steps[c.last - 1].node;
    if (node >= 0) expect(to + node * s.node, at.step, rows, cols);
    for (int32_t x = c.first; x < c.last; ++x) {
      const MatmulStep& step = p.steps[x];
      T* top = base + step.level * kMicro;
      multiply(step, first(step), count(step), rows, vectors, panel_a, panel_b, top, kCols, ahead);
      if (step.rounds) round(top, rows, vectors);
      for (int32_t merge = 0; merge < step.merges; ++merge, top -= kMicro) {
        add(top - kMicro, top, rows, vectors);
        if (step.rounds) round(top - kMicro, rows, vectors);
      }
      if (step.node >= 0) write(to + step.node * s.node, at.step, base, rows, cols);
    }
  }

  // Whether the accumulator can be written to y directly, in whole vectors. Tiles are whole, and
  // the rows of y may end in the middle of one.
  bool direct(int cols) const {
    return !kTiles && sizeof(Y) == sizeof(T) && p.shape.leaf_n == 1 && p.shape.y.col == 1 &&
           cols % kLanesOf == 0;
  }

  // Prefetches the lines of y, which is written at once after the last step.
  void expect(const Y* to, int64_t row, int rows, int cols) const {
    const int64_t col = p.shape.y.col;
    if (col != 1)
      for (int c = 0; c < cols; ++c) __builtin_prefetch(to + c * col, 1);
    else
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; c += 64 / int(sizeof(Y))) __builtin_prefetch(to + r * row + c, 1);
  }

  static void add(T* to, const T* from, int rows, int vectors) {
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) {
        T* at = to + r * kCols + v * kLanesOf;
        store(at, load(at) + load(from + r * kCols + v * kLanesOf));
      }
  }

  static void round(T* at, int rows, int vectors) {
    if constexpr (sizeof(Y) == 2)
      for (int r = 0; r < rows; ++r)
        for (int v = 0; v < vectors; ++v) {
          T* x = at + r * kCols + v * kLanesOf;
          store(x, rounded<Y>(load(x)));
        }
  }

  // Columns are lines of y. REQUIRES: rows <= 16.
  void write_columns(Y* to, const T* from, int rows, int cols) const {
    const T* row[16];
    row_pointers(from, kCols, rows, row);
    for (int c = 0; c < cols; c += 4) {
      v16f column[4];
      load_columns(row, c, column);
      for (int j = 0; j < 4 && c + j < cols; ++j)
        store(to + (c + j) * p.shape.y.col, column[j], rows);
    }
  }

  void write(Y* to, int64_t row, const T* from, int rows, int cols) const {
    int64_t col = p.shape.y.col;
    if constexpr (sizeof(T) == 4 && sizeof(Y) == 4)
      if (row == 1) {
        for (int r = 0; r < rows; r += 16, from += 16 * kCols)
          write_columns(to + r, from, int(smaller(16, rows - r)), cols);
        return;
      }
    for (int r = 0; r < rows; ++r, from += kCols) {
      int c = 0;
      if (col == 1)
        for (; c + 16 <= cols; c += 16) store(to + r * row + c, load(from + c, Full{}), Full{});
      for (; c < cols; ++c) store_one(to + r * row + c * col, from[c]);
    }
  }
};

}  // namespace orr_cpu::ORR_ISA
