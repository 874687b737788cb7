// SPDX-License-Identifier: Apache-2.0
//
// Products of 3 x 3 windows by Winograd's method (winograd_plan.h). The results of windows are
// computed for a block of tiles at a time, which stays in the L2 cache; the gradient of weights for
// a chunk of tiles, whose 36 products are then added up by all threads.
#include "winograd.h"

#include "kernel.h"
#include "matmul_micro.h"
#include "pack.h"
#include "tasks.h"

namespace orr_cpu::ORR_ISA {
namespace {

constexpr int64_t kCols = Lanes<float>::cols;

// A product of one point: rows x depth times depth x cols. Sums go in blocks of ORR_MATMUL_K.
template <bool kByRows>
void multiply_point(const float* a, int64_t a_step, const float* b, int64_t b_step, float* c,
                    int64_t c_step, int rows, int vectors, int64_t depth, bool add) {
  for (int64_t k = 0; k < depth; k += ORR_MATMUL_K)
    multiply_micro<float, Along::k, kByRows>(
        rows, vectors,
        MicroArgs<float>{smaller(ORR_MATMUL_K, depth - k), a + k * (kByRows ? 1 : a_step), a_step,
                         b + k * b_step, b_step, c, c_step, add || k > 0, nullptr});
}

// The windows of tiles [first, last), as points.
void transform_windows(const WinogradPlan& p, const float* from, int64_t first, int64_t last,
                       float* to) {
  const Images& i = p.images;
  for (int64_t t = first; t < last; ++t, to += p.window_row) {
    const TilePlace at = place_of(p, t);
    const float* corner = from + at.image * i.image + at.y * i.row + at.x * i.channels;
    for (int64_t c = 0; c < i.channels; c += 16) {
      WinogradTile tile;
      load_pixels<kWinogradWindow>(corner + c, i.row, i.channels, i.height + 2 - at.y,
                                   i.width + 2 - at.x, tile);
      transform<PixelsToPoints>(tile);
      store_points(tile, to + c, p.window_point);
    }
  }
}

// Runs fn(task, scratch) for all tasks, in parts that each have a scratch behind `scratch`.
template <class Fn>
void by_slots(const WinogradPlan& p, int64_t tasks, float* scratch, const Fn& fn) {
  const int64_t running = smaller(p.slots, tasks);
  parallel(running, [&](int64_t slot) {
    for (int64_t i = slot * tasks / running; i < (slot + 1) * tasks / running; ++i)
      fn(i, scratch + slot * p.slot_floats);
  });
}

// The results of windows.
struct Winograd : Kernel {
  explicit Winograd(const orr_op& op)
      : plan(op, threads()),
        weight_row(op.in[1].strides[1]),
        weight_column(op.in[1].strides[2]),
        y_row(op.out[0].strides[1]) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    const float *x = host<float>(in[0]), *w = host<float>(in[1]);
    plan.few ? few(x, w, host<float>(out[0]), aligned_scratch(work))
             : many(x, w, host<float>(out[0]), aligned_scratch(work));
  }

  void many(const float* x, const float* w, float* y, float* weights) const {
    const WinogradPlan& p = plan;
    const int64_t parts = p.images.channels / 16, panels = ceil_div(p.other, kCols);
    parallel(parts * panels, [&](int64_t i) {
      const int64_t channel = i % parts * 16, panel = i / parts;
      transform_weights(w, channel, panel * kCols,
                        weights + (panel * p.images.channels + channel) * kCols);
    });
    const int64_t tasks = p.blocks * p.splits;
    by_slots(p, tasks, weights + p.shared, [&](int64_t i, float* scratch) {
      const int64_t begin = i / p.splits * p.block, end = smaller(begin + p.block, p.tiles);
      transform_windows(p, x, begin, end, scratch);
      float* sums = scratch + kWinogradPoints * p.window_point;
      const int64_t split = i % p.splits, last = panels * (split + 1) / p.splits;
      for (int64_t panel = panels * split / p.splits; panel < last; ++panel) {
        const int vectors = vectors_of(panel);
        multiply(scratch, weights + panel * p.images.channels * kCols, sums, end - begin, vectors,
                 p.images.channels, false);
        store_results(sums, y + panel * kCols, begin, end, vectors);
      }
    });
  }

