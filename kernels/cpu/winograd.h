// SPDX-License-Identifier: Apache-2.0
//
// The transforms of F(4 x 4, 3 x 3), at the points 0, 1, -1, 2, -2 and infinity, of sixteen
// channels at a time. Each is one of the three matrices of Lavin and Gray (B, G and A) or its
// transpose, along one dim; a tile takes it along both. A convolution of pixels x with weights w is
// A' [(G w G') * (B' x B)] A; the gradient of w is G' [(A y A') * (B' x B)] G, with y that of the
// results. Sums have the order that is written here, on every CPU.
#pragma once

#include "winograd_plan.h"

#include "vec.h"

namespace orr_cpu::ORR_ISA {

// What a transform reads and writes along one dim, `kStep` vectors apart.
// B': six pixels to six points.
struct PixelsToPoints {
  enum { kIn = 6, kOut = 6 };
  template <int kStep>
  static ORR_INLINE void run(const v16f* x, v16f* u) {
    const v16f x0 = x[0], x1 = x[kStep], x2 = x[2 * kStep], x3 = x[3 * kStep], x4 = x[4 * kStep],
               x5 = x[5 * kStep];
    const v16f four = splat(4.0f), five = splat(5.0f), two = splat(2.0f);
    const v16f even = x4 - four * x2, odd = x3 - four * x1;
    const v16f wide = x4 - x2, slope = two * (x3 - x1);
    u[0] = four * x0 - five * x2 + x4;
    u[kStep] = even + odd, u[2 * kStep] = even - odd;
    u[3 * kStep] = wide + slope, u[4 * kStep] = wide - slope;
    u[5 * kStep] = four * x1 - five * x3 + x5;
  }
};

// G: three weights to six points.
struct WeightsToPoints {
  enum { kIn = 3, kOut = 6 };
  template <int kStep>
  static ORR_INLINE void run(const v16f* w, v16f* u) {
    const v16f w0 = w[0], w1 = w[kStep], w2 = w[2 * kStep];
    const v16f sixth = splat(1.0f / 6), twelfth = splat(1.0f / 12);
    const v16f ends = sixth * (w0 + w2), middle = sixth * w1;
    const v16f far = splat(1.0f / 24) * w0 + sixth * w2, slope = twelfth * w1;
    u[0] = splat(0.25f) * w0;
    u[kStep] = splat(0.0f) - (ends + middle), u[2 * kStep] = middle - ends;
    u[3 * kStep] = far + slope, u[4 * kStep] = far - slope;
    u[5 * kStep] = w2;
  }
};

// A': six points to four results.
struct PointsToResults {
  enum { kIn = 6, kOut = 4 };
  template <int kStep>
  static ORR_INLINE void run(const v16f* u, v16f* y) {
    const v16f near = u[kStep] + u[2 * kStep], near_slope = u[kStep] - u[2 * kStep];
    const v16f far = u[3 * kStep] + u[4 * kStep], far_slope = u[3 * kStep] - u[4 * kStep];
    const v16f first = u[0], last = u[5 * kStep];
    y[0] = first + near + far;
    y[kStep] = near_slope + splat(2.0f) * far_slope;
    y[2 * kStep] = near + splat(4.0f) * far;
    y[3 * kStep] = near_slope + splat(8.0f) * far_slope + last;
  }
};

// A: four slopes of results to six points.
struct ResultsToPoints {
  enum { kIn = 4, kOut = 6 };
  template <int kStep>
  static ORR_INLINE void run(const v16f* y, v16f* u) {
    const v16f y0 = y[0], y1 = y[kStep], y2 = y[2 * kStep], y3 = y[3 * kStep];
    const v16f even = y0 + y2, odd = y1 + y3;
    const v16f far = y0 + splat(4.0f) * y2, far_slope = splat(2.0f) * (y1 + splat(4.0f) * y3);
    u[0] = y0;
    u[kStep] = even + odd, u[2 * kStep] = even - odd;
    u[3 * kStep] = far + far_slope, u[4 * kStep] = far - far_slope;
    u[5 * kStep] = y3;
  }
};

// G': six points to the slopes of three weights.
struct PointsToWeights {
  enum { kIn = 6, kOut = 3 };
  template <int kStep>
  static ORR_INLINE void run(const v16f* u, v16f* w) {
    const v16f sixth = splat(1.0f / 6), twelfth = splat(1.0f / 12);
    const v16f near = u[kStep] + u[2 * kStep], near_slope = u[2 * kStep] - u[kStep];
    const v16f far = u[3 * kStep] + u[4 * kStep], far_slope = u[3 * kStep] - u[4 * kStep];
    const v16f first = u[0], last = u[5 * kStep];
    w[0] = splat(0.25f) * first - sixth * near + splat(1.0f / 24) * far;
    w[kStep] = sixth * near_slope + twelfth * far_slope;
    w[2 * kStep] = sixth * (far - near) + last;
  }
};

// Rows of six vectors, of which a transform uses the first.
enum { kTileStep = kWinogradWindow };
using WinogradTile = v16f[kWinogradPoints];

// The transform along both dims, in place.
template <class Transform>
ORR_INLINE void transform(WinogradTile& tile) {
  for (int column = 0; column < Transform::kIn; ++column)
    Transform::template run<kTileStep>(tile + column, tile + column);
  for (int row = 0; row < Transform::kOut; ++row)
    Transform::template run<1>(tile + row * kTileStep, tile + row * kTileStep);
}

// Stores the points, `apart` floats from one to the next.
ORR_INLINE void store_points(const WinogradTile& tile, float* to, int64_t apart) {
  for (int point = 0; point < kWinogradPoints; ++point) store(to + point * apart, tile[point]);
}
ORR_INLINE void load_points(const float* from, int64_t apart, WinogradTile& tile) {
  for (int point = 0; point < kWinogradPoints; ++point) tile[point] = load(from + point * apart);
}

// A tile of an image.
struct TilePlace {
  int64_t image, y, x;  // of its first result
};
ORR_INLINE TilePlace place_of(const WinogradPlan& p, int64_t tile) {
  const int64_t within = tile % (p.across * p.down);
  return {tile / (p.across * p.down), within / p.across * kWinogradTile,
          within % p.across * kWinogradTile};
}

// Loads `size` x `size` pixels, of which `rows` x `columns` exist; the others are 0.
template <int size>
ORR_INLINE void load_pixels(const float* from, int64_t row, int64_t pixel, int64_t rows,
                            int64_t columns, WinogradTile& tile) {
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x)
      tile[y * kTileStep + x] =
          y < rows && x < columns ? load(from + y * row + x * pixel) : splat(0.0f);
}

}  // namespace orr_cpu::ORR_ISA
