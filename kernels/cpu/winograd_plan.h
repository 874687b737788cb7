// SPDX-License-Identifier: Apache-2.0
//
// Which products of windows are computed by Winograd's method (Lavin and Gray 2015, "Fast
// algorithms for convolutional neural networks"), and their scratch. It takes a quarter of the
// multiplications of a 3 x 3 convolution with stride 1: F(4 x 4, 3 x 3). It does not multiply the
// factors themselves but sums of some of them, so it is used where "numerics" = "fast".
#pragma once

#include <orrery/kernel.h>

namespace orr_cpu {

// Windows of 3 x 3 pixels, one for each pixel of `count` images of `height` x `width` results. A
// pixel's channels are neighbours, and pixels of a row follow one another.
struct Images {
  int64_t count, height, width, channels;
  int64_t image, row;  // strides in elements
};

// 4 x 4 results and the 6 x 6 pixels of which they are made, through 36 points: for each of them
// there is a matrix product.
constexpr int kWinogradPoints = 36, kWinogradTile = 4, kWinogradWindow = 6;
// With few tiles, products add so many channels at a time, and a task of a gradient so many rows.
constexpr int64_t kFewChannels = 64, kFewRows = 64;

struct WinogradPlan {
  // REQUIRES: use_winograd(op).
  WinogradPlan(const orr_op& op, int32_t slots);

  Images images;         // the operand of windows
  bool gradient;         // of the weights: the windows are b
  int64_t other;         // channels of the other operand
  int64_t across, down;  // tiles of an image
  int64_t tiles;         // of all images
  int32_t slots;

  // Few tiles have much larger weights than windows: then the points of these are kept, and those
  // of the weights, or of their gradient, are made for some columns at a time.
  bool few;
  // Results of windows: tiles that a task transforms at a time, and tasks along tiles and columns.
  int64_t block, blocks, splits;
  // Gradients of weights: tiles whose products are added up at a time; all, if they are few.
  int64_t chunk;

  // Scratch in floats. Rows of channels have a line between them, and points an odd number of
  // lines, so that they fall into different sets of the caches.
  int64_t window_row, other_row;      // from tile to tile
  int64_t window_point, other_point;  // from point to point
  int64_t sums_row, sums_point;       // of the products
  int64_t slot_floats;                // of each task that runs at a time
  int64_t shared;                     // of all tasks
  uint64_t workspace() const;

 private:
  void for_results();
  void for_gradient();
};

// Whether this is a product of such windows in f32, any order of sums is allowed, and it has enough
// rows to be worth the transforms.
bool use_winograd(const orr_op& op);

}  // namespace orr_cpu