  void few(const float* x, const float* w, float* y, float* windows) const {
    const WinogradPlan& p = plan;
    parallel(p.tiles,
             [&](int64_t t) { transform_windows(p, x, t, t + 1, windows + t * p.window_row); });
    by_slots(p, ceil_div(p.other, kCols), windows + p.shared, [&](int64_t panel, float* weights) {
      float* sums = weights + kWinogradPoints * p.other_point;
      const int vectors = vectors_of(panel);
      for (int64_t k = 0; k < p.images.channels; k += kFewChannels) {
        const int64_t depth = smaller(kFewChannels, p.images.channels - k);
        for (int64_t c = 0; c < depth; c += 16)
          transform_weights(w, k + c, panel * kCols, weights + c * kCols);
        multiply(windows + k, weights, sums, p.tiles, vectors, depth, k > 0);
      }
      store_results(sums, y + panel * kCols, 0, p.tiles, vectors);
    });
  }

  int vectors_of(int64_t panel) const {
    return int(smaller(kCols, plan.other - panel * kCols) / 16);
  }

  // Sixteen channels of a panel of columns, from weights [9, channels, other] to rows of a panel.
  void transform_weights(const float* w, int64_t channel, int64_t column, float* to) const {
    const int64_t next = plan.images.channels;
    for (int64_t n = 0; n < smaller(kCols, plan.other - column); n += 16) {
      const float* from = w + channel * weight_row + (column + n) * weight_column;
      if (weight_column != 1)
        turn_weights(from, to + n);
      else
        for (int64_t c = 0; c < 16; ++c)
          store_points(points_of(from + c * weight_row, next * weight_row).all, to + n + c * kCols,
                       plan.other_point);
    }
  }

  struct Points {
    WinogradTile all;
  };
  static ORR_INLINE Points points_of(const float* from, int64_t apart) {
    Points points;
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 3; ++x) points.all[y * kTileStep + x] = load(from + (y * 3 + x) * apart);
    transform<WeightsToPoints>(points.all);
    return points;
  }

  // Of weights whose channels are neighbours: sixteen by sixteen are turned.
  void turn_weights(const float* from, float* to) const {
    alignas(64) float points[kWinogradPoints][16 * 16];
    for (int64_t n = 0; n < 16; ++n)
      store_points(points_of(from + n * weight_column, plan.images.channels).all,
                   points[0] + n * 16, 16 * 16);
    for (int p = 0; p < kWinogradPoints; ++p, to += plan.other_point) {
      const float* row[16];
      row_pointers(points[p], 16, 16, row);
      for (int64_t c = 0; c < 16; c += 4) {
        v16f column[4];
        load_columns(row, c, column);
        for (int j = 0; j < 4; ++j) store(to + (c + j) * kCols, column[j]);
      }
    }
  }

  // The products of all points, of `tiles` tiles and a panel of columns, over `depth` channels.
  void multiply(const float* windows, const float* weights, float* sums, int64_t tiles, int vectors,
                int64_t depth, bool add) const {
    const WinogradPlan& p = plan;
    const int64_t runs = ceil_div(tiles, kMicroRows);
    for (int64_t point = 0; point < kWinogradPoints; ++point)
      for (int64_t run = 0; run < runs; ++run) {
        const int64_t t = run * tiles / runs, rows = (run + 1) * tiles / runs - t;
        multiply_point<true>(windows + point * p.window_point + t * p.window_row, p.window_row,
                             weights + point * p.other_point, kCols,
                             sums + point * p.sums_point + t * p.sums_row, p.sums_row, int(rows),
                             vectors, depth, add);
      }
  }

  // Results of tiles [begin, end) in so many vectors of columns.
  void store_results(const float* sums, float* y, int64_t begin, int64_t end, int vectors) const {
    const Images& i = plan.images;
    for (int64_t t = begin; t < end; ++t, sums += plan.sums_row) {
      const TilePlace at = place_of(plan, t);
      float* to = y + ((at.image * i.height + at.y) * i.width + at.x) * y_row;
      for (int v = 0; v < vectors; ++v) {
        WinogradTile tile;
        load_points(sums + v * 16, plan.sums_point, tile);
        transform<PointsToResults>(tile);
        for (int64_t r = 0; r < kWinogradTile && at.y + r < i.height; ++r)
          for (int64_t c = 0; c < kWinogradTile && at.x + c < i.width; ++c)
            store(to + (r * i.width + c) * y_row + v * 16, tile[r * kTileStep + c]);
      }
    }
  }

  WinogradPlan plan;
  int64_t weight_row, weight_column, y_row;
};

// The gradient of the weights.
struct WinogradWeights : Kernel {
  explicit WinogradWeights(const orr_op& op)
      : plan(op, threads()), slope_pixel(op.in[0].strides[2]), y_row(op.out[0].strides[1]) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    const WinogradPlan& p = plan;
    const float *slopes = host<float>(in[0]), *x = host<float>(in[1]);
    float *y = host<float>(out[0]), *windows = aligned_scratch(work);
    float* others = windows + kWinogradPoints * p.window_point;
    for (int64_t first = 0; first < p.tiles; first += p.chunk) {
      const int64_t count = smaller(p.chunk, p.tiles - first);
      parallel_ranges(count, 4, [&](int64_t begin, int64_t end) {
        transform_windows(p, x, first + begin, first + end, windows + begin * p.window_row);
        transform_slopes(slopes, first + begin, first + end, others + begin * p.other_row);
      });
      if (p.few) return few(windows, others, y, windows + p.shared);
      add_products(windows, others, others + kWinogradPoints * p.other_point, count, first > 0);
    }
    const float* sums = others + kWinogradPoints * p.other_point;
    parallel(p.other, [&](int64_t n) {
      store_weights(sums + n * p.sums_row, y + n * y_row, p.images.channels);
    });
  }

  // All sums are kept for all points.
  void add_products(const float* windows, const float* others, float* sums, int64_t count,
                    bool add) const {
    const WinogradPlan& p = plan;
    const int64_t rows = kMicroRows * ceil_div(64, kMicroRows), parts = ceil_div(p.other, rows);
    parallel(kWinogradPoints * parts, [&](int64_t i) {
      const int64_t point = i / parts, first = i % parts * rows;
      const float* from = others + point * p.other_point;
      for (int64_t c = 0; c < p.images.channels; c += kCols)
        multiply(windows + point * p.window_point + c, from, sums + point * p.sums_point + c, first,
                 smaller(first + rows, p.other), vectors_of(c), count, add, first);
    });
  }

  // Each task has the sums of kFewRows rows and a panel of columns, for all points.
  void few(const float* windows, const float* others, float* y, float* scratch) const {
    const WinogradPlan& p = plan;
    const int64_t parts = ceil_div(p.other, kFewRows);
    const int64_t tasks = parts * ceil_div(p.images.channels, kCols);
    by_slots(p, tasks, scratch, [&](int64_t i, float* sums) {
      const int64_t c = i / parts * kCols, first = i % parts * kFewRows;
      const int64_t last = smaller(first + kFewRows, p.other);
      for (int64_t point = 0; point < kWinogradPoints; ++point)
        multiply(windows + point * p.window_point + c, others + point * p.other_point,
                 sums + point * p.sums_point, first, last, vectors_of(c), p.tiles, false, 0);
      for (int64_t n = first; n < last; ++n)
        store_weights(sums + (n - first) * p.sums_row, y + n * y_row + c, 16 * vectors_of(c));
    });
  }

  int vectors_of(int64_t c) const { return int(smaller(kCols, plan.images.channels - c) / 16); }

  // The slopes of the results of tiles [first, last), as points.
  void transform_slopes(const float* from, int64_t first, int64_t last, float* to) const {
    const Images& i = plan.images;
    for (int64_t t = first; t < last; ++t, to += plan.other_row) {
      const TilePlace at = place_of(plan, t);
      const float* corner = from + ((at.image * i.height + at.y) * i.width + at.x) * slope_pixel;
      for (int64_t n = 0; n < plan.other; n += 16) {
        WinogradTile tile;
        load_pixels<kWinogradTile>(corner + n, i.width * slope_pixel, slope_pixel, i.height - at.y,
                                   i.width - at.x, tile);
        transform<ResultsToPoints>(tile);
        store_points(tile, to + n, plan.other_point);
      }
    }
  }

  // Rows [first, last) of a point's products over `count` tiles, from row `to_row` of the sums on.
  void multiply(const float* windows, const float* others, float* sums, int64_t first, int64_t last,
                int vectors, int64_t count, bool add, int64_t to_row) const {
    const WinogradPlan& p = plan;
    for (int64_t n = first; n < last; n += kMicroRows)
      multiply_point<false>(others + n, p.other_row, windows, p.window_row,
                            sums + (to_row + n - first) * p.sums_row, p.sums_row,
                            int(smaller(kMicroRows, last - n)), vectors, count, add);
  }

  void store_weights(const float* sums, float* y, int64_t channels) const {
    for (int64_t c = 0; c < channels; c += 16) {
      WinogradTile tile;
      load_points(sums + c, plan.sums_point, tile);
      transform<PointsToWeights>(tile);
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t k = 0; k < 3; ++k)
          store(y + (r * 3 + k) * plan.images.channels + c, tile[r * kTileStep + k]);
    }
  }

  WinogradPlan plan;
  int64_t slope_pixel, y_row;
};

}  // namespace

Kernel* make_winograd(const orr_op& op) {
  return op.in[1].rank == 6 ? (Kernel*)new WinogradWeights(op) : new Winograd(op);
}

}  // namespace orr_cpu::ORR_ISA
